// SPDX-License-Identifier: Apache-2.0
// Fetches a command, looks for its errors and computes the array's plan of it.
// Two multipliers, one for rows and one for pixels, do all products in turn: one slot a cycle. The
// whole takes 19 cycles, because the shortest command (a pool) has 20.
module array_command_check #(parameter int SRAM_BYTES = 131072) (
  input  logic clock, reset, enable,
  input  logic start,                  // fetch the command at address, from this cycle on
  input  logic [31:0] address,
  output logic port_request,           // granted always
  output logic [16:0] port_address,
  input  logic [255:0] port_rdata,
  output logic ready,                  // error and setup hold until the next start
  output logic [2:0] error,
  output array_pkg::setup_t setup);

  logic misplaced;
  logic [767:0] words;
  logic [4:0] slot, done_slot;
  array_command_fetch #(.SRAM_BYTES(SRAM_BYTES)) fetch (.clock, .reset, .enable, .start, .address,
    .port_request, .port_address, .port_rdata, .misplaced, .words, .slot, .done_slot);

  // --- The fields.
  logic [7:0] kind, kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x;
  logic [7:0] pad_top, pad_left;
  logic [15:0] input_height, input_width, output_height, output_width;
  logic [15:0] input_channels, output_channels;
  logic [31:0] input_row, input_pixel, output_row, output_pixel, extra_row, extra_pixel;
  logic [31:0] second_row, second_pixel;
  assign kind = words[32 +: 8];
  assign {input_width, input_height} = words[32 * 6 +: 32];
  assign {input_pixel, input_row} = words[32 * 7 +: 64];
  assign {output_width, output_height} = words[32 * 9 +: 32];
  assign {output_pixel, output_row} = words[32 * 10 +: 64];
  assign {output_channels, input_channels} = words[32 * 12 +: 32];
  assign {stride_x, stride_y, kernel_width, kernel_height} = words[32 * 13 +: 32];
  assign {pad_left, pad_top, dilation_x, dilation_y} = words[32 * 14 +: 32];
  assign {extra_pixel, extra_row} = words[32 * 17 +: 64];
  assign {second_pixel, second_row} = words[32 * 21 +: 64];

  logic convolution, depthwise, add, maximum, average, pixels, raw, accumulate, residual, second;
  logic nibbles, multiplies;
  assign convolution = kind == 1;
  assign depthwise = kind == 2;
  assign add = kind == 3;
  assign maximum = kind == 4;
  assign average = kind == 5;
  assign pixels = convolution && words[32 + 8];
  assign raw = convolution && words[32 + 9];
  assign accumulate = convolution && words[32 + 10];
  assign residual = (convolution || depthwise) && words[32 + 11];
  assign second = convolution && words[32 + 12];
  assign nibbles = (depthwise || (convolution && !second)) && words[32 + 13];
  assign multiplies = add && words[32 + 14];

  // --- The products of the slots: in y and x in the cycle behind, in their own registers after that.
  logic [17:0] ya, yb, xa, xb;
  logic [35:0] y, x;
  always_ff @(posedge clock) if (enable) begin
    y <= ya * yb;
    x <= xa * xb;
  end

  logic [15:0] taps;                          // kernel_height * kernel_width
  logic [17:0] run, size, positions, rows, halves, results, second_bytes;
  logic [17:0] weight_words;                  // wide accesses for the first block of weights
  logic [17:0] weight_quads;                  // all weights, in fours
  logic [17:0] kernel_span, new_span, new_pixels, old_pixels, row_elements, row_bytes;
  logic [17:0] span_y, span_x;                // (kernel - 1) * dilation
  logic [16:0] step_y, dilate_y, top;
  logic [25:0] step_x, dilate_x, left;
  logic joined;
  logic [16:0] runs;
  logic [17:0] run_bytes, window_columns, new_columns, column_pixels, blocks, tail_pixels;
  assign joined = dilation_x == 1 && input_pixel == {16'd0, input_channels};
  assign runs = joined ? {9'd0, kernel_height} : {1'b0, taps};
  assign run_bytes = joined ? run : {2'd0, input_channels};
  assign blocks = pixels ? (18'(output_channels) + 18'd3) >> 2
                         : (18'(output_channels) + 18'd15) >> 4;
  assign window_columns = span_x + 1;

  // --- The bytes of a row of weights, in fours. With NIBBLES and PIXELS, of a pair of rows.
  logic [17:0] row_quads;                     // of all blocks
  logic [2:0] full_quads, first_quads, last_quads;  // of a full, the first and the last block: 1, 2 or 4
  array_weight_rows weight_rows (.channels(output_channels), .pixels, .depthwise, .second, .nibbles,
    .row_quads, .full_quads, .first_quads, .last_quads);
  assign new_columns = {10'd0, stride_x} < window_columns ? {10'd0, stride_x} : window_columns;
  assign tail_pixels = output_height >= 4 ? 18'(stride_y) * 3
                     : output_height == 3 ? 18'(stride_y) * 2
                     : output_height == 2 ? 18'(stride_y) : 18'd0;
  assign column_pixels = tail_pixels + span_y + 1;

  // --- The pixels of a group, across. Up to two pixels are computed in pairs of lanes.
  logic [2:0] group;
  logic pair;
  assign group = positions == 1 && !second ? 3'd1 : positions == 2 && !second ? 3'd2 : 3'd4;
  assign pair = convolution && !pixels && group != 4;

  function automatic logic [17:0] magnitude(input logic [31:0] stride);
    logic [31:0] m;
    m = stride[31] ? -stride : stride;
    magnitude = |m[31:17] ? 18'h3FFFF : m[17:0];
  endfunction
  function automatic logic [17:0] saturate(input logic [35:0] value);
    saturate = |value[35:18] ? 18'h3FFFF : value[17:0];
  endfunction

  // The wide accesses for rows of the first block.
  function automatic logic [17:0] words_of(input logic [17:0] block_rows);
    words_of = 18'((21'(block_rows) * 21'(first_quads) + 21'd7) >> 3);
  endfunction

  always_comb begin
    ya = 0; yb = 0; xa = 0; xb = 0;
    case (slot)
      0: begin
        ya = 18'(kernel_height); yb = 18'(kernel_width);
        xa = 18'(kernel_width); xb = 18'(input_channels);
      end
      2: begin   // slot 1 waits for the products of slot 0
        ya = 18'(kernel_height); yb = run;
        xa = 18'(output_height); xb = 18'(output_width);
      end
      3: begin
        ya = 18'(runs); yb = 18'((19'(run_bytes) + 19'd15) >> 4);
        xa = 18'(runs); xb = 18'((19'(run_bytes) + 19'd1) >> 1);
      end
      4: begin
        ya = row_quads; yb = depthwise ? 18'(taps) : pixels && nibbles ? 18'((19'(size) + 19'd1) >> 1) : size;
        xa = positions; xb = 18'(output_channels);
      end
      5: begin
        ya = (add ? 18'(output_height) : 18'(input_height)) - 1; yb = magnitude(input_row);
        xa = (add ? 18'(output_width) : 18'(input_width)) - 1; xb = magnitude(input_pixel);
      end
      6: begin
        ya = 18'(output_height) - 1; yb = magnitude(output_row);
        xa = 18'(output_width) - 1; xb = magnitude(output_pixel);
      end
      7: begin
        ya = 18'(output_height) - 1; yb = magnitude(extra_row);
        xa = 18'(output_width) - 1; xb = magnitude(extra_pixel);
      end
      8: begin
        ya = (add ? 18'(output_height) : pixels ? 18'(output_channels) : size) - 1;
        yb = magnitude(second_row);
        if (depthwise) begin
          ya = 18'(kernel_height); yb = new_columns;
        end
        xa = add ? 18'(output_width) - 1 : size;
        xb = add ? magnitude(second_pixel) : 18'(output_channels);
      end
      9: begin
        ya = 18'(stride_y); yb = {1'b0, input_row[16:0]};
        xa = 18'(stride_x); xb = input_pixel[17:0];
      end
      10: begin
        ya = 18'(dilation_y); yb = {1'b0, input_row[16:0]};
        xa = 18'(dilation_x); xb = input_pixel[17:0];
      end
      11: begin
        ya = 18'(pad_top); yb = {1'b0, input_row[16:0]};
        xa = 18'(pad_left); xb = input_pixel[17:0];
      end
      1: begin
        ya = 18'(kernel_height) - 1; yb = 18'(dilation_y);
        xa = 18'(kernel_width) - 1; xb = 18'(dilation_x);
      end
      12: begin
        ya = 18'(kernel_height); yb = window_columns;
        if (convolution) begin   // each run of paired lanes begins with a new access
          ya = pair ? 18'(runs) : 18'd1; yb = words_of(pair ? run_bytes : size);
        end
        xa = new_columns; xb = column_pixels;
      end
      13: begin
        ya = window_columns - new_columns; yb = column_pixels;
        xa = 18'(output_width); xb = 18'(output_channels);
      end
      default: ;
    endcase
  end

  always_ff @(posedge clock) if (enable) begin
    case (done_slot)
      0: begin taps <= y[15:0]; run <= saturate(x); end
      1: begin span_y <= y[17:0]; span_x <= x[17:0]; end
      2: begin size <= saturate(y); positions <= saturate(x); end
      3: begin rows <= saturate(y); halves <= saturate(x); end
      4: begin weight_quads <= saturate(y); results <= saturate(x); end
      5: row_bytes <= x[17:0] + 18'(input_channels);
      8: begin second_bytes <= saturate(x); new_span <= saturate(y); end
      9: begin step_y <= y[16:0]; step_x <= signed_part(x[25:0], stride_x); end
      10: begin dilate_y <= y[16:0]; dilate_x <= signed_part(x[25:0], dilation_x); end
      11: begin top <= y[16:0]; left <= signed_part(x[25:0], pad_left); end
      12: begin
        kernel_span <= saturate(y); new_pixels <= saturate(x);
        weight_words <= saturate(y);
      end
      13: begin old_pixels <= saturate(y); row_elements <= saturate(x); end
      default: ;
    endcase
  end
  // A negative stride enters the multiplier as 18 bits without sign; this takes the sign's weight off.
  function automatic logic [25:0] signed_part(input logic [25:0] product, input logic [7:0] factor);
    signed_part = product - (input_pixel[17] ? {factor, 18'd0} : 26'd0);
  endfunction

  // --- n r // B: a division in seven cycles, while the later slots run.
  logic [6:0] dividend, quotient;
  logic [17:0] remainder;
  logic [18:0] trial;
  logic [20:0] group_rows;
  assign group_rows = group == 1 ? 21'(rows) : group == 2 ? {2'd0, rows, 1'b0} : {1'b0, rows, 2'b0};
  assign trial = {remainder, dividend[6]};
  always_ff @(posedge clock) if (enable) begin
    if (done_slot == 4) begin
      dividend <= group_rows[6:0] - 1;
      remainder <= 0;
      quotient <= 0;
    end else if (done_slot >= 5 && done_slot <= 11) begin
      dividend <= dividend << 1;
      quotient <= {quotient[5:0], trial >= 19'(blocks)};
      remainder <= trial >= 19'(blocks) ? 18'(trial - 19'(blocks)) : trial[17:0];
    end
  end

  assign ready = misplaced || done_slot == 14;
  array_command_errors #(.SRAM_BYTES(SRAM_BYTES)) errors (.clock, .enable, .done_slot, .y, .x, .words,
    .convolution, .depthwise, .add, .pixels, .raw, .accumulate, .residual, .second, .size, .blocks,
    .weight_quads, .results, .second_bytes, .misplaced, .error);

  array_plan plan (
    .next(words[31:0]), .convolution, .depthwise, .add, .maximum, .average,
    .pixels, .raw, .accumulate, .residual, .second, .nibbles, .product(multiplies), .joined,
    .taps, .size, .positions, .rows, .halves, .weight_words, .blocks, .full_quads, .last_quads, .pair,
    .group, .group_rows, .share(8'(quotient) + 8'd1), .runs, .run_bytes,
    .window_columns, .new_columns, .column_pixels, .kernel_span, .new_span, .new_pixels,
    .old_pixels, .row_elements, .step_y, .dilate_y, .top, .step_x, .dilate_x, .left, .row_bytes, .words, .setup);
endmodule
