// SPDX-License-Identifier: Apache-2.0
// The device port of the SRAM: the DMA first, then the array, which is frozen meanwhile.
// An access of up to 16 bytes at any address, or of 32 at a multiple of 4, becomes at most a word in
// each of the eight banks. Bank b holds the words with b in the address bits 4:2.
module sram_arbiter (
  input  logic clock,
  // the DMA
  input  logic dma_access,               // bytes move
  input  logic dma_read, dma_write,
  input  logic [16:0] dma_address,
  input  logic [5:0] dma_bytes,
  input  logic [127:0] dma_wdata,
  // the array
  output logic array_enable,
  input  logic array_request, array_write,
  input  logic [16:0] array_address,
  input  logic [5:0] array_bytes,
  input  logic [31:0] array_strobe,
  input  logic [255:0] array_wdata,
  // both: the bytes from the address on, of the access in the cycle before
  output logic [255:0] rdata,
  // the banks
  output logic [7:0] bank_select, bank_write,
  output logic [95:0] bank_address,      // 12 bits each: a word of 4,096
  output logic [31:0] bank_mask,         // bytes to write
  output logic [255:0] bank_wdata,
  input  logic [255:0] bank_rdata);      // of the cycle before

  // --- The access.
  logic read, write;
  logic [16:0] address;
  logic [31:0] touched;                  // bytes from the address on
  logic [255:0] wdata;
  logic [5:0] bytes;
  assign array_enable = !dma_access;
  assign read = dma_access ? dma_read : array_request && !array_write;
  assign write = dma_access ? dma_write : array_request && array_write;
  assign address = dma_access ? dma_address : array_address;
  assign bytes = dma_access ? dma_bytes : array_bytes;
  assign wdata = dma_access ? {128'd0, dma_wdata} : array_wdata;
  assign touched = !dma_access && write ? array_strobe : ~(32'hFFFF_FFFE << (bytes - 6'd1));

  // --- Words from the first on, then banks. An access at an odd place has at most 16 bytes.
  logic [2:0] first;
  logic [1:0] shift;
  logic [31:0] word_bytes;
  logic [255:0] words;
  assign first = address[4:2];
  assign shift = address[1:0];
  assign word_bytes = touched << shift;
  assign words = wdata << {shift, 3'd0};
  for (genvar b = 0; b < 8; b++) begin : banks
    logic [2:0] word;                    // of the access
    logic around;                        // the words go on in the next row of the banks
    assign word = 3'(b) - first;
    assign around = 32'(first) > b;
    assign bank_select[b] = (read || write) && word_bytes[4 * word +: 4] != 0;
    assign bank_write[b] = write;
    assign bank_address[12 * b +: 12] = address[16:5] + 12'(around);
    assign bank_mask[4 * b +: 4] = word_bytes[4 * word +: 4];
    assign bank_wdata[32 * b +: 32] = words[32 * word +: 32];
  end

  // --- The way back.
  logic [2:0] first_before;
  logic [1:0] shift_before;
  logic [255:0] in_order;
  always_ff @(posedge clock) begin
    first_before <= first;
    shift_before <= shift;
  end
  for (genvar w = 0; w < 8; w++) begin : order
    logic [2:0] bank;
    assign bank = 3'(w) + first_before;
    assign in_order[32 * w +: 32] = bank_rdata[32 * bank +: 32];
  end
  assign rdata = in_order >> {shift_before, 3'd0};

`ifndef SYNTHESIS
  always_ff @(posedge clock) if (read || write) begin
    assert (bytes != 0 && (bytes <= 16 || (bytes == 32 && shift == 0))) else $error("an access");
  end
`endif
endmodule
