// SPDX-License-Identifier: Apache-2.0
// A list of destinations: 15 flits of four entries, with the addresses of the message's first row.
// A packet's list has the addresses of the packet's first row.
module dma_list (
  input  logic clock,
  input  logic write,
  input  logic [3:0] write_index,
  input  logic [127:0] write_flit,
  input  logic read,
  input  logic [3:0] read_index,
  input  logic [16:0] moved,             // from the message's first row to the packet's
  output logic [127:0] flit);            // of the read in the cycle before

  logic [127:0] memory [0:15];
  logic [127:0] stored;
  always_ff @(posedge clock) begin
    if (write) memory[write_index] <= write_flit;
    if (read) stored <= memory[read_index];
  end
  for (genvar i = 0; i < 4; i++) begin : entries
    logic unused_entry;
    assign unused_entry = stored[32 * i + 17 +: 8] == 8'hFF;
    assign flit[32 * i + 17 +: 15] = stored[32 * i + 17 +: 15];
    assign flit[32 * i +: 17] = stored[32 * i +: 17] + (unused_entry ? 17'd0 : moved);
  end
endmodule
