// SPDX-License-Identifier: Apache-2.0
// Receives from output 0 of the router. A flit is compared with its CRC and written in the cycle in
// which it is on the link. Behind a wrong flit, or a packet that is missing, all data is thrown away;
// requests and acknowledgements pass.
module dma_receiver (
  input  logic clock, reset,
  input  logic [7:0] x,
  input  logic [6:0] y,
  input  noc_pkg::link_t link,
  output logic wrong_crc, wrong_number,
  // data
  output logic moves,                    // bytes on their way to the SRAM, right or wrong
  output logic write,
  output logic [16:0] write_address,
  output logic [4:0] write_bytes,
  output logic count,                    // a flag, in this cycle
  output logic [5:0] count_index,
  output logic acknowledged,
  // requests
  output dma_pkg::message_t served,
  output logic request,                  // the whole request is there after this cycle
  output logic request_dropped,          // a request has ended that is not served
  output logic list_write,
  output logic [3:0] list_index,
  output logic [127:0] list_flit);

  // --- The number and the CRC. With a wrong flit the rest of its packet is dropped.
  logic first, take, broken, good, arrives;
  // A packet at output 0 has no place to give back.
  // verilator lint_off UNUSEDSIGNAL
  logic freed;
  // verilator lint_on UNUSEDSIGNAL
  noc_number numbers (.clock, .reset, .link, .close(wrong_crc), .first, .take, .wrong(wrong_number),
    .freed);
  logic [15:0] state, after;
  noc_crc check (.state(first ? 16'hFFFF : state), .flit(link.flit), .after);
  assign arrives = take && (first || !broken);
  assign good = arrives && after == link.crc;
  assign wrong_crc = arrives && !good;
  always_ff @(posedge clock) begin
    if (link.valid) broken <= wrong_crc || (broken && !first);
    if (arrives) state <= after;
  end

  // --- The header. It is used in its own cycle only by a packet of one flit.
  // verilator lint_off UNUSEDSIGNAL
  noc_pkg::header_t header, held, now;
  // verilator lint_on UNUSEDSIGNAL
  assign header = link.flit;
  assign now = first ? header : held;
  always_ff @(posedge clock) if (good && first) held <= header;

  logic is_request, second, in_list, data;
  logic [3:0] list_left;
  assign is_request = held.kind == noc_pkg::Request && link.kind == noc_pkg::Request;
  assign in_list = !first && !second && list_left != 0;
  assign data = !first && !second && !in_list;
  always_ff @(posedge clock) begin
    if (good) second <= first && header.kind == noc_pkg::Request;
    if (good && first) list_left <= header.list_flits;
    else if (good && in_list) list_left <= list_left - 1;
    if (reset) second <= 0;
  end

  // --- The own entry of the list, the first if it has several.
  logic [3:0] mine;
  logic found;
  logic [16:0] entry_address;
  for (genvar i = 0; i < 4; i++) begin : entries
    assign mine[i] = link.flit[32 * i + 17 +: 15] == {y, x};
  end
  assign entry_address = mine[0] ? link.flit[16:0] : mine[1] ? link.flit[48:32]
                       : mine[2] ? link.flit[80:64] : link.flit[112:96];

  // --- The rows.
  logic [16:0] row, next_row;
  logic [8:0] row_left;
  logic row_end;
  assign row_end = row_left <= 16;
  assign next_row = row + held.stride[16:0];
  assign moves = arrives && data && held.kind == noc_pkg::Data;
  assign write = moves && good;
  assign write_bytes = row_end ? row_left[4:0] : 5'd16;
  always_ff @(posedge clock) begin
    if (good && first) begin
      row <= header.address[16:0];
      write_address <= header.address[16:0];
      row_left <= header.row_bytes;
      found <= 0;
    end else if (good && in_list && mine != 0 && !found) begin
      row <= entry_address;
      write_address <= entry_address;
      found <= 1;
    end else if (write) begin
      row_left <= row_end ? held.row_bytes : row_left - 16;
      write_address <= row_end ? next_row : write_address + 16;
      if (row_end) row <= next_row;
    end
  end

  // --- The end of a packet.
  logic end_of_packet;
  assign end_of_packet = good && link.tail;
  assign count = end_of_packet && now.kind == noc_pkg::Data && now.last && !now.flag[6];
  assign count_index = now.flag[5:0];
  assign acknowledged = end_of_packet && now.kind == noc_pkg::Acknowledgement;
  assign request = end_of_packet && is_request && !first;
  assign request_dropped = link.valid && link.tail && link.kind == noc_pkg::Request && !request;

  // --- The request: a message from here. Its source is in the header, the rest in the second flit.
  always_ff @(posedge clock) begin
    if (good && first && header.kind == noc_pkg::Request) begin
      served <= '0;
      served.source <= header.address;
      served.source_stride <= header.stride;
      served.flag <= header.flag;
      served.home_x <= header.home_x;
      served.home_y <= header.home_y;
      served.list_flits <= header.list_flits;
    end
    if (good && second) begin
      served.row_bytes <= link.flit[15:0];
      served.rows <= link.flit[31:16];
      served.x <= link.flit[39:32];
      served.y <= link.flit[47:40];
      served.dram <= link.flit[48];
      served.address <= link.flit[95:64];
      served.stride <= link.flit[127:96];
    end
  end
  assign list_write = good && in_list && is_request;
  assign list_index = served.list_flits - list_left;
  assign list_flit = link.flit;

`ifndef SYNTHESIS
  // A flag counts once for a message: with the tail of its last packet, and not twice in a row.
  logic counted;
  always_ff @(posedge clock) begin
    counted <= count;
    if (!reset && count) assert (take && link.tail && now.last && !wrong_crc) else $error("a flag");
    if (!reset && count && counted) assert (first) else $error("a flag counts twice");
    if (!reset && write) assert (row_left != 0) else $error("a flit behind the rows");
  end
`endif
endmodule
