// SPDX-License-Identifier: Apache-2.0
// Steps through the operands of each group of results: one product of all multipliers a cycle, as
// soon as its operands are there. It reads the operand file as a ring (across, direct, PIXELS) or
// at the columns of a depthwise window.
module array_sums (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  // what is there
  input  logic [6:0] complete,           // rows of the ring loaded, modulo 128
  input  logic transposer_full,
  input  logic weights_ready,
  input  logic [1:0] loaded_group,
  input  logic [15:0] loaded_rows,
  input  logic [7:0] loaded_columns, old_columns,
  input  logic stall,                    // the multipliers take nothing
  // the operands
  output logic valid, first, last,
  output logic [5:0] file_row,
  output logic [3:0] file_byte,
  output logic [3:0] transposer_byte,
  output logic weights_take, transposer_release,
  // progress
  output logic [6:0] freed,
  output logic [1:0] sums_group,
  // of the window, for the next group's pixels: done rows, rows done as far as
  // columns_done
  output logic [15:0] rows_done, rows_begun,
  output logic [7:0] columns_done);

  logic inner_last, unused_middle_last, done, unused_last, row_end, run_end, step_end, again;
  logic [17:0] unused_outer, unused_middle, unused_inner, left;
  logic [16:0] runs_left;
  logic [6:0] row, group_row;
  logic [3:0] byte_index, weight;        // weight: of the row of lane weights
  logic fresh, need_ok;
  array_steps steps (.clock, .start, .enable, .advance(valid && step_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer(unused_outer), .middle(unused_middle), .inner(unused_inner),
    .middle_last(unused_middle_last), .inner_last, .last(unused_last), .done);

  // --- The position in the patch. Paired lanes take two bytes at once, which end with the run.
  logic [4:0] taken;
  assign taken = setup.pair ? 5'd2 : 5'd1;
  assign run_end = left <= 18'(taken);
  assign row_end = run_end || 5'(byte_index) + taken >= 16;
  assign step_end = run_end && runs_left == 1;
  // The rows of a resident patch serve all blocks, resident weights all groups of pixels. They are
  // given up row by row in the last pass, so that the next rows can be loaded behind it.
  assign again = setup.resident && !inner_last;
  assign freed = again ? group_row : row;

  // --- The position in the window.
  logic [8:0] moved;
  logic [7:0] base_slot, slot, after_slot, next_base;
  logic [5:0] kernel_row;
  logic [15:0] need, last_lane, sums_row;   // sums_row: the pixel row of lane 0
  logic [7:0] column;
  assign after_slot = slot + setup.dilation_x >= setup.ring_columns
                    ? slot + setup.dilation_x - setup.ring_columns : slot + setup.dilation_x;
  // The columns of the next group follow in the ring; a new strip loads them all.
  assign next_base = moved >= 9'(setup.ring_columns) ? 8'(moved - 9'(setup.ring_columns)) : moved[7:0];
  assign moved = 9'(base_slot) + (inner_last ? 9'(setup.window_columns) : 9'(setup.new_columns));
  assign last_lane = setup.units == 4 ? 16'(setup.stride_y) * 3
                   : setup.units == 3 ? 16'(setup.stride_y) * 2
                   : setup.units == 2 ? 16'(setup.stride_y) : 16'd0;
  assign need = sums_row + last_lane;
  // The columns of earlier groups are there; others are as far as their row is loaded.
  assign need_ok = loaded_group != sums_group || loaded_rows > need || column < old_columns ||
                   (loaded_rows == need && column < loaded_columns);

  // The next group's pixels replace the first columns.
  assign rows_done = sums_row;
  assign rows_begun = runs_left == 1 ? 16'hFFFF : sums_row + 16'(setup.dilation_y);
  assign columns_done = column;

  logic operands, needs_weights;
  assign operands = setup.window ? need_ok
                  : complete != row && (!setup.transposed || transposer_full);
  assign needs_weights = setup.across || setup.depthwise;
  assign valid = !done && !start && operands && (!needs_weights || weights_ready) && !stall;
  assign first = fresh;
  assign last = step_end;
  assign file_row = setup.window ? kernel_row + slot[5:0] : row[5:0];
  assign file_byte = setup.transposed ? weight : byte_index;
  assign transposer_byte = byte_index;
  assign weights_take = valid && needs_weights;
  assign transposer_release = valid && setup.transposed && row_end;

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      left <= setup.run_bytes;
      runs_left <= setup.runs;
      row <= 0;
      group_row <= 0;
      byte_index <= 0;
      weight <= 0;
      fresh <= 1;
      base_slot <= 0;
      slot <= 0;
      kernel_row <= 0;
      sums_row <= 0;
      column <= 0;
      sums_group <= 0;
    end else if (valid) begin
      fresh <= step_end;
      left <= run_end ? setup.run_bytes : left - 18'(taken);
      byte_index <= row_end ? 0 : byte_index + taken[3:0];
      if (run_end) runs_left <= step_end ? setup.runs : runs_left - 1;
      weight <= step_end ? 0 : weight + 1;
      if (setup.transposed ? weight == 15 || step_end : row_end) row <= row + 1;
      if (step_end) begin
        if (again) row <= group_row;
        else group_row <= row + 1;
        sums_group <= sums_group + 1;
      end
      slot <= run_end ? base_slot : after_slot;
      column <= run_end ? 0 : column + setup.dilation_x;
      if (run_end) begin
        kernel_row <= kernel_row + setup.ring_columns[5:0];
        sums_row <= sums_row + 16'(setup.dilation_y);
      end
      if (step_end) begin
        kernel_row <= 0;
        sums_row <= 0;
        base_slot <= next_base;
        slot <= next_base;
      end
    end
  end
endmodule
