// SPDX-License-Identifier: Apache-2.0
// The output for a place: along x first, then along y, then output 0 or 5.
// A packet with a place beyond the board goes to output 0, where its CRC is compared.
module noc_route #(parameter int BOARD_COLUMNS = 4, BOARD_ROWS = 4) (
  input  logic [7:0] x, y,               // of this router
  input  logic [7:0] to_x, to_y,
  input  logic dram,                     // the place is the DRAM, and this router has a DRAM
  output logic [5:0] outputs);           // a single 1

  logic last_column, last_row;
  assign last_column = x == 8'(BOARD_COLUMNS - 1);
  assign last_row = y == 8'(BOARD_ROWS - 1);
  always_comb begin
    if (to_x < x) outputs = 6'b010000;
    else if (to_x > x) outputs = last_column ? 6'b000001 : 6'b000100;
    else if (to_y < y) outputs = 6'b000010;
    else if (to_y > y) outputs = last_row ? 6'b000001 : 6'b001000;
    else outputs = dram ? 6'b100000 : 6'b000001;
  end
endmodule
