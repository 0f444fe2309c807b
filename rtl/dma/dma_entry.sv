// SPDX-License-Identifier: Apache-2.0
// An entry of a multicast's list: its place in the cycle in which it arrives, its errors in the next.
module dma_entry #(parameter int CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                   BOARD_CHIP_ROWS = 1, SRAM_BYTES = 131072) (
  input  logic clock,
  input  logic [7:0] corner_x, corner_y,
  input  logic present,
  input  logic [63:0] words,             // number and address
  input  logic signal,                   // no addresses are checked
  input  logic [33:0] below, above,
  output logic [31:0] entry,
  output logic [2:0] error);

  logic exists, dram, good, there;
  // An entry has 7 bits for y: a board has at most 128 rows.
  // verilator lint_off UNUSEDSIGNAL
  logic [7:0] x, y;
  // verilator lint_on UNUSEDSIGNAL
  logic [31:0] address;
  dma_place #(.CHIP_COLUMNS(CHIP_COLUMNS), .CHIP_ROWS(CHIP_ROWS),
              .BOARD_CHIP_COLUMNS(BOARD_CHIP_COLUMNS), .BOARD_CHIP_ROWS(BOARD_CHIP_ROWS))
    place (.corner_x, .corner_y, .number(words[31:0]), .exists, .dram, .x, .y);
  always_ff @(posedge clock) begin
    there <= present;
    good <= exists && !dram;
    address <= words[63:32];
    entry <= present ? {y[6:0], x, words[32 +: 17]} : 32'hFFFF_FFFF;
  end
  assign error = !there ? 3'd0 : !good ? 3'd4
               : !signal && (below > 34'(address) || 34'(address) + above > 34'(SRAM_BYTES)) ? 3'd5
               : 3'd0;
endmodule
