// Check of a descriptor, walk over rows, flags and lists as black boxes: any value in any cycle.
module dma_check #(parameter int CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                   BOARD_CHIP_ROWS = 1, SRAM_BYTES = 131072, parameter longint DRAM_BYTES = 64'h8000_0000) (
  input logic clock, input logic [7:0] x, y, corner_x, corner_y, input logic [2:0] step,
  input logic misplaced, bad_list, input logic [383:0] words, input logic list_arrives,
  input logic [3:0] list_index, input logic [2:0] list_count, input logic [3:0] list_flits,
  input logic [255:0] list_words, output logic [2:0] error, output dma_pkg::message_t message,
  output logic [7:0] source_flag, output logic list_write, output logic [3:0] list_write_index,
  output logic [127:0] list_write_flit);
  (* anyseq *) logic [2:0] any_error;
  (* anyseq *) dma_pkg::message_t any_message;
  (* anyseq *) logic [7:0] any_flag;
  assign {error, message, source_flag} = {any_error, any_message, any_flag};
  assign {list_write, list_write_index, list_write_flit} = 0;
endmodule
module dma_walker (
  input logic clock, start, input dma_pkg::message_t message, input logic packet, step,
  output logic [16:0] from, output logic [4:0] bytes, output logic packet_end, message_end, signal, last,
  output logic [4:0] packet_rows, output logic [8:0] packet_row_bytes, output logic [31:0] to);
  (* anyseq *) logic [71:0] any;
  assign {from, bytes, packet_end, message_end, signal, last, packet_rows, packet_row_bytes, to} = any;
endmodule
module dma_flags (input logic clock, reset, write, input logic [5:0] index, input logic [31:0] wdata,
  output logic [31:0] rdata, input logic [1:0] count, input logic [11:0] count_index);
  (* anyseq *) logic [31:0] any;
  assign rdata = any;
endmodule
module dma_list (input logic clock, write, input logic [3:0] write_index, input logic [127:0] write_flit,
  input logic read, input logic [3:0] read_index, input logic [16:0] moved, output logic [127:0] flit);
  (* anyseq *) logic [127:0] any;
  assign flit = any;
endmodule
