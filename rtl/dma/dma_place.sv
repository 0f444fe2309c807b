// SPDX-License-Identifier: Apache-2.0
// The router of a place, from its number in a descriptor. All divisors are constants.
module dma_place #(parameter int CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                   BOARD_CHIP_ROWS = 1) (
  input  logic [7:0] corner_x, corner_y, // the first PE of the own chip
  input  logic [31:0] number,
  output logic exists, dram,
  output logic [7:0] x, y);

  localparam int ChipPes = CHIP_COLUMNS * CHIP_ROWS, Chips = BOARD_CHIP_COLUMNS * BOARD_CHIP_ROWS;
  logic here;                            // the number counts within the own chip
  logic [29:0] index;
  logic [15:0] low, chip, inner;
  // A board has at most 255 columns and 128 rows; the upper bits are 0 where a place exists.
  // verilator lint_off UNUSEDSIGNAL
  logic [15:0] chip_x, chip_y, inner_x, inner_y;
  // verilator lint_on UNUSEDSIGNAL
  assign {dram, here, index} = number;
  assign exists = dram ? index < (here ? 30'd1 : 30'(Chips))
                       : index < (here ? 30'(ChipPes) : 30'(ChipPes * Chips));
  assign low = index[15:0];
  assign chip = dram ? low : low / 16'(ChipPes);
  assign inner = dram ? 16'd0 : here ? low : low % 16'(ChipPes);
  assign chip_x = chip % 16'(BOARD_CHIP_COLUMNS) * 16'(CHIP_COLUMNS);
  assign chip_y = chip / 16'(BOARD_CHIP_COLUMNS) * 16'(CHIP_ROWS);
  assign inner_x = inner % 16'(CHIP_COLUMNS);
  assign inner_y = inner / 16'(CHIP_COLUMNS);
  assign x = inner_x[7:0] + (here ? corner_x : chip_x[7:0]);
  assign y = inner_y[7:0] + (here ? corner_y : chip_y[7:0]);
endmodule
