// SPDX-License-Identifier: Apache-2.0
// Loads the patches under the kernel, row by row: in each row of a patch, one access for each
// pixel of the group. Across and direct, the rows go to the operand file, pixel i to lane i (paired:
// to lanes 2 i and 2 i + 1). With PIXELS they go to the transposer.
// Add is a patch of one row: the first operand in lane 0, the second in lane 1.
module array_patches (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [6:0] freed,              // free rows of the ring, modulo 128
  input  logic buffer_released,          // of the transposer
  output logic request, access,          // access: the request needs the port
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic granted,
  input  logic [127:0] port_rdata,
  output logic write,                    // a cycle after the grant
  output logic [3:0] write_lanes,
  output logic [3:0] write_pixel,
  output logic [5:0] write_row,
  output logic [127:0] write_data,
  output logic row_complete,
  output logic [17:0] block);            // of channels

  // --- The row and the patch.
  logic inner_last, middle_last, done, unused_last, pixel_last, run_last, kernel_row_end, patch_end;
  logic [17:0] outer, unused_middle, inner, left, offset;
  logic [16:0] runs_left, down;          // down, across: bytes from the first run to this run
  logic [25:0] across;
  logic [25:0] dy, dx;                   // the same in rows and pixels of the input
  logic [7:0] kx;
  logic [3:0] pixel;
  logic [6:0] row, ahead;
  logic [1:0] rows_in_transposer;
  logic once;                            // the patches of a group are loaded once for all blocks
  assign once = setup.across && setup.resident;
  array_steps steps (.clock, .start, .enable, .advance(granted && pixel_last && patch_end),
    .outer_count(setup.outer), .middle_count(setup.middle),
    .inner_count(once ? 18'd1 : setup.inner),
    .outer, .middle(unused_middle), .inner, .middle_last, .inner_last, .last(unused_last), .done);

  assign pixel_last = setup.add ? pixel == 1 : 5'(pixel) + 1 == setup.group_pixels;
  assign run_last = left <= 16;
  assign patch_end = run_last && runs_left == 1;
  assign kernel_row_end = setup.joined || kx + 1 == setup.kernel_width;
  assign block = setup.add ? inner : outer;

  // --- Where the pixel's patch begins.
  logic exists, second_exists;
  logic [16:0] row_address, second_row_address;
  logic [25:0] x_bytes, second_x_bytes, y, x, unused_y, unused_x;
  array_walker walker (.clock, .enable, .start,
    .step(granted && (pixel_last || !setup.add)),
    .group_end(pixel_last),
    .again(!patch_end || (setup.block_inner && !inner_last)),
    .restart(patch_end && !setup.block_inner && inner_last && middle_last),
    .column(1'b0), .column_last(1'b0), .height(setup.walk_height), .width(setup.walk_width),
    .origin(setup.input_address - setup.top), .x_origin(26'd0 - setup.left),
    .step_y(setup.step_y), .step_x(setup.step_x), .stride_y(setup.stride_y),
    .stride_x(setup.stride_x), .pad_top(setup.pad_top), .pad_left(setup.pad_left),
    .exists, .row_address, .x_bytes, .y, .x);
  array_walker second_walker (.clock, .enable, .start,
    .step(granted && pixel_last), .group_end(1'b1), .again(!inner_last), .restart(1'b0),
    .column(1'b0), .column_last(1'b0), .height(setup.walk_height), .width(setup.walk_width),
    .origin(setup.weights), .x_origin(26'd0), .step_y(setup.second_row),
    .step_x({9'd0, setup.second_pixel}), .stride_y(8'd1), .stride_x(8'd1), .pad_top(8'd0),
    .pad_left(8'd0), .exists(second_exists), .row_address(second_row_address),
    .x_bytes(second_x_bytes), .y(unused_y), .x(unused_x));

  // --- The bytes of the access. A piece partly in the padding is read as a whole; the
  // bytes outside the input are masked when they arrive.
  logic [25:0] iy, ix;
  logic [25:0] from, to;                 // bytes from the row's first byte to the piece, to its end
  logic [17:0] channels_left;
  logic row_inside, pixel_inside;
  logic [4:0] low, high, piece;
  logic [15:0] mask;
  assign channels_left = 18'(setup.channels) - (block << 4);
  always_comb begin
    integer i;
    iy = y + dy;
    ix = x + (setup.joined ? 26'd0 : dx);
    row_inside = !iy[25] && iy < 26'(setup.input_height);
    // A joined run may begin left of the input.
    pixel_inside = setup.joined ? $signed(ix) < $signed(26'(setup.input_width))
                                : !ix[25] && ix < 26'(setup.input_width);
    from = x_bytes + 26'(offset);
    to = 26'(setup.row_bytes) - from;
    low = 0;
    if (setup.joined && from[25]) low = from >= 26'h3FFFFF0 ? 5'd0 - from[4:0] : 5'd16;
    piece = setup.direct ? (channels_left < 16 ? channels_left[4:0] : 5'd16)
                         : (left < 16 ? left[4:0] : 5'd16);
    high = 16;
    if (setup.joined && !from[25] && (to[25] || to < 16)) high = to[25] ? 5'd0 : to[4:0];
    if (setup.joined && from[25] && to < 16) high = to[4:0];
    for (i = 0; i < 16; i = i + 1)
      mask[i] = row_inside && pixel_inside && exists && i >= low && i < high;
    if (setup.add && (second_exists || exists)) mask = 16'hFFFF;
  end
  assign access = mask != 0;
  assign bytes = {1'b0, piece};
  assign address = setup.add && pixel[0]
    ? 17'(26'(second_row_address) + second_x_bytes) + {block[12:0], 4'd0}
    : row_address + x_bytes[16:0] + down + across[16:0] +
      (setup.direct ? {block[12:0], 4'd0} : offset[16:0]);

  assign ahead = row - freed;
  assign request = (setup.across || setup.transposed || setup.direct) && !done &&
                   (setup.transposed ? rows_in_transposer != 2 || buffer_released : ahead < 64);

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      left <= setup.run_bytes;
      offset <= 0;
      runs_left <= setup.runs;
      down <= 0;
      across <= 0;
      dy <= 0;
      dx <= 0;
      kx <= 0;
      pixel <= 0;
      row <= 0;
    end else if (granted) begin
      pixel <= pixel_last ? 0 : pixel + 1;
      if (pixel_last) begin
        row <= row + 1;
        offset <= offset + 16;
        left <= left - 16;
        if (run_last) begin
          offset <= 0;
          left <= setup.run_bytes;
          runs_left <= patch_end ? setup.runs : runs_left - 1;
          kx <= kernel_row_end ? 0 : kx + 1;
          across <= kernel_row_end ? 0 : across + setup.dilate_x;
          dx <= kernel_row_end ? 0 : dx + 26'(setup.dilation_x);
          if (kernel_row_end) begin
            down <= patch_end ? 0 : down + setup.dilate_y;
            dy <= patch_end ? 0 : dy + 26'(setup.dilation_y);
          end
        end
      end
    end
    if (start) rows_in_transposer <= 0;
    else rows_in_transposer <= rows_in_transposer + 2'(granted && pixel_last)
                               - 2'(buffer_released);
  end

  // --- The data, a cycle later.
  logic arrives, arrives_last;
  logic [15:0] arrives_mask;
  logic [7:0] padding;
  assign padding = setup.average ? 8'd0 : setup.maximum ? 8'h80 : setup.input_zero;
  always_ff @(posedge clock) if (enable) begin
    arrives <= granted && !start;
    arrives_last <= pixel_last;
    arrives_mask <= mask;
    write_pixel <= pixel;
    write_row <= row[5:0];
  end
  assign write = arrives;
  assign row_complete = arrives && arrives_last;
  assign write_lanes = !arrives || setup.transposed ? 4'd0
                     : setup.pair ? 4'd3 << {write_pixel[0], 1'b0} : 4'd1 << write_pixel[1:0];
  for (genvar i = 0; i < 16; i++) begin : bytes_of_row
    assign write_data[8 * i +: 8] = arrives_mask[i] ? port_rdata[8 * i +: 8] : padding;
  end
endmodule
