// SPDX-License-Identifier: Apache-2.0
// Fetches the weights for the lanes, and holds them in a queue of two wide words.
// A step takes one pass over the weights of its block of channels. A row of weights has 16 columns,
// in the last block perhaps only 4 or 8: a wide word holds two, four or eight rows. Weights of 4 bits
// stay packed in the queue; a row then has 8 or 4 bytes.
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
  logic [2:0] quads;                     // bytes of a row, in fours
  logic [3:0] rows, most_rows;           // of the access
  logic [3:0] filled;                    // quads of the access with weights of this step
  logic active;
  array_steps steps (.clock, .start, .enable, .advance(granted && step_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer, .middle(unused_middle), .inner, .middle_last, .inner_last, .last(unused_last), .done);

  assign active = (setup.across || setup.depthwise) && !done;
  assign run_rows = setup.pair ? setup.run_bytes : setup.kernel_size;
  assign quads = inner_last ? setup.last_quads : setup.full_quads;
  assign most_rows = setup.second ? 4'd1 : quads == 1 ? 4'd8 : quads == 2 ? 4'd4 : 4'd2;
  assign rows = left < 18'(most_rows) ? left[3:0] : most_rows;
  assign filled = quads == 1 ? rows : quads == 2 ? rows << 1 : rows << 2;
  assign run_end = left == 18'(rows);
  assign step_end = run_end && (!setup.pair || runs_left == 1);
  assign block = setup.block_inner ? inner : outer;
  assign address = here;
  logic [17:0] channels_left;
  assign channels_left = 18'(setup.channels) - (block << 4);
  assign bytes = !setup.second ? 6'd32 : channels_left < 16 ? channels_left[5:0] : 6'd16;

  logic [16:0] after, next_block;
  assign after = here + {11'd0, filled, 2'b0};
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
  typedef struct packed {
    logic [2:0] quads;                   // of a row
    logic [3:0] filled;                  // quads of the word with weights
  } shape_t;
  logic [255:0] words [0:1];
  logic [255:0] word;
  shape_t shape_0, shape_1, shape, arriving;
  logic [1:0] count;
  logic head, tail, pop, in_flight;
  logic [2:0] place;                     // of the next row in the word, in quads
  logic [3:0] odd_place, next_place;
  assign word = words[head];
  assign shape = head ? shape_1 : shape_0;
  assign odd_place = 4'(place) + 4'(shape.quads);
  assign next_place = setup.pair ? odd_place + 4'(shape.quads) : odd_place;
  assign ready = count != 0;
  assign pop = take && next_place >= shape.filled;
  assign urgent = 3'(count) + 3'(in_flight) - 3'(pop) <= 1;
  assign request = active && 3'(count) + 3'(in_flight) - 3'(pop) < 2;

  // A row begins at a multiple of its length, so its quads differ only in the lower bits of their
  // place. A narrow row lacks only columns of channels that do not exist.
  logic [127:0] even_row, odd_row;       // a row, or its nibbles in the lower half
  for (genvar i = 0; i < 4; i++) begin : quad
    logic [2:0] even_quad, odd_quad;
    assign even_quad = place | 3'(i);
    assign odd_quad = odd_place[2:0] | 3'(i);
    assign even_row[32 * i +: 32] = word[32 * even_quad +: 32];
    // A run of odd length ends without pair.
    assign odd_row[32 * i +: 32] = odd_place < shape.filled ? word[32 * odd_quad +: 32] : 32'd0;
  end
  for (genvar i = 0; i < 16; i++) begin : weight
    assign even[8 * i +: 8] = setup.nibbles ? {{5{even_row[4 * i + 3]}}, even_row[4 * i +: 3]} : even_row[8 * i +: 8];
    assign odd[8 * i +: 8] = setup.nibbles ? {{5{odd_row[4 * i + 3]}}, odd_row[4 * i +: 3]} : odd_row[8 * i +: 8];
  end

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      count <= 0;
      head <= 0;
      tail <= 0;
      place <= 0;
      in_flight <= 0;
    end else begin
      in_flight <= granted;
      arriving <= {quads, filled};
      if (in_flight) begin
        words[tail] <= port_rdata;
        if (tail) shape_1 <= arriving;
        else shape_0 <= arriving;
        tail <= !tail;
      end
      if (pop) head <= !head;
      if (take) place <= pop ? 3'd0 : next_place[2:0];
      count <= count + 2'(in_flight) - 2'(pop);
    end
  end
endmodule
