// SPDX-License-Identifier: Apache-2.0
// A PE of the mesh. Verilator compiles it once for all PEs: a block of its own, without parameters.
// The size comes from macros, because Verilator hands parameters of the command line down to blocks.
`ifndef MESH_COLUMNS
`define MESH_COLUMNS 4
`endif
`ifndef MESH_ARRAYS
`define MESH_ARRAYS 1
`endif
`ifndef MESH_ROWS
`define MESH_ROWS 4
`endif
module mesh_node (
  input  logic clock, reset,
  input  logic [7:0] x, y,
  input  logic [31:0] pe,
  input  logic select_array, register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic event_set, done, moves, busy,
  output logic [1:0] count,
  output logic [11:0] count_index,
  output logic [3:0] error,
  output logic [7:0] bank_select, bank_write,
  output logic [95:0] bank_address,
  output logic [31:0] bank_mask,
  output logic [255:0] bank_wdata,
  input  logic [255:0] bank_rdata,
  input  logic [759:0] in,
  output logic [14:0] in_credits,
  output logic [759:0] out,
  input  logic [14:0] out_credits,
  input  logic dram_wrong_crc, dram_wrong_number);
  /*verilator hier_block*/

  pe_node #(.ARRAY(`MESH_ARRAYS), .CHIP_COLUMNS(`MESH_COLUMNS), .CHIP_ROWS(`MESH_ROWS)) node (.clock, .reset, .x, .y,
    .corner_x(8'd0), .corner_y(8'd0), .pe, .chip(32'd0), .select_array, .register_read,
    .register_write, .register_offset, .register_wdata, .register_rdata, .event_set, .count, .done,
    .moves, .busy, .count_index, .error, .bank_select, .bank_write, .bank_address, .bank_mask,
    .bank_wdata, .bank_rdata, .in, .in_credits, .out, .out_credits, .dram_wrong_crc,
    .dram_wrong_number);
endmodule
