// SPDX-License-Identifier: Apache-2.0
// Brings the operands to the multipliers: multiplier j of lane i multiplies lane operand i, j by
// wide operand j. Across, a lane's operand is one byte for all 16; in window and direct, each of
// the 16 channels has its own. The zero points of SECOND are subtracted here.
module array_operands (
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [511:0] file_data,
  input  logic [3:0] file_byte,
  input  logic [127:0] pixels,           // from the transposer
  input  logic [127:0] even, odd,        // weights
  output logic [575:0] lane,             // 4 x 16 operands of 9 bits
  output logic [143:0] wide_even, wide_odd);

  logic own;                             // each channel has its own lane operand
  logic [7:0] lane_zero, wide_zero;
  assign own = setup.window || setup.direct;
  assign lane_zero = !setup.second ? 8'd0 : setup.pixels ? setup.second_zero : setup.input_zero;
  assign wide_zero = !setup.second ? 8'd0 : setup.pixels ? setup.input_zero : setup.second_zero;

  for (genvar i = 0; i < 4; i++) begin : lanes
    logic [127:0] row;
    logic [3:0] index;
    logic [7:0] chosen;
    logic [8:0] shared;
    assign row = file_data[128 * i +: 128];
    // Of paired lanes, the odd one takes the next byte.
    assign index = file_byte | (setup.pair && i % 2 == 1 ? 4'd1 : 4'd0);
    assign chosen = row[8 * index +: 8];
    assign shared = {chosen[7], chosen} - {lane_zero[7], lane_zero};
    for (genvar j = 0; j < 16; j++) begin : channels
      assign lane[9 * (16 * i + j) +: 9] = own ? {row[8 * j + 7], row[8 * j +: 8]} : shared;
    end
  end

  for (genvar j = 0; j < 16; j++) begin : wide
    logic [7:0] weight, second_weight;
    always_comb begin
      weight = setup.pixels ? pixels[8 * j +: 8] : even[8 * j +: 8];
      second_weight = setup.pair ? odd[8 * j +: 8] : weight;
      if (setup.direct && !setup.depthwise) begin   // pools and add: the value itself
        weight = 1;
        second_weight = 1;
      end
    end
    assign wide_even[9 * j +: 9] = {weight[7], weight} - {wide_zero[7], wide_zero};
    assign wide_odd[9 * j +: 9] = {second_weight[7], second_weight} - {wide_zero[7], wide_zero};
  end
endmodule
