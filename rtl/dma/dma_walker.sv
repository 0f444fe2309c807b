// SPDX-License-Identifier: Apache-2.0
// The walk over a message's rows, a flit at a time, and its cut into packets.
// A packet has whole rows if a row fits, else a piece of a row.
module dma_walker (
  input  logic clock,
  input  logic start,                    // the message is there; the walk is in the next cycle
  // A walker needs only some fields of the message.
  // verilator lint_off UNUSEDSIGNAL
  input  dma_pkg::message_t message,
  // verilator lint_on UNUSEDSIGNAL
  input  logic packet,                   // a packet starts
  input  logic step,                     // the flit is read
  // the flit
  output logic [16:0] from,
  output logic [4:0] bytes,
  output logic packet_end, message_end,  // with this flit
  // the packet: right until its first flit has been read
  output logic signal,                   // a message without bytes
  output logic last,
  output logic [4:0] packet_rows,
  output logic [8:0] packet_row_bytes,
  output logic [31:0] to);               // the destination, with a list the distance from its first row

  logic [4:0] most;                      // flits of data in a packet
  logic [12:0] row_flits;
  assign most = 5'd31 - {1'b0, message.list_flits};
  assign row_flits = 13'((17'(message.row_bytes) + 17'd15) >> 4);
  assign signal = message.rows == 0 || message.row_bytes == 0;

  // Whole rows in a packet: a division of 5 bits; 1 if a row does not fit.
  logic [4:0] quotient;
  logic [9:0] rest;
  always_comb begin
    integer i;
    rest = {5'd0, most};
    quotient = 0;
    for (i = 4; i >= 0; i = i - 1) begin
      if (rest >= 10'(row_flits[4:0]) << i) begin
        rest = rest - (10'(row_flits[4:0]) << i);
        quotient[i] = 1;
      end
    end
    if (row_flits > 13'(most)) quotient = 1;
  end

  logic [4:0] rows_each, rows_done, flits_done;
  logic [15:0] rows_left, row_left;      // row_left in bytes
  logic [16:0] from_row;
  logic [31:0] to_row;
  logic [16:0] next_from;
  logic [31:0] next_to;
  logic row_end, piece_end;
  logic [8:0] most_bytes;
  assign most_bytes = {most, 4'd0};
  assign row_end = row_left <= 16;
  assign piece_end = flits_done + 5'd1 == most;
  assign bytes = row_end ? row_left[4:0] : 5'd16;
  assign packet_end = piece_end || (row_end && (rows_done + 5'd1 == rows_each || rows_left == 1));
  assign message_end = row_end && rows_left == 1;
  assign packet_row_bytes = signal ? 9'd0 : row_left <= 16'(most_bytes) ? row_left[8:0] : most_bytes;
  assign packet_rows = signal ? 5'd0 : rows_left <= 16'(rows_each) ? rows_left[4:0] : rows_each;
  assign last = signal || (rows_left <= 16'(rows_each) && row_left <= 16'(most_bytes));
  assign next_from = from_row + message.source_stride[16:0];
  assign next_to = to_row + message.stride;

  always_ff @(posedge clock) begin
    if (start) begin
      rows_each <= quotient;
      rows_left <= message.rows;
      row_left <= message.row_bytes;
      from <= message.source[16:0];
      from_row <= message.source[16:0];
      to <= message.list_flits == 0 ? message.address : 32'd0;
      to_row <= message.list_flits == 0 ? message.address : 32'd0;
    end else if (step) begin
      row_left <= row_end ? message.row_bytes : row_left - 16;
      from <= row_end ? next_from : from + 16;
      to <= row_end ? next_to : to + 16;
      if (row_end) begin
        rows_left <= rows_left - 1;
        from_row <= next_from;
        to_row <= next_to;
      end
    end
    if (packet) begin
      rows_done <= 0;
      flits_done <= 0;
    end else if (step) begin
      flits_done <= flits_done + 1;
      if (row_end) rows_done <= rows_done + 1;
    end
  end
endmodule
