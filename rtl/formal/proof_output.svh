// An output: grants, credits, the packet on the link, the arbiter's fairness. Inputs are free within the rules
// of noc_input: a chosen packet has room for its class.
  logic started = 0;
  logic [3:0] data_out;                  // places in use behind the link
  logic request_out, acknowledgement_out;
  logic sending;                         // by the grants and tails alone
  logic [2:0] sender;
  logic [3:0] packets;
  (* anyconst *) logic [2:0] me;
  logic [2:0] passed;                    // grants of others while input `me` has wanted without a break
  logic [3:0] distance;                  // from the last one granted to `me`
  assign distance = me > last ? 4'(me) - 4'(last) : 4'(me) + 4'd6 - 4'(last);
  // Input `me` begins to wait in any cycle. Packets have at most 3 flits; while it waits and the output is not taken, its
  // class has room in the third cycle at the latest, and whenever another packet is granted.
  (* anyseq *) logic begins_to_wait;
  logic waits_before, waits, taken_now;
  logic [2:0] flits_sent, refused;
  logic [7:0] waited;
  assign waits = waits_before || begins_to_wait;
  assign taken_now = sending && !tails[sender];
  logic other;
  assign other = granted != 0 && wants[me] && !granted[me];
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    assume (me < 6);
    for (integer i = 0; i < 6; i = i + 1) begin
      assume (kinds[2 * i +: 2] != 3);
      if (wants[i]) assume (room[kinds[2 * i +: 2]]);
    end
    // A place comes back that was taken.
    assume (!credits[0] || data_out != 0);
    assume (!credits[1] || request_out);
    assume (!credits[2] || acknowledgement_out);
    assume (!(sending && flits_sent == 2) || tails[sender]);
    if (waits && wants != 0) assume (wants[me]);
    if (waits && !taken_now && refused == 2) assume (wants[me]);
    waits_before <= !reset && waits && !granted[me];
    waited <= !reset && waits && !granted[me] ? waited + 8'd1 : 8'd0;
    flits_sent <= granted != 0 ? 3'd0 : flits_sent + 3'(sending);
    refused <= reset || granted != 0 || !waits ? 3'd0 : refused + 3'(!taken_now);
    if (reset) begin
      {data_out, request_out, acknowledgement_out, sending, packets, passed} <= 0;
    end else begin
      data_out <= data_out + 4'(granted_kind[0]) - 4'(credits[0]);
      request_out <= (request_out || granted_kind[1]) && !credits[1];
      acknowledgement_out <= (acknowledgement_out || granted_kind[2]) && !credits[2];
      sending <= granted != 0 || (sending && !tails[sender]);
      if (sending && tails[sender]) packets <= packets + 1;
      if (other) passed <= passed + 1;
      else if (granted != 0) passed <= 0;
    end
    for (integer i = 0; i < 6; i = i + 1) if (granted[i]) sender <= i;
    if (!reset && started) begin
      assert ((granted & ~wants) == 0 && (granted & (granted - 6'd1)) == 0);
      assert ((granted != 0) == (wants != 0));
      assert (!(granted != 0 && sending && !tails[sender]));
      if (COUNTED) begin
        assert (32'(data_out) + 32'(data_places) == DATA_PLACES);
        assert (request_out == (request_places == 0) && request_places <= 1 && acknowledgement_out == !acknowledgement_place);
      end
      assert (sending == active && (!sending || sender == from) && number == packets);
      assert (link.valid == sending);
      if (sending) assert (link.tail == tails[sender] && link.flit == flits[128 * sender +: 128] &&
                           link.crc == crcs[16 * sender +: 16] && link.kind == sent_kinds[2 * sender +: 2]);
      assert (last < 6);
      assert (passed + distance <= 6);
      assert (passed <= 5);
      // The wait: at most 5 packets of others, each with its flits and the cycles without room.
      assert (!sending || flits_sent <= 2);
      assert (refused <= 2);
      assert (waits_before || (waited == 0 && refused == 0));
      assert (waited <= (6 - distance) * 5 + (sending ? flits_sent + 1 : 3 + refused));
      assert (waited <= 30);
    end
  end
