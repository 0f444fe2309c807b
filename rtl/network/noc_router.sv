// SPDX-License-Identifier: Apache-2.0
// The router of a processing element: sections 4.3, 4.4 and 4.8 of the hardware manual.
// Ports: 0 the own DMA, 1 north, 2 east, 3 south, 4 west, 5 the DRAM. Rows count to the south.
// Convention of time: a packet granted in cycle g is read from the buffer in g and has its header on
// the link in g + 1; the next router writes it into a buffer and finds its output in this cycle, and
// may grant it in g + 2. A free place is signalled while the last flit is on the link.
module noc_router #(parameter int BOARD_COLUMNS = 4, BOARD_ROWS = 4, DATA_PLACES = 2,
                    PACKET_FLITS = 32, DRAM_REQUESTS = 16,
                    INPUT_PLACES = DATA_PLACES) (   // more behind a border of a chip
  input  logic clock, reset,
  input  logic [7:0] x, y,               // the position on the board, constant
  input  logic has_dram,
  input  logic [911:0] in,               // six links, port 0 first
  output logic [17:0] in_credits,        // for each input and class
  output logic [911:0] out,
  input  logic [17:0] out_credits,       // for each output and class; without effect for output 0
  input  logic [2:0] allowed,            // output 0 may grant a packet, for each class
  output logic [2:0] granted,            // output 0 grants a packet in this cycle
  output logic wrong_number,             // a packet was lost or repeated on a link
  output logic holds);                   // an input has a packet, or a place to give back

  logic [767:0] flits;
  logic [95:0] crcs;
  logic [5:0] tails;
  logic [11:0] kinds, sent_kinds;
  logic [17:0] room;                     // output by output
  logic [17:0] room_of_class;            // class by class
  // Counted outputs need nobody's notice of a grant, and nothing gets lost inside the PE.
  // verilator lint_off UNUSEDSIGNAL
  logic [17:0] granted_kinds;
  logic [5:0] wrong;
  // verilator lint_on UNUSEDSIGNAL
  logic [35:0] wants, grants;            // wants input by input, grants output by output
  assign granted = granted_kinds[2:0];
  assign wrong_number = wrong[5:1] != 0;
  logic [5:0] held;
  assign holds = held != 0;

  for (genvar i = 0; i < 6; i++) begin : inputs
    logic [5:0] mine;
    for (genvar o = 0; o < 6; o++) begin : from
      assign mine[o] = grants[6 * o + i];
    end
    noc_input #(.INPUT(i), .BOARD_COLUMNS(BOARD_COLUMNS), .BOARD_ROWS(BOARD_ROWS),
                .DATA_PLACES(INPUT_PLACES), .PACKET_FLITS(PACKET_FLITS)) port (.clock, .reset, .x, .y,
      .has_dram, .link(in[noc_pkg::LinkBits * i +: noc_pkg::LinkBits]),
      .credits(in_credits[3 * i +: 3]), .wrong_number(wrong[i]), .holds(held[i]),
      .room(room_of_class), .wants(wants[6 * i +: 6]), .kind(kinds[2 * i +: 2]), .granted(mine),
      .flit(flits[128 * i +: 128]), .crc(crcs[16 * i +: 16]), .tail(tails[i]),
      .sent_kind(sent_kinds[2 * i +: 2]));
  end

  for (genvar o = 0; o < 6; o++) begin : outputs
    logic [5:0] wanted;
    for (genvar i = 0; i < 6; i++) begin : by
      assign wanted[i] = wants[6 * i + o];
    end
    for (genvar k = 0; k < 3; k++) begin : classes
      assign room_of_class[6 * k + o] = room[3 * o + k];
    end
    noc_output #(.COUNTED(o != 0), .DATA_PLACES(DATA_PLACES),
                 .REQUEST_PLACES(o == 5 ? DRAM_REQUESTS : 1)) port (.clock, .reset,
      .credits(out_credits[3 * o +: 3]), .allowed(o == 0 ? allowed : 3'd0),
      .room(room[3 * o +: 3]), .wants(wanted), .kinds, .granted(grants[6 * o +: 6]),
      .granted_kind(granted_kinds[3 * o +: 3]), .flits, .crcs, .tails, .sent_kinds,
      .link(out[noc_pkg::LinkBits * o +: noc_pkg::LinkBits]));
  end
endmodule
