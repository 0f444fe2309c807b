// SPDX-License-Identifier: Apache-2.0
// Fetches and stores biases, multipliers and shifts: 8 entries of 4 channels, 2 blocks of
// 16 channels or (PIXELS) 8 blocks of 4. Also the 32 bytes of constants for RESIDUAL and add.
module array_parameters (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  output logic constants_request, request,
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic constants_granted, granted,
  input  logic [255:0] port_rdata,
  output logic constants_ready,
  output logic [255:0] constants,
  // the output stage reads an entry
  output logic [17:0] loaded,            // blocks in the store or used before
  input  logic [17:0] released,          // blocks without further use
  input  logic [17:0] block_begun,       // loads of this block of channels are under way
  input  logic summing,                  // a sum is being formed
  input  logic [1:0] sums_group,         // steps summed, modulo 4
  input  logic [2:0] read_entry,
  output logic [127:0] biases, multipliers,
  output logic [31:0] shifts);

  logic inner_last, unused_middle_last, done, block_end, unused_last;
  logic [17:0] unused_outer, unused_middle, unused_inner, issued;
  logic [16:0] here;
  logic [2:0] part;
  logic repeating, begun, ahead;         // ahead: of the present step
  assign ahead = sums_group - issued[1:0] == 2'd3;
  assign repeating = setup.across && !setup.keep_parameters;
  array_steps steps (.clock, .start, .enable, .advance(granted && block_end),
    .outer_count(setup.keep_parameters ? 18'd1 : setup.outer), .middle_count(18'd1),
    .inner_count(setup.across ? setup.inner : 18'd1),
    .outer(unused_outer), .middle(unused_middle), .inner(unused_inner),
    .middle_last(unused_middle_last), .inner_last, .last(unused_last), .done);

  logic constants_wanted, constants_arrive;
  assign constants_request = constants_wanted;
  assign block_end = part == (setup.pixels ? 3'd1 : 3'd4);
  // Parameters that pass once for each step belong to the steps: the patches come before them.
  // Others come at the beginning of their block.
  assign request = (setup.convolution || setup.depthwise) && !done &&
                   (!repeating || (begun && !ahead)) && (setup.across || issued <= block_begun) &&
                   issued - released < (setup.pixels ? 18'd8 : 18'd2);
  assign address = constants_request ? setup.constants : here;
  assign bytes = constants_request || !block_end ? 6'd32 : setup.pixels ? 6'd4 : 6'd16;

  logic arrives, arrives_end;
  logic [1:0] arrives_part;
  logic [2:0] block;                     // block: where the arriving block goes

  always_ff @(posedge clock) if (enable) begin
    constants_arrive <= constants_granted;
    arrives <= granted;
    arrives_part <= part[1:0];
    arrives_end <= block_end;
    begun <= !start && (begun || summing);
    if (start) begin
      here <= setup.parameters;
      part <= 0;
      issued <= 0;
      loaded <= 0;
      block <= 0;
      constants_wanted <= setup.residual || setup.add;
      constants_ready <= 0;
      arrives <= 0;
    end else begin
      if (constants_granted) constants_wanted <= 0;
      if (constants_arrive) begin
        constants <= port_rdata;
        constants_ready <= 1;
      end
      if (granted) begin
        part <= block_end ? 0 : part + 1;
        here <= block_end && repeating && inner_last ? setup.parameters : here + 17'(bytes);
        if (block_end) issued <= issued + 1;
      end
      if (arrives && arrives_end) begin
        loaded <= loaded + 1;
        block <= block + 1;
      end
    end
  end

  // --- The store. An access brings two entries of biases or of multipliers, the even entry first, or with
  // PIXELS both of an entry; then four shifts, or with PIXELS one. Each memory takes a word a cycle.
  logic words_arrive, shifts_arrive;
  logic [1:0] pair, bank;                // of the arriving entries; of the entry that is read
  logic [255:0] biases_of, multipliers_of;
  logic [127:0] shifts_of;
  assign words_arrive = arrives && !arrives_end;
  assign shifts_arrive = arrives && arrives_end;
  assign pair = setup.pixels ? block[2:1] : {block[0], arrives_part[0]};
  for (genvar i = 0; i < 2; i++) begin : entries
    logic [127:0] bias [0:3];
    logic [127:0] multiplier [0:3];
    logic mine;
    assign mine = words_arrive && (!setup.pixels || block[0] == 1'(i));
    always_ff @(posedge clock) if (enable && !start) begin
      if (mine && (setup.pixels || !arrives_part[1]))
        bias[pair] <= i == 0 || setup.pixels ? port_rdata[127:0] : port_rdata[255:128];
      if (mine && (setup.pixels || arrives_part[1]))
        multiplier[pair] <= i == 1 || setup.pixels ? port_rdata[255:128] : port_rdata[127:0];
    end
    assign biases_of[128 * i +: 128] = bias[read_entry[2:1]];
    assign multipliers_of[128 * i +: 128] = multiplier[read_entry[2:1]];
  end
  for (genvar i = 0; i < 4; i++) begin : shift_banks
    logic [31:0] shift [0:1];
    logic [31:0] wdata;
    assign wdata = setup.pixels ? port_rdata[31:0] : port_rdata[32 * i +: 32];
    always_ff @(posedge clock) if (enable && !start) begin
      if (shifts_arrive && (!setup.pixels || block[1:0] == 2'(i)))
        shift[setup.pixels ? block[2] : block[0]] <= wdata;
    end
    assign shifts_of[32 * i +: 32] = shift[read_entry[2]];
  end
  assign bank = read_entry[1:0];
  assign biases = biases_of[128 * bank[0] +: 128];
  assign multipliers = multipliers_of[128 * bank[0] +: 128];
  assign shifts = shifts_of[32 * bank +: 32];
endmodule
