// SPDX-License-Identifier: Apache-2.0
// An input of a router: the number of each packet, its outputs, a buffer for each class, the choice
// of a class. The outputs of a packet are found while it arrives: with the header, for a multicast
// with the last flit of the list. A packet of data with a wrong header or list, or without the end of its
// list, goes to output 0.
module noc_input #(parameter int INPUT = 0, BOARD_COLUMNS = 4, BOARD_ROWS = 4,
                   DATA_PLACES = 2, PACKET_FLITS = 32) (
  input  logic clock, reset,
  input  logic [7:0] x, y,               // of this router
  input  logic has_dram,
  input  noc_pkg::link_t link,
  output logic [2:0] credits,            // a place is free, for each class
  output logic wrong_number,
  output logic holds,                    // a packet, or a place to give back
  // to the outputs
  input  logic [17:0] room,              // outputs with room and not taken, for each class
  output logic [5:0] wants,              // the chosen packet may leave by these outputs
  output logic [1:0] kind,               // the chosen class
  input  logic [5:0] granted,            // outputs that have chosen this input
  // the packet on its way out
  output logic [127:0] flit,
  output logic [15:0] crc,
  output logic tail,
  output logic [1:0] sent_kind);

  // --- Numbers. An input that misses a packet, or has a wrong header or list, takes no further data, and
  // gives the places back: each in the cycle behind the packet's last flit, or later if a packet leaves the
  // buffer in this cycle.
  logic first, accept, freed, left_buffer, give_back, wrong_way;
  logic [2:0] to_free;
  noc_number numbers (.clock, .reset, .link, .close(wrong_way), .first, .take(accept), .wrong(wrong_number),
    .freed);
  assign give_back = to_free != 0 && !left_buffer;
  always_ff @(posedge clock) to_free <= reset ? 3'd0 : to_free + 3'(freed) - 3'(give_back);

  // --- Outputs of the packet that arrives.
  // verilator lint_off UNUSEDSIGNAL
  noc_pkg::header_t header;
  // verilator lint_on UNUSEDSIGNAL
  logic [5:0] header_outputs, list_outputs, list_before, outputs, known_outputs;
  logic [3:0] list_left;
  logic list_flit, list_ends, ends_early, known;
  assign header = link.flit;
  noc_route #(.BOARD_COLUMNS(BOARD_COLUMNS), .BOARD_ROWS(BOARD_ROWS)) route (.x, .y,
    .to_x(header.x), .to_y(header.y), .dram(header.dram && has_dram), .outputs(header_outputs));
  noc_list_route #(.INPUT(INPUT), .BOARD_COLUMNS(BOARD_COLUMNS), .BOARD_ROWS(BOARD_ROWS))
    list_route (.x, .y, .flit(link.flit), .outputs(list_outputs));

  // A request has a single place, the source; its list is for the source's DMA.
  logic multicast;
  assign multicast = link.kind == noc_pkg::Data && header.list_flits != 0;
  assign list_flit = !first && list_left != 0;

  // The CRC of header and list, of data alone: other packets are dropped where they end.
  logic [15:0] state, after;
  noc_crc check (.state(first ? 16'hFFFF : state), .flit(link.flit), .after);
  assign wrong_way = accept && link.kind == noc_pkg::Data && (first || list_flit) && after != link.crc;
  always_ff @(posedge clock) state <= after;

  assign outputs = first ? header_outputs : list_before | list_outputs;
  assign list_ends = first ? !multicast : list_left == 1;
  assign ends_early = link.tail && !list_ends && (first || list_flit);
  assign known_outputs = outputs == 0 || ends_early || wrong_way ? 6'd1 : outputs;
  assign known = accept && (list_ends || ends_early || wrong_way);
  always_ff @(posedge clock) begin
    if (reset || wrong_way) list_left <= 0;
    else if (accept && first) list_left <= multicast ? header.list_flits : 4'd0;
    else if (accept && list_flit) list_left <= list_left - 1;
    if (accept) list_before <= first ? 6'd0 : outputs;
  end

  // --- Buffers.
  logic [2:0] pending, choice, tails, lasts;
  logic [17:0] left;
  logic [431:0] read_data;
  logic grant, active, taken;
  for (genvar k = 0; k < 3; k++) begin : classes
    localparam int Places = k == 0 ? DATA_PLACES : 1;
    localparam int Flits = k == 0 ? PACKET_FLITS : k == 1 ? 17 : 1;
    logic here, chosen, sending;
    assign here = link.kind == 2'(k);
    assign chosen = grant && choice[k];
    assign sending = taken && sent_kind == 2'(k);
    noc_buffer #(.PLACES(Places), .FLITS(Flits)) buffer (.clock, .reset, .write(accept && here),
      .write_tail(link.tail), .write_data({link.crc, link.flit}), .known(known && here),
      .known_outputs, .pending(pending[k]), .left(left[6 * k +: 6]),
      .granted(choice[k] ? granted : 6'd0), .read(chosen || sending),
      .read_data(read_data[144 * k +: 144]), .read_tail(tails[k]), .read_last(lasts[k]));
    logic leaves;
    assign leaves = active && sent_kind == 2'(k) && tails[k] && lasts[k];
    if (k == 0) begin : data
      assign left_buffer = leaves;
      assign credits[k] = leaves || give_back;
    end else begin : others
      assign credits[k] = leaves;
    end
  end

  assign holds = pending != 0 || to_free != 0;

  // --- The choice: the highest class with a packet for an output with room.
  logic [2:0] possible;
  assign possible[0] = pending[0] && (left[5:0] & room[5:0]) != 0;
  assign possible[1] = pending[1] && (left[11:6] & room[11:6]) != 0;
  assign possible[2] = pending[2] && (left[17:12] & room[17:12]) != 0;
  assign choice = taken ? 3'd0 : possible[2] ? 3'b100 : possible[1] ? 3'b010 : {2'd0, possible[0]};
  assign kind = choice[2] ? 2'd2 : choice[1] ? 2'd1 : 2'd0;
  assign wants = choice[2] ? left[17:12] & room[17:12] :
                 choice[1] ? left[11:6] & room[11:6] :
                 choice[0] ? left[5:0] & room[5:0] : 6'd0;
  assign grant = granted != 0;

  // --- Sending: a flit in every cycle from the grant to the tail.
  assign tail = tails[sent_kind];
  assign taken = active && !tail;
  assign {crc, flit} = sent_kind[1] ? read_data[431:288] : sent_kind[0] ? read_data[287:144]
                     : read_data[143:0];
  always_ff @(posedge clock) begin
    if (reset) active <= 0;
    else active <= grant || taken;
    if (grant) sent_kind <= kind;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clock) if (!reset) begin
    assert (first || link.valid) else $error("a packet stops on the link");
    assert (!taken || !grant) else $error("a grant during a packet");
    assert ((granted & ~wants) == 0) else $error("an output that nobody wants");
  end
`endif
endmodule
