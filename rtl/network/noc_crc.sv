// SPDX-License-Identifier: Apache-2.0
// The CRC of a packet behind one more flit: polynomial 0x1021, bytes in the order of their addresses,
// the most significant bit of each first. A packet starts with 0xFFFF.
// The CRC is linear: each of its bits is the parity of some bits of the flit and the state.
module noc_crc (
  input  logic [15:0] state,
  input  logic [127:0] flit,
  output logic [15:0] after);

  // For each bit of the CRC, the bits with an effect. Bit n has n bits behind it.
  function automatic logic [2047:0] rows();
    logic [15:0] effect;
    integer n, i;
    effect = 16'h1021;
    for (n = 0; n < 128; n = n + 1) begin
      for (i = 0; i < 16; i = i + 1) rows[128 * i + n] = effect[i];
      effect = {effect[14:0], 1'b0} ^ (effect[15] ? 16'h1021 : 16'h0000);
    end
  endfunction
  localparam logic [2047:0] Rows = rows();

  logic [127:0] bits;                    // the first bit is the highest
  for (genvar i = 0; i < 16; i++) begin : bytes
    assign bits[8 * (15 - i) +: 8] = flit[8 * i +: 8] ^ (i < 2 ? state[8 * ((i + 1) % 2) +: 8] : 8'd0);
    assign after[i] = ^(bits & Rows[128 * i +: 128]);
  end
endmodule
