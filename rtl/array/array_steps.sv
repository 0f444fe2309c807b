// SPDX-License-Identifier: Apache-2.0
// Three nested loops over the steps of a command. Each part of the array runs through the steps at
// its own pace: loads are ahead of sums, sums ahead of results. Therefore each part has a counter of its own.
module array_steps (
  input  logic clock, start, enable, advance,
  input  logic [17:0] outer_count, middle_count, inner_count,
  output logic [17:0] outer, middle, inner,
  output logic middle_last, inner_last,   // the last step of the middle, of the inner loop
  output logic last,                      // the last step of all
  output logic done);                     // all steps are over

  logic outer_last;
  assign inner_last = inner + 1 == inner_count;
  assign middle_last = middle + 1 == middle_count;
  assign outer_last = outer + 1 == outer_count;
  assign last = inner_last && middle_last && outer_last;

  always_ff @(posedge clock) begin
    if (enable && start) begin
      outer <= 0;
      middle <= 0;
      inner <= 0;
      done <= 0;
    end else if (enable && advance) begin
      inner <= inner_last ? 0 : inner + 1;
      if (inner_last) middle <= middle_last ? 0 : middle + 1;
      if (inner_last && middle_last) outer <= outer + 1;
      if (last) done <= 1;
    end
  end
endmodule
