// SPDX-License-Identifier: Apache-2.0
// The accesses of the output stage in their order: writes of results, or reads of operands added to
// them. An item is a narrow access: 16 channels of a pixel, or 4 channels if they are 32 bits
// wide (wide) or lie along the lanes (PIXELS). Items of missing pixels or channels are not present.
module array_items (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic wide,
  input  logic [16:0] origin, row_stride, pixel_stride,
  input  logic advance,
  output logic present,
  output logic [16:0] address,
  output logic [4:0] bytes,
  output logic [1:0] slice,              // the item's 4 bytes of an entry of 16 (PIXELS)
  output logic entry_end,                // the item is the last of its entry
  output logic last, done);

  logic inner_last, middle_last, all_last, pixel_end, group_end;
  logic [17:0] outer, unused_middle, inner, block, element;
  logic [3:0] position, positions_end;
  logic [1:0] quad;
  array_steps steps (.clock, .start, .enable, .advance(advance && group_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer, .middle(unused_middle), .inner, .middle_last, .inner_last, .last(all_last), .done);
  assign positions_end = setup.window ? 4'(setup.units) - 1 : setup.group_pixels[3:0] - 1;
  assign pixel_end = !wide || setup.pixels || quad == 3;
  assign group_end = pixel_end && position == positions_end;
  assign last = all_last && group_end;

  logic exists;
  logic [16:0] row_address;
  logic [25:0] x_bytes, unused_y, unused_x;
  array_walker walker (.clock, .enable, .start, .step(advance && pixel_end), .group_end,
    .again(setup.block_inner && !inner_last),
    .restart(!setup.block_inner && inner_last && middle_last),
    .column(setup.window), .column_last(inner_last),
    .height(setup.walk_height), .width(setup.walk_width), .origin, .x_origin(26'd0),
    .step_y(row_stride), .step_x({9'd0, pixel_stride}), .stride_y(8'd1), .stride_x(8'd1),
    .pad_top(8'd0), .pad_left(8'd0), .exists, .row_address, .x_bytes,
    .y(unused_y), .x(unused_x));

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      position <= 0;
      quad <= 0;
    end else if (advance) begin
      if (!setup.pixels) quad <= pixel_end ? 0 : quad + 1;
      if (pixel_end) position <= group_end ? 0 : position + 1;
    end
  end

  // --- The channels of the item.
  logic [17:0] left;
  logic [4:0] most, count;
  assign block = setup.block_inner ? inner : outer;
  assign element = setup.pixels ? block << 2 : (block << 4) + 18'({quad, 2'b0});
  assign left = element < 18'(setup.channels) ? 18'(setup.channels) - element : 18'd0;
  assign most = setup.pixels || wide ? 5'd4 : 5'd16;
  assign count = left < 18'(most) ? left[4:0] : most;
  assign bytes = wide ? count << 2 : count;
  assign present = exists && count != 0;
  assign address = 17'(26'(row_address) + x_bytes) + (wide ? {element[14:0], 2'b0} : element[16:0]);
  assign slice = setup.pixels && !wide ? position[1:0] : 2'd0;
  assign entry_end = !setup.pixels || wide || position[1:0] == 3;
endmodule
