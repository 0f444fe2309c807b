// SPDX-License-Identifier: Apache-2.0
// Loads the weights of 4 channels into the operand file, for PIXELS: lane i holds the K weights of
// channel i, 16 a row. A wide access brings 8 weights of each lane, half a row.
// With NIBBLES it brings 16 of each lane, a row. With SECOND a narrow access brings a row of a lane.
module array_lane_weights (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [6:0] freed,              // free rows of the ring, modulo 128
  input  logic [17:0] block_begun,       // the pixels of this block of channels come next
  output logic request, access,          // access: the request needs the port
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic granted,
  input  logic [255:0] port_rdata,
  output logic [3:0] write_lanes,
  output logic [1:0] write_halves,
  output logic [5:0] write_row,
  output logic [511:0] write_data,
  output logic row_complete);

  logic inner_last, unused_middle_last, done, pass_end, row_end, unused_last;
  logic [17:0] outer, unused_middle, unused_inner, left;   // left: weights of a channel in this pass
  logic [16:0] here, pass_start;
  logic [6:0] row, ahead;
  logic [1:0] lane;
  logic upper;
  array_steps steps (.clock, .start, .enable, .advance(granted && pass_end),
    .outer_count(setup.outer), .middle_count(18'd1),
    .inner_count(setup.resident ? 18'd1 : setup.inner),
    .outer, .middle(unused_middle), .inner(unused_inner), 
    .middle_last(unused_middle_last), .inner_last, .last(unused_last), .done);

  // A block's weights come between the pixels of the block before and of this block.
  // Without resident rows the weights pass once for each step: a few rows ahead are enough, and
  // more would take the port from the pixels.
  assign ahead = row - freed;
  assign request = setup.transposed && !done && outer <= block_begun &&
                   ahead < (setup.resident ? 7'd64 : 7'd4);
  logic [19:0] channel;
  assign channel = {outer, lane};
  assign access = !setup.second || channel < 20'(setup.channels);
  assign row_end = setup.second ? lane == 3 : upper || setup.nibbles || left <= 8;
  assign pass_end = row_end && (setup.second || setup.nibbles ? left <= 16 : left <= 8);
  assign address = here;
  always_comb begin
    if (setup.second) bytes = left < 16 ? left[5:0] : 6'd16;
    else if (setup.nibbles) bytes = 6'd32;
    else bytes = left <= 4 ? {left[3:0], 2'b0} : 6'd32;
  end

  logic [4:0] pairs;                     // of rows with NIBBLES, in the last access
  logic [16:0] after;
  assign pairs = ({1'b0, left[3:0]} + 5'd1) >> 1;
  assign after = here + (setup.nibbles ? (left < 16 ? {10'd0, pairs, 2'b0} : 17'd32)
                                       : (left < 8 ? {12'd0, left[2:0], 2'b0} : 17'd32));
  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      here <= setup.weights;
      pass_start <= setup.weights;
      left <= setup.kernel_size;
      row <= 0;
      lane <= 0;
      upper <= 0;
    end else if (granted) begin
      if (row_end) row <= row + 1;
      upper <= !row_end;
      if (setup.second) begin
        // pass_start is the second input's row of lane 0, here less the rows of the lanes before.
        lane <= lane + 1;
        here <= here + setup.second_row;
        if (row_end) begin
          here <= here - 3 * setup.second_row + 17'd16;
          left <= left - 16;
        end
        if (pass_end) begin
          here <= inner_last ? pass_start + (setup.second_row << 2) : pass_start;
          if (inner_last) pass_start <= pass_start + (setup.second_row << 2);
          left <= setup.kernel_size;
        end
      end else begin
        here <= after;
        left <= left - (setup.nibbles ? 18'd16 : 18'd8);
        if (pass_end) begin
          here <= inner_last ? after : pass_start;
          if (inner_last) pass_start <= after;
          left <= setup.kernel_size;
        end
      end
    end
  end

  // --- The data, a cycle later.
  logic arrives, arrives_upper, arrives_end;
  logic [1:0] arrives_lane;
  always_ff @(posedge clock) if (enable) begin
    arrives <= granted && !start;
    arrives_upper <= upper;
    arrives_end <= row_end;
    arrives_lane <= lane;
    write_row <= row[5:0];
  end
  assign row_complete = arrives && arrives_end;
  assign write_lanes = !arrives ? 4'd0 : setup.second ? 4'd1 << arrives_lane : 4'd15;
  assign write_halves = setup.second || setup.nibbles ? 2'b11 : arrives_upper ? 2'b10 : 2'b01;
  for (genvar i = 0; i < 4; i++) begin : lanes
    logic [63:0] half;                   // byte i of each of the 8 words that came
    for (genvar j = 0; j < 8; j++) begin : weights
      assign half[8 * j +: 8] = port_rdata[32 * j + 8 * i +: 8];
    end
    logic [127:0] whole;                 // nibble i of each of the 16 halfwords
    for (genvar j = 0; j < 16; j++) begin : nibbles
      assign whole[8 * j +: 8] = {{5{port_rdata[16 * j + 4 * i + 3]}}, port_rdata[16 * j + 4 * i +: 3]};
    end
    assign write_data[128 * i +: 128] = setup.second ? port_rdata[127:0] : setup.nibbles ? whole : {half, half};
  end
endmodule
