// SPDX-License-Identifier: Apache-2.0
// The SRAM of a PE for Verilator: eight single-port banks of 4,096 words with synchronous read.
// A bank that is not read shows noise. C++ reads and writes words by DPI.
module mesh_sram (
  input  logic clock,
  input  logic [7:0] select, write,
  input  logic [95:0] address,
  input  logic [31:0] mask,
  input  logic [255:0] wdata,
  output logic [255:0] rdata);

  logic [31:0] words [0:32767];
  // Writes block, since Verilator knows no delayed writes of parts in loops.
  // verilator lint_off BLKSEQ
  always @(posedge clock) begin
    for (int b = 0; b < 8; b++) begin
      rdata[32 * b +: 32] <= select[b] && !write[b] ? words[{address[12 * b +: 12], 3'(b)}]
                                                    : 32'hDEAD_BEEF;
      for (int i = 0; i < 4; i++) if (select[b] && write[b] && mask[4 * b + i])
        words[{address[12 * b +: 12], 3'(b)}][8 * i +: 8] = wdata[32 * b + 8 * i +: 8];
    end
  end

  // verilator lint_on BLKSEQ

  export "DPI-C" function sram_load;
  export "DPI-C" function sram_store;
  function int unsigned sram_load(input int unsigned index);
    sram_load = words[index[14:0]];
  endfunction
  function void sram_store(input int unsigned index, input int unsigned value);
    words[index[14:0]] = value;
  endfunction
endmodule
