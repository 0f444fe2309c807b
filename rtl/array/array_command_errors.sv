// SPDX-License-Identifier: Apache-2.0
// Looks for the errors of a command: whether its sizes are proper, its addresses aligned, and all its
// tensors inside the SRAM. The check's multipliers bring the extent of a tensor a slot.
module array_command_errors #(parameter int SRAM_BYTES = 131072) (
  input  logic clock, enable,
  input  logic [4:0] done_slot,
  input  logic [35:0] y, x,              // the products of done_slot
  // Fields without errors stay unused.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [767:0] words,
  // verilator lint_on UNUSEDSIGNAL
  input  logic convolution, depthwise, add, pixels, raw, accumulate, residual, second,
  input  logic [17:0] size, blocks, weight_quads, results, second_bytes,
  input  logic misplaced,
  output logic [2:0] error);

  logic [7:0] kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, kind;
  logic [15:0] input_height, input_width, output_height, output_width;
  logic [15:0] input_channels, output_channels;
  assign kind = words[32 +: 8];
  assign {input_width, input_height} = words[32 * 6 +: 32];
  assign {output_width, output_height} = words[32 * 9 +: 32];
  assign {output_channels, input_channels} = words[32 * 12 +: 32];
  assign {stride_x, stride_y, kernel_width, kernel_height} = words[32 * 13 +: 32];
  assign {dilation_x, dilation_y} = words[32 * 14 +: 16];

  // --- Where a tensor lies: the bytes below and above its address.
  logic [31:0] base;
  logic y_down, x_down;                  // the stride is negative
  logic [37:0] below, above, length;
  logic outside;
  always_comb begin
    base = words[64 +: 32]; y_down = words[32 * 7 + 31]; x_down = words[32 * 8 + 31];
    length = add ? 38'(output_channels) : 38'(input_channels);
    case (done_slot)
      6: begin
        base = words[32 * 5 +: 32]; y_down = words[32 * 10 + 31]; x_down = words[32 * 11 + 31];
        length = raw ? {20'd0, output_channels, 2'd0} : {22'd0, output_channels};
      end
      7: begin
        base = words[32 * 16 +: 32]; y_down = words[32 * 17 + 31]; x_down = words[32 * 18 + 31];
        length = accumulate ? {20'd0, output_channels, 2'd0} : {22'd0, output_channels};
      end
      8: begin
        base = words[32 * 3 +: 32]; y_down = words[32 * 21 + 31]; x_down = add && words[32 * 22 + 31];
        length = pixels ? 38'(size) : 38'(output_channels);
      end
      default: ;
    endcase
    below = (y_down ? 38'(y) : 38'd0) + (x_down ? 38'(x) : 38'd0);
    above = length + (y_down ? 38'd0 : 38'(y)) +
            (x_down || (done_slot == 8 && !add) ? 38'd0 : 38'(x));
    // A stride beyond the SRAM has been saturated, and stays beyond the SRAM.
    outside = 38'(base) < below || 38'(base) + above > 38'(SRAM_BYTES);
  end

  logic outside_input, outside_output, outside_extra, outside_second;
  always_ff @(posedge clock) if (enable) begin
    case (done_slot)
      5: outside_input <= outside;
      6: outside_output <= outside;
      7: outside_extra <= outside;
      8: outside_second <= outside;
      default: ;
    endcase
  end

  // --- The errors, in their order.
  logic bad_size, misaligned, outside_any, uses_weights, uses_parameters;
  logic [37:0] weights_end, parameters_end, constants_end, parameter_bytes;
  assign uses_weights = (convolution && !second) || depthwise;
  assign uses_parameters = convolution || depthwise || add;
  assign parameter_bytes = add ? 38'd32 : pixels ? 38'(blocks) * 36 : 38'(blocks) * 144;
  assign weights_end = 38'(words[96 +: 32]) + {18'd0, weight_quads, 2'd0};
  assign parameters_end = 38'(words[128 +: 32]) + parameter_bytes;
  assign constants_end = 38'(words[32 * 19 +: 32]) + 32;
  assign bad_size =
    output_height == 0 || output_width == 0 || output_channels == 0 ||
    (!add && (input_height == 0 || input_width == 0 || input_channels == 0 ||
              kernel_height == 0 || kernel_width == 0 || stride_y == 0 || stride_x == 0 ||
              dilation_y == 0 || dilation_x == 0)) ||
    (!convolution && !add && input_channels != output_channels) ||
    (residual && (accumulate || raw));
  assign misaligned = (uses_weights && words[96 +: 4] != 0) ||
                      (uses_parameters && words[128 +: 2] != 0) ||
                      (residual && words[32 * 19 +: 2] != 0);
  assign outside_any =
    outside_input || outside_output ||
    ((raw ? {18'd0, results, 2'd0} : {20'd0, results}) > 38'(SRAM_BYTES)) ||
    (uses_weights && weights_end > 38'(SRAM_BYTES)) ||
    (uses_parameters && parameters_end > 38'(SRAM_BYTES)) ||
    (residual && constants_end > 38'(SRAM_BYTES)) ||
    ((residual || accumulate) && outside_extra) ||
    ((add || second) && outside_second) ||
    (second && 38'(second_bytes) > 38'(SRAM_BYTES));
  assign error = misplaced ? 3'd2 : kind == 0 || kind > 5 ? 3'd3 : bad_size ? 3'd6 :
                 misaligned ? 3'd5 : outside_any ? 3'd4 : 3'd0;
endmodule
