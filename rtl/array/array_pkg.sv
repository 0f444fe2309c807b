// SPDX-License-Identifier: Apache-2.0
// Types shared by the modules of the MAC array.
package array_pkg;

  // The decoded command. The command check fills it in before the command starts, and nothing
  // changes it while the command runs. Addresses and strides are kept modulo the 128 KB of SRAM:
  // the check has shown that no tensor leaves the SRAM, so the upper bits say nothing more.
  typedef struct packed {
    logic [31:0] next;

    // Kind and flags. A flag without effect for the kind is 0 here.
    logic convolution, depthwise, add, maximum, average;
    logic pixels, raw, accumulate, residual, second, nibbles, product;

    // How the array works on it; only one of the first four is 1.
    logic across;        // 16 channels across, patches of up to 4 pixels in the operand file
    logic transposed;    // PIXELS: 16 pixels across, weights of 4 channels in the operand file
    logic window;        // depthwise on columns in the operand file
    logic direct;        // pools, add, depthwise pixel by pixel: each access is summed once
    logic pair;          // across, each pixel in two lanes
    logic joined;        // a row of the kernel is one run of bytes
    logic resident;      // rows of the operand file stay for all passes
    logic block_inner;   // the innermost loop goes over blocks of channels, else the outermost
    logic keep_parameters;  // all parameters fit the store: loaded once

    logic [16:0] input_address, weights, parameters, output_address, extra, constants;
    logic [16:0] output_row, output_pixel, extra_row, extra_pixel, second_row, second_pixel;
    logic [16:0] input_row;
    logic [25:0] input_pixel;
    logic [15:0] input_height, input_width;
    logic [17:0] row_bytes;      // of a row of the input
    logic [7:0]  kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x;
    logic [7:0]  pad_top, pad_left;
    logic [7:0]  input_zero, output_zero, clamp_min, clamp_max;
    logic [7:0]  residual_zero, second_zero, residual_min, residual_max;

    // Distances in bytes: stride, dilation and padding times the strides of the input.
    logic [16:0] step_y, dilate_y, top;
    logic [25:0] step_x, dilate_x, left;

    // The walk over the output; add may see a row as one pixel of many channels.
    logic [15:0] walk_height, walk_width;
    logic [16:0] channels;

    // The loops of the command: outer x middle x inner steps.
    logic [17:0] outer, middle, inner;

    // The patch: runs of bytes. In direct, a run is one access; in window, one row of the kernel.
    logic [16:0] runs;
    logic [17:0] run_bytes;
    logic [17:0] kernel_size;   // K, in depthwise kernel_height * kernel_width
    logic [4:0]  group_pixels;  // pixels of a group: 1, 2, 4 or 16
    logic [2:0]  full_quads, last_quads;  // bytes of a row of weights in fours, of the last block: 1, 2 or 4
    logic [2:0]  units;         // units of the output stage in a group: 16 results each
    logic [7:0]  window_columns, new_columns, ring_columns;
    logic        roomy;         // the ring of columns has room for the next group's
    logic [17:0] column_pixels;

    // Cycles.
    logic [23:0] once, each_outer, each_middle, period, drain;
  } setup_t;

endpackage
