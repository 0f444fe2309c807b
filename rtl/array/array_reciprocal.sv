// SPDX-License-Identifier: Apache-2.0
// For the average pool: the reciprocal of the number of values under the kernel inside the input.
// It counts rows and columns of the kernel inside the input, four a cycle, and multiplies. Up to
// 64 values the reciprocal is in a table; beyond, a division takes 31 cycles: the sums take longer.
// The reciprocal is 2^(30 + exponent) / number rounded up, between 2^30 and 2^31.
module array_reciprocal (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  output logic ready,
  output logic [31:0] reciprocal,
  output logic [4:0] exponent,
  input  logic take);

  logic inner_last, middle_last, done, unused_last, next_pixel, unused_exists;
  logic [17:0] unused_outer, unused_middle, unused_inner;
  logic [16:0] unused_address;
  logic [25:0] unused_bytes, y, x;
  array_steps steps (.clock, .start, .enable, .advance(next_pixel),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer(unused_outer), .middle(unused_middle), .inner(unused_inner), .middle_last, .inner_last,
    .last(unused_last), .done);
  array_walker walker (.clock, .enable, .start, .step(next_pixel), .group_end(1'b1),
    .again(1'b0), .restart(inner_last && middle_last), .column(1'b0), .column_last(1'b0),
    .height(setup.walk_height), .width(setup.walk_width), .origin(17'd0), .x_origin(26'd0),
    .step_y(17'd0), .step_x(26'd0), .stride_y(setup.stride_y), .stride_x(setup.stride_x),
    .pad_top(setup.pad_top), .pad_left(setup.pad_left), .exists(unused_exists),
    .row_address(unused_address), .x_bytes(unused_bytes), .y, .x);

  // --- Counting: four taps of the kernel a cycle, in both directions.
  logic [2:0] in_y, in_x;
  logic [7:0] tap, rows, columns;
  logic [17:0] dy, dx;                   // tap * dilation
  always_comb begin
    integer i;
    logic [25:0] iy, ix;
    in_y = 0;
    in_x = 0;
    for (i = 0; i < 4; i = i + 1) begin
      iy = y + 26'(dy) + 26'(setup.dilation_y) * 26'(i);
      ix = x + 26'(dx) + 26'(setup.dilation_x) * 26'(i);
      if (32'(tap) + i < 32'(setup.kernel_height) && !iy[25] && iy < 26'(setup.input_height))
        in_y = in_y + 1;
      if (32'(tap) + i < 32'(setup.kernel_width) && !ix[25] && ix < 26'(setup.input_width))
        in_x = in_x + 1;
    end
  end

  logic [31:0] of_number [0:64];
  initial begin
    integer n;
    for (n = 1; n <= 64; n = n + 1)
      of_number[n] = 32'(((64'd1 << (30 + $clog2(n))) - 1) / 64'(n) + 1);
    of_number[0] = 32'h4000_0000;
  end

  typedef enum logic [1:0] {Count, Look, Divide, Wait} state_t;
  state_t state;
  logic [15:0] number, remainder;
  logic [16:0] trial;
  logic [30:0] quotient;
  logic [4:0] bits, width;               // the exponent of number
  assign number = 16'(rows) * columns;
  always_comb begin
    integer i;
    width = 0;
    for (i = 0; i < 16; i = i + 1)
      if (number > (16'd1 << i)) width = 5'(i + 1);
  end
  assign trial = {remainder, 1'b1};
  assign next_pixel = state == Wait && (!ready || take);
  always_ff @(posedge clock) if (enable) begin
    if (start || next_pixel) begin
      state <= Count;
      tap <= 0;
      dy <= 0;
      dx <= 0;
      rows <= 0;
      columns <= 0;
    end else case (state)
      Count: begin
        rows <= rows + 8'(in_y);
        columns <= columns + 8'(in_x);
        tap <= tap + 4;
        dy <= dy + {8'd0, setup.dilation_y, 2'd0};
        dx <= dx + {8'd0, setup.dilation_x, 2'd0};
        if (9'(tap) + 4 >= 9'(setup.kernel_height) && 9'(tap) + 4 >= 9'(setup.kernel_width))
          state <= setup.average ? Look : Count;
      end
      Look: begin
        quotient <= of_number[number[6:0]][30:0];
        remainder <= (16'd1 << (width - 1)) - 1;
        bits <= 30;
        state <= number > 64 ? Divide : Wait;
      end
      Divide: begin
        quotient <= {quotient[29:0], trial >= 17'(number)};
        remainder <= trial >= 17'(number) ? 16'(trial - 17'(number)) : trial[15:0];
        bits <= bits - 1;
        if (bits == 0) state <= Wait;
      end
      default: ;
    endcase
    if (start) ready <= 0;
    else if (next_pixel && !done) begin
      ready <= 1;
      reciprocal <= {1'b0, quotient} + 32'(number > 64);
      exponent <= width;
    end else if (take) ready <= 0;
  end
endmodule
