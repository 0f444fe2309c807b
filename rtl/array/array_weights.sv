// SPDX-License-Identifier: Apache-2.0
// Fetches the weights that stream past the lanes, and holds them in a queue of two wide words.
// A step takes one pass over the weights of its block of channels.
module array_weights (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  output logic request, urgent,          // urgent: the queue holds at most one word
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic granted,
  input  logic [255:0] port_rdata,
  output logic ready,                    // a row of weights, or a pair of rows, is there
  output logic [127:0] even, odd,
  input  logic take);

  // --- The fetch.
  logic inner_last, middle_last, done, step_end, run_end, unused_last;
  logic [17:0] outer, unused_middle, inner, left, run_rows, block;
  logic [16:0] runs_left, here, block_start;
  logic [3:0] rows, most;
  logic [4:0] columns;                   // bytes of a row: 16, or less in the last block
  logic [17:0] channels_left;
  logic [5:0] row_bytes;                 // of the rows of this access
  logic active, in_flight;
  logic [3:0] in_flight_rows;
  logic [4:0] in_flight_columns;
  array_steps steps (.clock, .start, .enable, .advance(granted && step_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer, .middle(unused_middle), .inner, .middle_last, .inner_last, .last(unused_last), .done);

  assign active = (setup.across || setup.depthwise) && !done;
  assign run_rows = setup.pair ? setup.run_bytes : setup.kernel_size;
  assign columns = setup.depthwise || setup.second || channels_left > 8 ? 5'd16
                 : channels_left > 4 ? 5'd8 : 5'd4;
  assign most = setup.second ? 4'd1 : columns == 16 ? 4'd2 : columns == 8 ? 4'd4 : 4'd8;
  assign rows = left < 18'(most) ? left[3:0] : most;
  assign row_bytes = 6'(rows) * 6'(columns);
  assign run_end = left == 18'(rows);
  assign step_end = run_end && (!setup.pair || runs_left == 1);
  assign block = setup.block_inner ? inner : outer;
  assign address = here;
  assign channels_left = 18'(setup.channels) - (block << 4);
  assign bytes = setup.second && channels_left < 16 ? channels_left[5:0]
               : row_bytes > 16 ? 6'd32 : row_bytes;

  logic [16:0] after, next_block;
  assign after = here + 17'(row_bytes);
  assign next_block = setup.second ? block_start + 17'd16 : after;
  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      here <= setup.weights;
      block_start <= setup.weights;
      left <= run_rows;
      runs_left <= setup.runs;
    end else if (granted) begin
      left <= run_end ? run_rows : left - 18'(rows);
      if (run_end) runs_left <= step_end ? setup.runs : runs_left - 1;
      here <= setup.second ? here + setup.second_row : after;
      if (step_end && setup.block_inner) begin
        here <= inner_last ? setup.weights : next_block;
        block_start <= inner_last ? setup.weights : next_block;
      end else if (step_end) begin
        here <= inner_last && middle_last ? after : block_start;
        if (inner_last && middle_last) block_start <= after;
      end
    end
  end

  // --- The queue. Its words are numbered modulo 2.
  logic [255:0] word_0, word_1, word, from_row;
  logic [3:0] rows_0, rows_1, rows_here;   // rows of the word
  logic [4:0] columns_0, columns_1, columns_here;
  logic [1:0] count;
  logic head, tail, pop;
  logic [2:0] row;                         // of the word
  logic [3:0] next_row;
  assign word = head ? word_1 : word_0;
  assign rows_here = head ? rows_1 : rows_0;
  assign columns_here = head ? columns_1 : columns_0;
  assign ready = count != 0;
  assign from_row = word >> {8'(row) * 8'(columns_here), 3'd0};
  assign even = from_row[127:0];
  // A run of odd length ends without a pair.
  assign odd = 4'(row) + 1 == rows_here ? 128'd0
             : columns_here == 16 ? from_row[255:128]
             : columns_here == 8 ? from_row[191:64] : from_row[159:32];
  assign next_row = 4'(row) + (setup.pair ? 4'd2 : 4'd1);
  assign pop = take && next_row >= rows_here;
  assign urgent = 3'(count) + 3'(in_flight) - 3'(pop) <= 1;
  assign request = active && 3'(count) + 3'(in_flight) - 3'(pop) < 2;
  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      count <= 0;
      head <= 0;
      tail <= 0;
      row <= 0;
      in_flight <= 0;
    end else begin
      in_flight <= granted;
      in_flight_rows <= rows;
      in_flight_columns <= columns;
      if (in_flight && tail) {columns_1, rows_1, word_1} <= {in_flight_columns, in_flight_rows, port_rdata};
      if (in_flight && !tail) {columns_0, rows_0, word_0} <= {in_flight_columns, in_flight_rows, port_rdata};
      if (in_flight) tail <= !tail;
      if (pop) head <= !head;
      if (take) row <= pop ? 0 : next_row[2:0];
      count <= count + 2'(in_flight) - 2'(pop);
    end
  end
endmodule
