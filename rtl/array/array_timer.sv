// SPDX-License-Identifier: Apache-2.0
// Counts the cycles of a command by section 3.5 of the manual. The first cycle is the one
// with start.
module array_timer (
  input  logic clock, reset, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  output logic period_end,               // the last cycle of a step
  output logic over);                    // the last cycle of the command, or later

  logic inner_last, middle_last, done, last, running;
  logic [17:0] unused_outer, unused_middle, unused_inner;
  logic [23:0] left;                     // cycles of the interval, this one included
  array_steps steps (.clock, .start, .enable, .advance(period_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer(unused_outer), .middle(unused_middle), .inner(unused_inner),
    .middle_last, .inner_last, .last(last), .done);
  assign period_end = running && !done && left == 1;
  assign over = running && done && left == 1 && !start;

  always_ff @(posedge clock) begin
    if (reset) running <= 0;
    else if (enable) begin
      if (start) begin
        running <= 1;
        left <= setup.once + setup.each_outer + setup.each_middle + setup.period - 1;
      end else if (period_end) begin
        left <= last ? setup.drain
              : setup.period + (inner_last ? setup.each_middle : 24'd0) +
                (inner_last && middle_last ? setup.each_outer : 24'd0);
      end else if (left != 1) begin
        left <= left - 1;
      end
    end
  end
endmodule
