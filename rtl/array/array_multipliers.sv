// SPDX-License-Identifier: Apache-2.0
// The 64 multipliers with their accumulators, and the second rank of accumulators.
// Operands are registered first; the product is added in the next cycle. The lane operand has 9
// bits, as has the wide operand, because SECOND subtracts zero points.
module array_multipliers (
  input  logic clock, reset, enable,
  input  logic valid, first, last,       // operands; the first, the last of a group
  output logic stall,                    // the operands are not taken in this cycle
  input  logic maximum,                  // keep the largest lane operand instead of the sum
  input  logic [575:0] lane,             // 4 lanes x 16 operands of 9 bits
  input  logic [143:0] wide_even, wide_odd,  // 16 operands of 9 bits, for lanes 0, 2 and 1, 3
  input  logic result_taken,             // the second rank is free after this cycle
  output logic result,                   // the second rank holds a group
  output logic [1855:0] results);        // 4 lanes x 16 results of 29 bits

  logic busy, is_first, is_last, fire;
  logic [575:0] lane_held;
  logic [143:0] even_held, odd_held;
  assign stall = busy && is_last && result && !result_taken;
  assign fire = busy && !stall;

  always_ff @(posedge clock) begin
    if (reset) begin
      busy <= 0;
      result <= 0;
    end else if (enable) begin
      if (!stall) begin
        busy <= valid;
        is_first <= first;
        is_last <= last;
        if (valid) begin
          lane_held <= lane;
          even_held <= wide_even;
          odd_held <= wide_odd;
        end
      end
      if (fire && is_last) result <= 1;
      else if (result_taken) result <= 0;
    end
  end

  for (genvar i = 0; i < 64; i++) begin : elements
    logic signed [8:0] a, b;
    logic signed [17:0] product;
    logic [28:0] sum, base, after, second;
    assign a = lane_held[9 * i +: 9];
    assign b = (i / 16) % 2 == 0 ? even_held[9 * (i % 16) +: 9] : odd_held[9 * (i % 16) +: 9];
    assign product = a * b;
    assign base = is_first ? 29'd0 : sum;
    if (i < 16) begin : largest          // pools use lane 0 only
      logic greater;
      assign greater = is_first || a > $signed(sum[8:0]);
      assign after = maximum ? (greater ? {{20{a[8]}}, a} : sum)
                             : base + {{11{product[17]}}, product};
    end else begin : plain
      assign after = base + {{11{product[17]}}, product};
    end
    always_ff @(posedge clock) if (enable && fire) begin
      sum <= after;
      if (is_last) second <= after;
    end
    assign results[29 * i +: 29] = second;
  end
endmodule
