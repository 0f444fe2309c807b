// SPDX-License-Identifier: Apache-2.0
// How the array works on a command: its loops, its patches and the cycles of section 3.5.
// Purely combinational; the command check holds the inputs.
module array_plan (
  input  logic [31:0] next,
  input  logic convolution, depthwise, add, maximum, average,
  input  logic pixels, raw, accumulate, residual, second, nibbles, product, joined,
  input  logic [15:0] taps,
  input  logic [17:0] size, positions, rows, halves, weight_words, blocks,
  input  logic [2:0] full_quads, last_quads,
  input  logic pair,
  input  logic [2:0] group,
  input  logic [20:0] group_rows,
  input  logic [7:0] share,          // n r // B
  input  logic [16:0] runs,
  input  logic [17:0] run_bytes, window_columns, new_columns, column_pixels,
  input  logic [17:0] kernel_span, new_span, new_pixels, old_pixels, row_elements,
  input  logic [16:0] step_y, dilate_y, top,
  input  logic [25:0] step_x, dilate_x, left,
  input  logic [17:0] row_bytes,
  // Of addresses and strides the array needs 17 bits.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [767:0] words,
  // verilator lint_on UNUSEDSIGNAL
  output array_pkg::setup_t setup);

  logic [15:0] output_height, output_width, channels;
  logic [7:0] stride_y, stride_x;
  assign {stride_x, stride_y} = words[32 * 13 + 16 +: 16];
  assign {output_width, output_height} = words[32 * 9 +: 32];
  assign channels = words[32 * 12 + 16 +: 16];

  // --- The kind of work.
  logic across, window, direct, stays, few_blocks, flat;
  logic [17:0] groups;
  assign across = convolution && !pixels;
  // A kernel that nearly fills the operand file at larger strides would wait for its columns. Such a
  // kernel is computed pixel by pixel.
  assign window = depthwise && positions != 1 && kernel_span <= 64 &&
                  (kernel_span <= 32 || (stride_y == 1 && stride_x <= 2) ||
                   (stride_y == 2 && stride_x == 1));
  assign direct = !convolution && !window;
  assign groups = pixels ? 18'((19'(positions) + 19'd15) >> 4)
                : pair ? 18'd1 : 18'((19'(positions) + 19'd3) >> 2);
  assign few_blocks = blocks <= 2;
  assign stays = groups == 1 && rows <= 64;   // the rows of the only group of pixels
  assign flat = words[32 * 8 +: 32] == 32'(channels) && words[32 * 11 +: 32] == 32'(channels) &&
                words[32 * 22 +: 32] == 32'(channels);

  // --- Cycles. The names are the manual's.
  logic [23:0] n, m, k, r, w, weights, parameters, loads, l, t, t_words, row_loads;
  function automatic logic [23:0] longest(input logic [23:0] a, b, c);
    logic [23:0] ab;
    ab = a > b ? a : b;
    longest = ab > c ? ab : c;
  endfunction
  always_comb begin
    m = raw ? 24'd0 : residual ? 24'd4 : 24'd1;
    t = 24'(taps);
    t_words = nibbles ? (t + 3) >> 2 : (t + 1) >> 1;
    n = across ? 24'(group) : pixels ? 24'd16
      : window && output_height > 1 ? (output_height > 3 ? 24'd4 : 24'(output_height)) : 24'd1;
    k = pair ? 24'(halves) : 24'(size);
    weights = second ? k : 24'(weight_words);
    parameters = few_blocks ? 24'd0 : 24'd5;
    row_loads = rows <= 32 ? 24'(share) : 24'(group_rows);
    loads = stays ? 24'd0 : row_loads;
    l = second ? ((24'(size) + 15) >> 4) << 2 : nibbles ? (24'(size) + 15) >> 4 : (24'(size) + 7) >> 3;
    // R: requantisation; W: writes, and reads of operands to add.
    if (across) r = pair ? n * m << 2 : m << 4;
    else if (pixels) r = m << 4;
    else if (depthwise) r = n * m << 2;
    else r = add ? 24'd12 : 24'd4;
    if (across) w = (raw ? n << 2 : n) + (accumulate ? n << 2 : 24'd0) + (residual ? n : 24'd0);
    else w = accumulate || residual ? n << 1 : n;

    setup.once = 4 + (residual || add ? 24'd1 : 24'd0);
    setup.each_outer = 0;
    setup.each_middle = 0;
    setup.drain = 8 + longest(r, w, 0);
    if (across) begin
      setup.once = setup.once + (few_blocks ? 24'(blocks * 5) : 24'd0) +
                   (stays || rows <= 32 ? 24'(group_rows) : n << 5);
      setup.period = longest(k, r, weights + w + parameters + loads);
    end else if (pixels) begin
      setup.each_outer = 2 + (size <= 1024 ? l : 24'd0);
      setup.period = longest(r, (24'(rows) << 4) + w + (size <= 1024 ? 24'd0 : l), 0);
      setup.drain = setup.drain + 16;
    end else if (window) begin
      setup.each_outer = 5;
      setup.each_middle = 24'(old_pixels);
      setup.period = longest(t, r, t_words + 24'(new_pixels) + w);
    end else if (depthwise) begin
      setup.each_outer = 5;
      setup.period = longest(r, t + t_words + w, 0);
    end else begin
      setup.period = add ? 24'd12 : longest(t + 1, 4, 0);
    end

    // --- The loops.
    setup.outer = across ? groups : add ? 18'(output_height) : blocks;
    setup.middle = window ? 18'((17'(output_height) + 17'd3) >> 2)
                 : add ? (flat ? 18'd1 : 18'(output_width))
                 : direct ? 18'(output_height) : 18'd1;
    setup.inner = across ? blocks : pixels ? groups
                : add ? (flat ? 18'((19'(row_elements) + 19'd15) >> 4) : blocks) : 18'(output_width);
    setup.walk_height = output_height;
    setup.walk_width = add && flat ? 16'd1 : output_width;
    setup.channels = add && flat ? row_elements[16:0] : 17'(channels);

    // --- The patch.
    setup.runs = add ? 17'd1 : window ? 17'(words[32 * 13 +: 8]) : direct ? 17'(taps) : runs;
    setup.run_bytes = window ? 18'(words[32 * 13 + 8 +: 8]) : direct ? 18'd1 : run_bytes;
    setup.kernel_size = depthwise ? 18'(taps) : size;
    setup.group_pixels = across || pixels ? n[4:0] : 5'd1;
    setup.full_quads = full_quads;
    setup.last_quads = last_quads;
    setup.units = across || window ? n[2:0] : pixels ? 3'd4 : 3'd1;
    setup.window_columns = window_columns[7:0];
    setup.new_columns = new_columns[7:0];
    setup.roomy = kernel_span + new_span <= 64;
    setup.ring_columns = setup.roomy ? 8'(window_columns + new_columns) : window_columns[7:0];
    setup.column_pixels = column_pixels;

    // --- Flags and fields.
    setup.next = next;
    setup.convolution = convolution;
    setup.depthwise = depthwise;
    setup.add = add;
    setup.maximum = maximum;
    setup.average = average;
    setup.pixels = pixels;
    setup.raw = raw;
    setup.accumulate = accumulate;
    setup.residual = residual;
    setup.second = second;
    setup.nibbles = nibbles;
    setup.product = product;
    setup.across = across;
    setup.transposed = pixels;
    setup.window = window;
    setup.direct = direct;
    setup.pair = pair;
    setup.joined = convolution && joined;
    setup.resident = across ? stays || rows <= 32 : pixels && size <= 1024;
    setup.block_inner = across || add;
    setup.keep_parameters = across && few_blocks;
    setup.input_address = words[32 * 2 +: 17];
    setup.weights = words[32 * 3 +: 17];
    setup.parameters = words[32 * 4 +: 17];
    setup.output_address = words[32 * 5 +: 17];
    setup.extra = words[32 * 16 +: 17];
    setup.constants = add ? words[32 * 4 +: 17] : words[32 * 19 +: 17];
    setup.input_height = add ? output_height : words[32 * 6 +: 16];
    setup.input_width = add ? output_width : words[32 * 6 + 16 +: 16];
    setup.input_row = words[32 * 7 +: 17];
    setup.input_pixel = words[32 * 8 +: 26];
    setup.output_row = words[32 * 10 +: 17];
    setup.output_pixel = words[32 * 11 +: 17];
    setup.row_bytes = row_bytes;
    {setup.stride_x, setup.stride_y, setup.kernel_width, setup.kernel_height} = words[32 * 13 +: 32];
    {setup.pad_left, setup.pad_top, setup.dilation_x, setup.dilation_y} = words[32 * 14 +: 32];
    {setup.clamp_max, setup.clamp_min, setup.output_zero, setup.input_zero} = words[32 * 15 +: 32];
    setup.extra_row = words[32 * 17 +: 17];
    setup.extra_pixel = words[32 * 18 +: 17];
    {setup.residual_max, setup.residual_min, setup.second_zero, setup.residual_zero} =
      words[32 * 20 +: 32];
    setup.second_row = words[32 * 21 +: 17];
    setup.second_pixel = words[32 * 22 +: 17];
    setup.step_y = step_y;
    setup.dilate_y = dilate_y;
    setup.top = top;
    setup.step_x = step_x;
    setup.dilate_x = dilate_x;
    setup.left = left;
    if (add) begin   // an element of add is a patch of one pixel without padding
      setup.step_y = words[32 * 7 +: 17];
      setup.step_x = words[32 * 8 +: 26];
      setup.top = 0;
      setup.left = 0;
      setup.pad_top = 0;
      setup.pad_left = 0;
      setup.stride_y = 1;
      setup.stride_x = 1;
      setup.kernel_height = 1;
      setup.kernel_width = 1;
    end
  end
endmodule
