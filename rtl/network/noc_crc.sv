// SPDX-License-Identifier: Apache-2.0
// The CRC of a packet behind one more flit: polynomial 0x1021, bytes in the order of their addresses,
// the most significant bit of each first. A packet starts with 0xFFFF.
module noc_crc (
  input  logic [15:0] state,
  input  logic [127:0] flit,
  output logic [15:0] after);

  always_comb begin
    integer i, j;
    after = state;
    for (i = 0; i < 16; i = i + 1) begin
      for (j = 7; j >= 0; j = j - 1) begin
        after = {after[14:0], 1'b0} ^ (after[15] ^ flit[8 * i + j] ? 16'h1021 : 16'h0000);
      end
    end
  end
endmodule
