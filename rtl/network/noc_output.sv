// SPDX-License-Identifier: Apache-2.0
// An output of a router: it counts the free places behind its link, grants the inputs in turns, and
// carries the packet of the granted input. Output 0 asks the DMA instead of counting.
module noc_output #(parameter bit COUNTED = 1, parameter int DATA_PLACES = 2, REQUEST_PLACES = 1) (
  input  logic clock, reset,
  input  logic [2:0] credits,            // from behind the link, for each class
  input  logic [2:0] allowed,            // from the DMA, for each class; without effect if COUNTED
  output logic [2:0] room,               // for each class; 0 while taken
  input  logic [5:0] wants,              // inputs with a packet for this output
  input  logic [11:0] kinds,             // their classes
  output logic [5:0] granted,
  output logic [2:0] granted_kind,       // for each class
  // the inputs' packets
  input  logic [767:0] flits,
  input  logic [95:0] crcs,
  input  logic [5:0] tails,
  input  logic [11:0] sent_kinds,
  output noc_pkg::link_t link);

  logic active, taken;
  logic [2:0] from, last, winner;        // inputs
  logic [3:0] number;
  assign taken = active && !link.tail;

  // --- The arbiter: the first input behind the last one granted.
  always_comb begin
    integer i;
    winner = 0;
    // From the lowest priority to the highest: first the inputs up to the last, then those behind it.
    for (i = 5; i >= 0; i = i - 1) if (wants[i] && i <= 32'(last)) winner = 3'(i);
    for (i = 5; i >= 0; i = i - 1) if (wants[i] && i > 32'(last)) winner = 3'(i);
    for (i = 0; i < 6; i = i + 1) granted[i] = wants[i] && winner == 3'(i);
  end
  always_comb begin
    integer i, k;
    for (k = 0; k < 3; k = k + 1) begin
      granted_kind[k] = 0;
      for (i = 0; i < 6; i = i + 1) if (granted[i] && kinds[2 * i +: 2] == 2'(k)) granted_kind[k] = 1;
    end
  end
  always_ff @(posedge clock) begin
    if (reset) begin
      active <= 0;
      last <= 5;
      number <= 0;
    end else begin
      active <= wants != 0 || taken;
      if (wants != 0) last <= winner;
      if (active && link.tail) number <= number + 1;
    end
    if (wants != 0) from <= winner;
  end

  // --- The link.
  assign link.valid = active;
  assign link.tail = tails[from];
  assign link.kind = sent_kinds[2 * from +: 2];
  assign link.number = number;
  assign link.crc = crcs[16 * from +: 16];
  assign link.flit = flits[128 * from +: 128];

  // --- Free places behind the link.
  logic [2:0] data_places;
  logic [4:0] request_places;
  logic acknowledgement_place;
  logic [2:0] free;
  assign free = COUNTED ? {acknowledgement_place, request_places != 0, data_places != 0} : allowed;
  assign room = taken ? 3'd0 : free;
  always_ff @(posedge clock) begin
    if (reset) begin
      data_places <= 3'(DATA_PLACES);
      request_places <= 5'(REQUEST_PLACES);
      acknowledgement_place <= 1;
    end else begin
      data_places <= data_places + 3'(credits[0]) - 3'(granted_kind[0]);
      request_places <= request_places + 5'(credits[1]) - 5'(granted_kind[1]);
      acknowledgement_place <= (acknowledgement_place || credits[2]) && !granted_kind[2];
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clock) if (!reset) begin
    assert ((granted_kind & ~room) == 0) else $error("a grant without room");
    if (COUNTED) begin
      assert (!granted_kind[0] || data_places != 0) else $error("credits are negative");
      assert (!credits[0] || 32'(data_places) < DATA_PLACES) else $error("too many credits");
      assert (!credits[1] || 32'(request_places) < REQUEST_PLACES) else $error("too many credits");
      assert (!credits[2] || !acknowledgement_place) else $error("too many credits");
    end
  end
`endif
endmodule
