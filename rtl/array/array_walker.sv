// SPDX-License-Identifier: Apache-2.0
// Walks over the output positions of a command, and over what they cover in another tensor: a step
// to the next output position moves the address by step_y or step_x. The coordinates y and x are
// those in the other tensor; they start at minus the padding.
// A group of positions can be walked again: the walker keeps where the group began.
module array_walker (
  input  logic clock, enable,
  input  logic start,               // to the first position of all
  input  logic step,                // to the next position
  input  logic group_end,           // with step: this is the last position of its group
  input  logic again,               // with group_end: walk the group again
  input  logic restart,             // with group_end: walk the whole output again
  input  logic column,              // a group is a column of up to 4 rows, not pixels in a row
  input  logic column_last,         // with group_end: the strip of 4 rows is over
  input  logic [15:0] height, width,   // of the output
  input  logic [16:0] origin,          // address of the position (0, 0) less the padding's rows
  input  logic [25:0] x_origin,        // bytes of the padding to the left, negative
  input  logic [16:0] step_y,
  input  logic [25:0] step_x,
  input  logic [7:0] stride_y, stride_x, pad_top, pad_left,
  output logic exists,              // the position exists
  output logic [16:0] row_address,  // of the first byte of the row
  output logic [25:0] x_bytes,      // from there to the position
  output logic signed [25:0] y, x);

  typedef struct packed {
    logic [16:0] row, column;       // of the output
    logic [16:0] address;
    logic [25:0] bytes, y, x;
  } place_t;
  place_t here, group, first, next, next_row, next_column;

  always_comb begin
    first.row = 0;
    first.column = 0;
    first.address = origin;
    first.bytes = x_origin;
    first.y = 26'd0 - 26'(pad_top);
    first.x = 26'd0 - 26'(pad_left);
    next_row = here;
    next_row.row = here.row + 1;
    next_row.address = here.address + step_y;
    next_row.y = here.y + 26'(stride_y);
    next_column = here;
    next_column.column = here.column + 1;
    next_column.bytes = here.bytes + step_x;
    next_column.x = here.x + 26'(stride_x);
    if (column) begin
      next = next_row;
      if (group_end && column_last) begin
        next.column = 0;
        next.bytes = x_origin;
        next.x = first.x;
      end else if (group_end) begin
        next.row = group.row;
        next.address = group.address;
        next.y = group.y;
        next.column = next_column.column;
        next.bytes = next_column.bytes;
        next.x = next_column.x;
      end
    end else if (here.column + 1 == 17'(width)) begin
      next = next_row;
      next.column = 0;
      next.bytes = x_origin;
      next.x = first.x;
    end else begin
      next = next_column;
    end
    if (group_end && again) next = group;
    if (group_end && restart) next = first;
  end

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      here <= first;
      group <= first;
    end else if (step) begin
      here <= next;
      if (group_end) group <= next;
    end
  end
  assign exists = here.row < 17'(height);
  assign row_address = here.address;
  assign x_bytes = here.bytes;
  assign y = here.y;
  assign x = here.x;
endmodule
