// SPDX-License-Identifier: Apache-2.0
// The outputs for the four entries in a flit of the list of destinations.
// A branch of the tree goes on in its direction, or turns from x to y. The other entries belong to
// other branches.
module noc_list_route #(parameter int INPUT = 0, BOARD_COLUMNS = 4, BOARD_ROWS = 4) (
  input  logic [7:0] x, y,
  // The address in an entry matters to the DMA only.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [127:0] flit,
  // verilator lint_on UNUSEDSIGNAL
  output logic [5:0] outputs);

  localparam logic [5:0] Branch = INPUT == 1 ? 6'b001001 : INPUT == 2 ? 6'b011011 :
                                  INPUT == 3 ? 6'b000011 : INPUT == 4 ? 6'b001111 : 6'b011111;
  logic [23:0] wanted;
  for (genvar i = 0; i < 4; i++) begin : entries
    logic [7:0] entry_x;
    logic [5:0] single;
    assign entry_x = flit[32 * i + 17 +: 8];
    noc_route #(.BOARD_COLUMNS(BOARD_COLUMNS), .BOARD_ROWS(BOARD_ROWS)) route (.x, .y,
      .to_x(entry_x), .to_y({1'b0, flit[32 * i + 25 +: 7]}), .dram(1'b0), .outputs(single));
    assign wanted[6 * i +: 6] = entry_x == 8'hFF ? 6'd0 : single;
  end
  assign outputs = (wanted[5:0] | wanted[11:6] | wanted[17:12] | wanted[23:18]) & Branch;
endmodule
