// SPDX-License-Identifier: Apache-2.0
// One requantiser: TFLite's requantisation in four stages. An operand given in cycle t has its
// result in the register in cycle t + 4, so that it can be an operand again in that cycle.
module array_requantise (
  input  logic clock, enable,
  // stage 0: the left shift, which wraps
  input  logic [31:0] operand,
  input  logic [4:0] left, right,
  input  logic [31:0] multiplier,
  output logic [31:0] shifted,           // in cycle t + 1
  // stage 3, in cycle t + 3: what becomes of the result
  input  logic wide,                     // stays a number of 32 bits, else a clamped byte
  input  logic [7:0] zero, low, high,
  output logic [31:0] next_result,       // in cycle t + 3
  output logic [31:0] result);           // in cycle t + 4

  logic [31:0] factor, rounded;
  logic [4:0] right_1, right_2, right_3;
  logic signed [63:0] product;
  logic both_lowest;                     // -2^31 times -2^31: the only product that saturates

  // --- Stage 2: the upper half of the doubled product, rounded.
  // Bit 63 differs from bit 62 in the saturating product only.
  // verilator lint_off UNUSEDSIGNAL
  logic signed [63:0] nudged;
  // verilator lint_on UNUSEDSIGNAL
  assign nudged = product + 64'sh4000_0000;

  // --- Stage 3: the right shift, which rounds halves away from zero. Then zero point and clamp.
  logic signed [32:0] lowered;
  logic signed [33:0] twice, quotient;
  logic signed [33:0] moved;
  logic signed [7:0] lifted, byte_result;
  always_comb begin
    // The shift keeps one bit below the result: adding one there adds a half. A negative number is
    // lowered by the least bit first, so that its exact half rounds down, away from zero.
    lowered = $signed({rounded[31], rounded}) - $signed({32'd0, rounded[31] && right_3 != 0});
    twice = $signed({lowered, 1'b0}) >>> right_3;
    quotient = (twice + 34'sd1) >>> 1;
    moved = quotient + {{26{zero[7]}}, zero};
    lifted = moved < $signed({{26{low[7]}}, low}) ? low : moved > 34'sd127 ? 8'sd127 : moved[7:0];
    byte_result = lifted > $signed(high) ? high : lifted;
    next_result = wide ? quotient[31:0] : {{24{byte_result[7]}}, byte_result};
  end

  always_ff @(posedge clock) if (enable) begin
    shifted <= operand << left;
    factor <= multiplier;
    right_1 <= right;
    product <= $signed(shifted) * $signed(factor);
    both_lowest <= shifted == 32'h8000_0000 && factor == 32'h8000_0000;
    right_2 <= right_1;
    rounded <= both_lowest ? 32'h7FFF_FFFF : nudged[62:31];
    right_3 <= right_2;
    result <= next_result;
  end
endmodule
