// SPDX-License-Identifier: Apache-2.0
// The counted flags. Two of them may count in a cycle, or one of them twice: a signal may be sent in the
// cycle in which the last flit of a message is received. Every count is shown in its cycle.
module dma_flags (
  input  logic clock, reset,
  input  logic write,                    // by the core
  input  logic [5:0] index,              // for the core's reads and writes
  input  logic [31:0] wdata,
  output logic [31:0] rdata,
  input  logic [1:0] count,              // 0: a message received, 1: a message sent
  input  logic [11:0] count_index);

  // A store in the cycle before the count shows comes before the count.
  logic [31:0] flags [0:63];
  logic [5:0] received, sent;
  logic [31:0] after_received, after_sent;
  logic twice;
  assign {sent, received} = count_index;
  assign rdata = flags[index];
  assign twice = count == 3 && received == sent;
  assign after_received = (write && index == received ? wdata : flags[received]) + (twice ? 2 : 1);
  assign after_sent = (write && index == sent ? wdata : flags[sent]) + 1;
  for (genvar i = 0; i < 64; i++) begin : words
    always_ff @(posedge clock) begin
      if (reset) flags[i] <= 0;
      else if (count[0] && received == 6'(i)) flags[i] <= after_received;
      else if (count[1] && sent == 6'(i)) flags[i] <= after_sent;
      else if (write && index == 6'(i)) flags[i] <= wdata;
    end
  end
endmodule
