// SPDX-License-Identifier: Apache-2.0
// The DMA of a processing element: sections 4.1, 4.2, 4.3 and 4.5 of the hardware manual.
// Chains wait in the queue, fetch and check make a message of a descriptor, the sender cuts it into
// packets. The receiver writes packets to the SRAM and takes requests, whose messages the same sender
// sends. The three have the port in turns.
module pe_dma #(parameter int CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                BOARD_CHIP_ROWS = 1, SRAM_BYTES = 131072,
                parameter longint DRAM_BYTES = 64'h8000_0000) (
  input  logic clock, reset,
  input  logic [7:0] x, y, corner_x, corner_y,   // the own router and that of the chip's first PE
  input  logic [31:0] pe, chip,
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic event_set,
  // for the PE: chains, a served request, packets received and sent; counts and the error
  output logic empty, done, serving, receiving, sends,
  output logic [1:0] count,
  output logic [11:0] count_index,
  output logic [3:0] first_error,
  // the SRAM: at most an access in a cycle
  output logic port_access,              // bytes move: the array is frozen
  output logic port_read, port_write,
  output logic [16:0] port_address,
  output logic [5:0] port_bytes,         // 1 to 16, or 32 at a multiple of 4
  output logic [127:0] port_wdata,
  input  logic [255:0] port_rdata,
  // the router
  input  logic wrong_number,
  input  logic dram_wrong_crc, dram_wrong_number,  // found by the DRAM at the router
  output noc_pkg::link_t send,
  input  logic [2:0] send_credits,
  input  noc_pkg::link_t receive,
  output logic [2:0] allowed,            // packets that output 0 may grant, for each class
  // Acknowledgements are always taken.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [2:0] granted);
  // verilator lint_on UNUSEDSIGNAL

  localparam int Pes = CHIP_COLUMNS * CHIP_ROWS * BOARD_CHIP_COLUMNS * BOARD_CHIP_ROWS;

  // --- Registers and chains.
  logic doorbell, full, fault, rx_count, sent_count;
  logic wrong_crc, rx_wrong_number;
  logic [5:0] rx_count_index;
  logic [2:0] error;
  logic [7:0] source_flag;
  logic fetch_finish, fetch_fault, want_fetch, fetch_grant, more, sending, acknowledged;
  logic [31:0] fetch_address;
  logic [14:0] entries_before;
  logic [383:0] words;
  logic [1:0] sent;
  dma_pkg::message_t own, served;
  dma_registers registers (.clock, .reset, .register_read, .register_write, .register_offset,
    .register_wdata, .register_rdata, .pe, .pes(32'(Pes)), .chip, .event_set, .doorbell, .full,
    .empty, .done, .fetch_fault, .fetch_error(error),
    .wrong_crc(wrong_crc || dram_wrong_crc),
    .wrong_number(wrong_number || rx_wrong_number || dram_wrong_number), .fault, .error(first_error),
    .count, .count_index);
  assign fetch_fault = fetch_finish && error != 0;
  dma_chains chains (.clock, .reset, .doorbell, .doorbell_address(register_wdata), .full, .empty,
    .fault, .want_fetch, .address(fetch_address), .entries_before, .grant(fetch_grant),
    .finish(fetch_finish), .good(error == 0), .next(words[31:0]), .more,
    .wants_acknowledgement(own.dram), .sending, .sent(sent[0]), .acknowledged, .done);
  assign sent_count = done && source_flag != 8'hFF;
  assign count = {sent_count, rx_count};
  assign count_index = {source_flag[5:0], rx_count_index};

  // --- Fetch and check.
  logic fetch_port, fetch_last, fetch_read, misplaced, bad_list, list_arrives, own_list_write;
  logic [16:0] fetch_from;
  logic [2:0] step, list_count;
  logic [3:0] list_index, list_flits, own_list_index;
  logic [127:0] own_list_flit;
  dma_fetch #(.SRAM_BYTES(SRAM_BYTES)) fetch (.clock, .reset, .grant(fetch_grant),
    .address(fetch_address), .entries_before, .abort(fault), .has_port(fetch_port),
    .last_port(fetch_last),
    .read(fetch_read), .read_address(fetch_from), .rdata(port_rdata), .misplaced, .bad_list, .words,
    .step, .list_arrives, .list_index, .list_count, .list_flits, .more, .finish(fetch_finish));
  dma_check #(.CHIP_COLUMNS(CHIP_COLUMNS), .CHIP_ROWS(CHIP_ROWS),
              .BOARD_CHIP_COLUMNS(BOARD_CHIP_COLUMNS), .BOARD_CHIP_ROWS(BOARD_CHIP_ROWS),
              .SRAM_BYTES(SRAM_BYTES), .DRAM_BYTES(DRAM_BYTES))
    check (.clock, .x, .y, .corner_x, .corner_y, .step, .misplaced, .bad_list, .words, .list_arrives,
           .list_index, .list_count, .list_flits, .list_words(port_rdata), .error, .message(own),
           .source_flag, .list_write(own_list_write), .list_write_index(own_list_index),
           .list_write_flit(own_list_flit));

  // --- Receiver.
  logic rx_moves, rx_write, request, request_dropped, rx_list_write;
  logic [16:0] rx_address;
  logic [4:0] rx_bytes;
  logic [3:0] rx_list_index;
  logic [127:0] rx_list_flit;
  dma_receiver receiver (.clock, .reset, .x, .y(y[6:0]), .link(receive), .wrong_crc,
    .wrong_number(rx_wrong_number), .request_dropped, .moves(rx_moves), .write(rx_write), .write_address(rx_address), .write_bytes(rx_bytes),
    .count(rx_count), .count_index(rx_count_index), .acknowledged, .served, .request,
    .list_write(rx_list_write), .list_index(rx_list_index), .list_flit(rx_list_flit));

  // --- Who has the port. Receiving, fetching, sending: the grants of a cycle in this order. The last
  // cycle of the port may have the next grant.
  logic tx_port, tx_last, port_free, serve, serve_start;
  assign sends = tx_port;
  assign port_free = (!receiving || receive.tail) && (!fetch_port || fetch_last) &&
                     (!tx_port || tx_last);
  assign allowed = {1'b1, !serving, port_free};
  assign fetch_grant = want_fetch && port_free && !granted[0];
  always_ff @(posedge clock) begin
    if (reset) begin
      receiving <= 0;
      serving <= 0;
      serve <= 0;
      serve_start <= 0;
    end else begin
      receiving <= granted[0] || (receiving && !receive.tail);
      serving <= granted[1] || (serving && !sent[1] && !request_dropped);
      serve <= request || (serve && !sent[1]);
      serve_start <= request;
    end
  end

  // --- Sender.
  logic tx_read;
  logic [16:0] tx_address;
  logic [4:0] tx_bytes;
  dma_sender transmitter (.clock, .reset, .may_grant(port_free && !granted[0] && !want_fetch),
    .has_port(tx_port), .last_port(tx_last), .ready({serve, sending}), .start({serve_start, fetch_finish}), .own, .served,
    .sent, .list_write({rx_list_write, own_list_write}),
    .list_write_index({rx_list_index, own_list_index}),
    .list_write_flit({rx_list_flit, own_list_flit}), .read(tx_read), .read_address(tx_address),
    .read_bytes(tx_bytes), .rdata(port_rdata[127:0]), .link(send), .credits(send_credits));

  assign port_access = fetch_read || tx_read || rx_moves;
  assign port_read = fetch_read || tx_read;
  assign port_write = rx_write;
  assign port_address = rx_moves ? rx_address : fetch_read ? fetch_from : tx_address;
  assign port_bytes = rx_moves ? {1'b0, rx_bytes}
                    : fetch_read ? (step == 2 ? 6'd16 : 6'd32) : {1'b0, tx_bytes};
  assign port_wdata = receive.flit;

`ifndef SYNTHESIS
  always_ff @(posedge clock) if (!reset) begin
    assert (32'(fetch_read) + 32'(tx_read) + 32'(rx_moves) <= 1) else $error("two accesses in a cycle");
    assert (!granted[0] || allowed[0]) else $error("data without the port");
    assert (!granted[1] || allowed[1]) else $error("a request during a request");
  end
`endif
endmodule
