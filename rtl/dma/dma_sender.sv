// SPDX-License-Identifier: Apache-2.0
// Sends packets: of the own descriptor and of a served request, in turns.
// A packet granted in cycle s reads its flit i in cycle s + i: data from the SRAM, the list from its
// memory. The flit is on the link to the router in the cycle behind.
module dma_sender (
  input  logic clock, reset,
  input  logic may_grant,                // the port is free, and nothing else takes it in this cycle
  output logic has_port, last_port,      // behind the grant; in the last cycle of the port
  // the messages: 0 own, 1 served
  input  logic [1:0] ready, start,       // start: the walk begins in the next cycle
  // The header of the served message needs no source, and so on.
  // verilator lint_off UNUSEDSIGNAL
  input  dma_pkg::message_t own, served,
  // verilator lint_on UNUSEDSIGNAL
  output logic [1:0] sent,               // the last packet has been read with this cycle
  input  logic [1:0] list_write,
  input  logic [7:0] list_write_index,
  input  logic [255:0] list_write_flit,
  // the SRAM
  output logic read,
  output logic [16:0] read_address,
  output logic [4:0] read_bytes,
  input  logic [127:0] rdata,
  // the router
  output noc_pkg::link_t link,
  input  logic [2:0] credits);

  // --- Free places in the router.
  logic [1:0] data_places;
  logic request_place, active;
  logic own_possible, served_possible, grant, turn, granted_request;
  assign own_possible = ready[0] && (own.request ? request_place : data_places != 0);
  assign served_possible = ready[1] && data_places != 0;
  assign grant = may_grant && !active && (own_possible || served_possible);
  always_ff @(posedge clock) begin
    if (reset) begin
      data_places <= 2;
      request_place <= 1;
    end else begin
      data_places <= data_places + 2'(credits[0]) - 2'(grant && !granted_request);
      request_place <= (request_place || credits[1]) && !granted_request;
    end
  end

  // --- Turns, packet by packet.
  logic choice, which;                   // of the grant, of the packet that is read
  assign choice = turn ? served_possible : !own_possible;
  assign granted_request = grant && !choice && own.request;
  always_ff @(posedge clock) begin
    if (reset) turn <= 0;
    else if (grant) turn <= !choice;
    if (grant) which <= choice;
  end

  // --- The walks.
  logic [1:0] step, packet_end, message_end, signal, last;
  logic [33:0] from;
  logic [9:0] bytes, packet_rows;
  logic [17:0] packet_row_bytes;
  logic [63:0] to;
  logic [255:0] list_data;
  logic list_read;
  logic [3:0] list_index;
  for (genvar i = 0; i < 2; i++) begin : messages
    dma_walker walker (.clock, .start(start[i]), .message(i == 0 ? own : served),
      .packet(grant && choice == 1'(i)), .step(step[i]), .from(from[17 * i +: 17]),
      .bytes(bytes[5 * i +: 5]), .packet_end(packet_end[i]), .message_end(message_end[i]),
      .signal(signal[i]), .last(last[i]), .packet_rows(packet_rows[5 * i +: 5]),
      .packet_row_bytes(packet_row_bytes[9 * i +: 9]), .to(to[32 * i +: 32]));
    dma_list list (.clock, .write(list_write[i]), .write_index(list_write_index[4 * i +: 4]),
      .write_flit(list_write_flit[128 * i +: 128]), .read(list_read), .read_index(list_index),
      .moved(to[32 * i +: 17]), .flit(list_data[128 * i +: 128]));
  end

  // --- The flit that is read. The grant reads the header.
  logic present;                         // present: more than a header
  logic [1:0] part, part_now, part_next;
  logic now, request, no_rows;
  logic [3:0] lists;
  logic packet_last, header_last;
  // Of the packet behind its grant: the end of the port must not depend on a grant.
  logic [3:0] which_lists;
  logic list_end, nothing, ends;         // nothing: no rows
  assign now = grant ? choice : which;
  assign present = active || grant;
  assign request = !now && own.request;
  assign no_rows = request || signal[now];
  assign lists = now ? served.list_flits : own.list_flits;
  assign part_now = grant ? dma_pkg::Header : part;
  assign which_lists = which ? served.list_flits : own.list_flits;
  assign nothing = (!which && own.request) || signal[which];
  assign list_end = list_index + 4'd1 == which_lists;
  assign ends = part == dma_pkg::Second ? which_lists == 0 : part == dma_pkg::List ? list_end && nothing
              : packet_end[which];
  assign header_last = !request && lists == 0 && no_rows;
  assign packet_last = grant ? header_last : ends;
  always_comb begin
    part_next = part_now;
    case (part_now)
      dma_pkg::Header:
        part_next = request ? dma_pkg::Second : lists != 0 ? dma_pkg::List : dma_pkg::Rows;
      dma_pkg::Second: part_next = dma_pkg::List;
      dma_pkg::List: if (list_end) part_next = dma_pkg::Rows;
      default: ;
    endcase
  end
  assign list_read = active && part == dma_pkg::List;
  assign read = active && part == dma_pkg::Rows;
  assign read_address = which ? from[33:17] : from[16:0];
  assign read_bytes = which ? bytes[9:5] : bytes[4:0];
  assign step = {read && which, read && !which};
  assign has_port = active;
  assign last_port = ends;
  logic message_last;
  assign message_last = part_now == dma_pkg::Rows ? message_end[now] : no_rows;
  assign sent = present && packet_last && message_last ? {now, !now} : 2'b00;
  always_ff @(posedge clock) begin
    if (reset) active <= 0;
    else active <= present && !packet_last;
    part <= part_next;
    if (grant) list_index <= 0;
    else if (list_read) list_index <= list_index + 1;
  end

  // --- The flit on the link.
  logic valid, tail, sender;
  logic [1:0] kind;
  logic [4:0] flit_bytes;
  logic [3:0] number;
  logic [15:0] crc;
  always_ff @(posedge clock) begin
    valid <= present && !reset;
    tail <= packet_last;
    sender <= now;
    kind <= part_now;
    flit_bytes <= read_bytes;
    if (reset) number <= 0;
    else if (valid && tail) number <= number + 1;
    if (valid) crc <= link.crc;
  end

  noc_pkg::header_t header;
  // verilator lint_off UNUSEDSIGNAL
  dma_pkg::message_t message;
  // verilator lint_on UNUSEDSIGNAL
  logic [127:0] second, mask;
  logic asks;
  assign message = sender ? served : own;
  assign asks = !sender && own.request;
  always_comb begin
    header = '0;
    header.kind = asks ? noc_pkg::Request : noc_pkg::Data;
    header.last = asks || last[sender];
    header.list_flits = message.list_flits;
    header.flag = message.flag;
    header.home_x = message.home_x;
    header.home_y = message.home_y;
    if (asks) begin
      header.dram = message.source_dram;
      header.x = message.source_x;
      header.y = message.source_y;
      header.address = message.source;
      header.stride = message.source_stride;
    end else begin
      header.dram = message.dram;
      header.acknowledge = message.dram && last[sender];
      header.x = message.x;
      header.y = message.y;
      header.row_bytes = sender ? packet_row_bytes[17:9] : packet_row_bytes[8:0];
      header.rows = sender ? packet_rows[9:5] : packet_rows[4:0];
      header.address = message.list_flits != 0 ? 32'd0 : sender ? to[63:32] : to[31:0];
      header.stride = message.stride;
    end
  end
  assign second = {message.stride, message.address, 15'd0, message.dram, message.y, message.x,
                   message.rows, message.row_bytes};
  for (genvar i = 0; i < 16; i++) begin : mask_bytes
    assign mask[8 * i +: 8] = {8{flit_bytes > 5'(i)}};
  end

  assign link.valid = valid;
  assign link.tail = tail;
  assign link.kind = asks ? noc_pkg::Request : noc_pkg::Data;
  assign link.number = number;
  assign link.flit = kind == dma_pkg::Header ? header : kind == dma_pkg::Second ? second
                   : kind == dma_pkg::List ? (sender ? list_data[255:128] : list_data[127:0])
                   : rdata & mask;
  noc_crc check (.state(kind == dma_pkg::Header ? 16'hFFFF : crc), .flit(link.flit), .after(link.crc));

`ifndef SYNTHESIS
  always_ff @(posedge clock) if (!reset) begin
    assert (!grant || !active) else $error("a packet is granted during a packet");
    assert (!credits[0] || data_places < 2) else $error("too many credits");
    assert (!credits[1] || !request_place) else $error("too many credits");
    assert (!credits[2]) else $error("a credit for an acknowledgement");
    assert (!(start[0] && active && !which)) else $error("a message starts during its packet");
  end
`endif
endmodule
