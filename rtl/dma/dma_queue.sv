// SPDX-License-Identifier: Apache-2.0
// The chains that wait, the running chain among them.
module dma_queue (
  input  logic clock, reset,
  input  logic push,                     // ignored while full
  input  logic [31:0] push_address,
  input  logic pop, drop,                // the first chain has ended; all chains are dropped
  output logic full, empty,
  output logic [31:0] address);          // of the first chain

  logic [31:0] chains [0:7];
  logic [2:0] head, tail;
  logic [3:0] count;
  logic pushed;
  assign full = count == 8;
  assign empty = count == 0;
  assign pushed = push && !full;
  assign address = chains[head];
  always_ff @(posedge clock) begin
    if (pushed) chains[tail] <= push_address;
    if (reset || drop) begin
      head <= 0;
      tail <= 0;
      count <= 0;
    end else begin
      if (pushed) tail <= tail + 1;
      if (pop) head <= head + 1;
      count <= count + 4'(pushed) - 4'(pop);
    end
  end
endmodule
