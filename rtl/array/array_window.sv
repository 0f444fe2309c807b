// SPDX-License-Identifier: Apache-2.0
// Loads the columns under a depthwise kernel. The operand file keeps the columns of the present
// group as a ring; each group of pixels needs only the columns newly under the kernel.
// Lane i computes output row i of a strip: pixel row p of a column belongs to its kernel row ky
// if p = i * stride_y + ky * dilation_y. A pixel goes to every lane with a use for this row.
// Pixel rows are loaded from the top, so that the sums can follow the loads from the top as well,
// and the loads for the next group follow the sums of the present one.
module array_window (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [1:0] sums_group,         // groups summed, modulo 4
  input  logic [15:0] rows_done, rows_begun,   // rows behind the sums
  input  logic [7:0] columns_done,
  output logic request, access,
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic granted,
  input  logic [127:0] port_rdata,
  output logic [3:0] write_lanes,
  output logic [23:0] write_rows,
  output logic [127:0] write_data,
  output logic [1:0] loaded_group,       // groups loaded, modulo 4
  output logic [15:0] loaded_rows,       // pixel rows loaded of the group after these rows
  output logic [7:0] loaded_columns,     // columns there in the row after these rows
  output logic [7:0] old_columns,        // columns kept from the group before
  output logic [17:0] block);            // of channels

  logic inner_last, middle_last, done, unused_last, column_end, group_end;
  logic [17:0] outer, unused_middle, inner;
  logic [15:0] p;                        // pixel row
  logic [7:0] column, columns;
  logic [5:0] slot, first_slot, next_slot;
  logic [1:0] group;
  logic free;
  array_steps steps (.clock, .start, .enable, .advance(granted && group_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer, .middle(unused_middle), .inner, .middle_last, .inner_last, .last(unused_last), .done);
  assign block = outer;
  assign columns = inner == 0 ? setup.window_columns : setup.new_columns;
  assign column_end = column + 1 == columns;
  assign group_end = column_end && 18'(p) + 1 == setup.column_pixels;
  assign next_slot = 8'(slot) + 1 == setup.ring_columns ? 6'd0 : slot + 1;
  assign request = setup.window && !done &&
                   (group == sums_group || (group == sums_group + 2'd1 && free));

  // With room for two groups' columns, only the first group of a strip replaces columns in use.
  assign free = (setup.roomy && inner != 0) || rows_done > p ||
                (rows_begun > p && columns_done > column);

  // --- Address and coordinates: of the strip, of the first new column, of the pixel.
  logic [25:0] strip_y, y, first_x, x;
  logic [16:0] strip_row, row, first_column, x_bytes;
  logic [17:0] channels_left;
  logic close;                           // the columns of two groups follow each other
  assign close = setup.stride_x <= setup.window_columns;
  assign channels_left = 18'(setup.channels) - (outer << 4);
  assign access = !y[25] && y < 26'(setup.input_height) && !x[25] && x < 26'(setup.input_width);
  assign address = row + x_bytes + {outer[12:0], 4'd0};
  assign bytes = channels_left < 16 ? channels_left[5:0] : 6'd16;

  always_ff @(posedge clock) if (enable) begin
    if (start || (granted && group_end && inner_last)) begin
      first_x <= 26'd0 - 26'(setup.pad_left);
      x <= 26'd0 - 26'(setup.pad_left);
      first_column <= 17'd0 - setup.left[16:0];
      x_bytes <= 17'd0 - setup.left[16:0];
    end else if (granted) begin
      x <= column_end ? first_x : x + 1;
      x_bytes <= column_end ? first_column : x_bytes + setup.input_pixel[16:0];
      if (group_end) begin
        first_x <= close ? x + 1 : first_x + 26'(setup.stride_x);
        x <= close ? x + 1 : first_x + 26'(setup.stride_x);
        first_column <= close ? x_bytes + setup.input_pixel[16:0]
                              : first_column + setup.step_x[16:0];
        x_bytes <= close ? x_bytes + setup.input_pixel[16:0]
                         : first_column + setup.step_x[16:0];
      end
    end
    if (start || (granted && group_end && inner_last && middle_last)) begin
      strip_y <= 26'd0 - 26'(setup.pad_top);
      y <= 26'd0 - 26'(setup.pad_top);
      strip_row <= setup.input_address - setup.top;
      row <= setup.input_address - setup.top;
    end else if (granted && column_end) begin
      y <= y + 1;
      row <= row + setup.input_row;
      if (group_end) begin
        y <= strip_y;
        row <= strip_row;
        if (inner_last) begin
          strip_y <= strip_y + {16'd0, setup.stride_y, 2'd0};
          y <= strip_y + {16'd0, setup.stride_y, 2'd0};
          strip_row <= strip_row + {setup.step_y[14:0], 2'd0};
          row <= strip_row + {setup.step_y[14:0], 2'd0};
        end
      end
    end
    if (start) begin
      group <= 0;
      first_slot <= 0;
      slot <= 0;
    end else if (granted) begin
      slot <= column_end && !group_end ? first_slot : next_slot;
      if (group_end) begin
        group <= group + 1;
        first_slot <= next_slot;
      end
    end
    if (start) begin
      p <= 0;
      column <= 0;
    end else if (granted) begin
      column <= column_end ? 0 : column + 1;
      if (column_end) p <= group_end ? 0 : p + 1;
    end
  end

  // --- The lanes for this pixel row, and the places.
  logic [3:0] needed;
  logic [23:0] rows;
  for (genvar lane = 0; lane < 4; lane++) begin : lanes
    logic [9:0] wait_rows, first_wait;   // rows until the lane's first
    logic [7:0] phase, kernel_row;
    logic [5:0] file_row;
    assign first_wait = 10'(setup.stride_y) * lane;
    assign needed[lane] = wait_rows == 0 && phase == 0 && kernel_row < setup.kernel_height;
    assign rows[6 * lane +: 6] = file_row + slot;
    always_ff @(posedge clock) if (enable) begin
      if (start || (granted && group_end)) begin
        wait_rows <= first_wait;
        phase <= 0;
        kernel_row <= 0;
        file_row <= 0;
      end else if (granted && column_end) begin
        if (wait_rows != 0) wait_rows <= wait_rows - 1;
        else if (phase + 1 != setup.dilation_y) phase <= phase + 1;
        else begin
          phase <= 0;
          file_row <= file_row + setup.ring_columns[5:0];
          if (kernel_row != 255) kernel_row <= kernel_row + 1;
        end
      end
    end
  end

  // --- The data, a cycle later.
  logic [7:0] next_old;
  logic arrives, arrives_access, arrives_row, arrives_group;
  logic [3:0] arrives_lanes;
  always_ff @(posedge clock) if (enable) begin
    arrives <= granted && !start;
    arrives_access <= access;
    arrives_row <= column_end;
    arrives_group <= group_end;
    next_old <= inner_last ? 8'd0 : setup.window_columns - setup.new_columns;
    arrives_lanes <= needed;
    write_rows <= rows;
    if (start) begin
      loaded_group <= 0;
      loaded_rows <= 0;
      loaded_columns <= 0;
      old_columns <= 0;
    end else if (arrives && !arrives_row) begin
      loaded_columns <= loaded_columns + 1;
    end else if (arrives) begin
      // A strip's first group has nothing from before.
      loaded_columns <= arrives_group ? next_old : old_columns;
      if (arrives_group) old_columns <= next_old;
      loaded_rows <= arrives_group ? 0 : loaded_rows + 1;
      if (arrives_group) loaded_group <= loaded_group + 1;
    end
  end
  assign write_lanes = arrives ? arrives_lanes : 4'd0;
  assign write_data = arrives_access ? port_rdata : {16{setup.input_zero}};
endmodule
