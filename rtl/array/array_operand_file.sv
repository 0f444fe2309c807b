// SPDX-License-Identifier: Apache-2.0
// The operand file: 4 lanes of 64 rows of 16 bytes. A row is written whole or by halves, into any
// of the lanes at once; each lane may take it at a row of its own. A row of all lanes is read.
// Used as a ring, the file counts the complete rows.
module array_operand_file (
  input  logic clock, enable, start,
  input  logic [3:0] write_lanes,
  input  logic [1:0] write_halves,
  input  logic [23:0] write_rows,        // 6 bits a lane
  input  logic [511:0] write_data,       // 16 bytes a lane
  input  logic row_complete,             // this write completes a row of the ring
  output logic [6:0] complete,           // rows completed since the start, modulo 128
  input  logic [5:0] read_row,
  output logic [511:0] read_data);

  always_ff @(posedge clock) if (enable) begin
    if (start) complete <= 0;
    else if (row_complete) complete <= complete + 1;
  end

  for (genvar lane = 0; lane < 4; lane++) begin : lanes
    logic [63:0] low [0:63];
    logic [63:0] high [0:63];
    always_ff @(posedge clock) if (enable && write_lanes[lane]) begin
      if (write_halves[0]) low[write_rows[6 * lane +: 6]] <= write_data[128 * lane +: 64];
      if (write_halves[1]) high[write_rows[6 * lane +: 6]] <= write_data[128 * lane + 64 +: 64];
    end
    assign read_data[128 * lane +: 128] = {high[read_row], low[read_row]};
  end
endmodule
