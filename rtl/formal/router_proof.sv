// SPDX-License-Identifier: Apache-2.0
// A router at (1, 1) of a board of 3 x 3, with DRAM. Neighbours keep to section 4.4: packets come without a pause, only
// where a place is free, with right numbers and CRCs; places come back at any time. Packets have one place (no lists).
// Each header carries the number of its input in bits 96 to 98, so an output can tell whose packet it has.
// One symbolic packet of a symbolic input and class is followed to its output.
module router_proof #(parameter int FLITS = 2) (input logic clock, input logic reset,
  input logic [5:0] any_valids, tails, picks, input logic [11:0] kinds, input logic [95:0] dests,
  input logic [11:0] marks, input logic [17:0] out_credits, input logic [2:0] allowed);

  // Inputs 0, 2 and 4 have packets.
  logic [5:0] valids;
  assign valids = any_valids & 6'b010101;
  logic [911:0] in, out;
  logic [17:0] in_credits;
  logic [2:0] granted;
  logic wrong_number;
  noc_router #(.DRAM_REQUESTS(1), .BOARD_COLUMNS(3), .BOARD_ROWS(3), .PACKET_FLITS(FLITS)) router (.clock, .reset, .x(8'd1), .y(8'd1),
    .has_dram(1'b1), .in, .in_credits, .out, .out_credits, .allowed, .granted, .wrong_number);

  logic started = 0;
  logic [5:0] heads;                     // the next flit of an input is a header
  logic [3:0] numbers [0:5];
  logic [2:0] places [0:5];              // free, of data
  logic [5:0] request_place, acknowledgement_place;
  logic [1:0] class_now [0:5];
  (* anyconst *) logic [2:0] me;
  (* anyconst *) logic [1:0] class_me;
  (* anyconst *) logic [2:0] to;
  logic seen, inside;
  logic [4:0] ahead;                     // packets of this input, class and output before it
  logic [1:0] mark;                      // its content, in bits 99 and 100 of the header
  logic [5:0] begins, out_heads;
  logic [2:0] route [0:5];
  logic [5:0] mine;                      // a header for the followed way
  for (genvar i = 0; i < 6; i++) begin : ins
    logic [127:0] h;
    logic [7:0] dx, dy;
    logic dram;
    assign dram = kinds[2 * i +: 2] != 2 && marks[2 * i] && marks[2 * i + 1];
    assign {dy, dx} = dests[16 * i +: 16];
    assign route[i] = dx < 1 ? 3'd4 : dx > 1 ? 3'd2 : dy < 1 ? 3'd1 : dy > 1 ? 3'd3 : dram ? 3'd5 : 3'd0;
    assign h = {27'd0, marks[2 * i +: 2], 3'(i), 64'd0, dy, dx, 12'd0, dram, 1'b0, kinds[2 * i +: 2]};
    assign in[152 * i +: 152] = {valids[i], tails[i], kinds[2 * i +: 2], numbers[i], 16'd0, heads[i] ? h : 128'd0};
    assign begins[i] = valids[i] && heads[i];
    assign mine[i] = begins[i] && me == i && kinds[2 * i +: 2] == class_me && route[i] == to;
    always_ff @(posedge clock) begin
      assume (kinds[2 * i +: 2] != 3 && dx < 3 && dy < 3);
      if (begins[i]) begin
        assume (kinds[2 * i +: 2] != 0 || places[i] != 0);
        assume (kinds[2 * i +: 2] != 1 || request_place[i]);
        assume (kinds[2 * i +: 2] != 2 || (acknowledgement_place[i] && tails[i]));
        // A packet does not come back through its own link.
        assume (i == 0 || i == 5 || route[i] != i);
      end
      if (!heads[i]) assume (valids[i] && kinds[2 * i +: 2] == class_now[i] && tails[i]);
      if (reset) begin
        heads[i] <= 1;
        numbers[i] <= 0;
        places[i] <= 2;
        request_place[i] <= 1;
        acknowledgement_place[i] <= 1;
      end else begin
        if (valids[i]) heads[i] <= tails[i];
        if (valids[i] && tails[i]) numbers[i] <= numbers[i] + 1;
        if (begins[i]) class_now[i] <= kinds[2 * i +: 2];
        places[i] <= places[i] + 3'(in_credits[3 * i]) - 3'(begins[i] && kinds[2 * i +: 2] == 0);
        request_place[i] <= (request_place[i] || in_credits[3 * i + 1]) && !(begins[i] && kinds[2 * i +: 2] == 1);
        acknowledgement_place[i] <= (acknowledgement_place[i] || in_credits[3 * i + 2]) &&
                                    !(begins[i] && kinds[2 * i +: 2] == 2);
      end
      if (started && !reset) begin
        // Places that come back were taken.
        assert (places[i] <= 2);
        assert (!(in_credits[3 * i + 1] && request_place[i]) && !(in_credits[3 * i + 2] && acknowledgement_place[i]));
        assert (!wrong_number);
      end
    end
  end

  // --- Outputs: each header is on its way; of the followed input and class they come in order.
  logic [5:0] arrives;                   // a header of the followed input, class and output
  logic [2:0] used [0:5];                // places behind the link that are taken, of data
  logic [5:0] used_request, used_acknowledgement;
  for (genvar o = 0; o < 6; o++) begin : outs
    logic [127:0] h;
    logic head, valid, tail;
    logic [1:0] kind;
    assign {valid, tail, kind} = out[152 * o + 148 +: 4];
    assign h = out[152 * o +: 128];
    assign head = valid && out_heads[o];
    assign arrives[o] = head && h[98:96] == me && kind == class_me && to == o;
    always_ff @(posedge clock) begin
      assume (!out_credits[3 * o] || used[o] != 0);
      assume (!out_credits[3 * o + 1] || used_request[o]);
      assume (!out_credits[3 * o + 2] || used_acknowledgement[o]);
      if (reset) begin
        out_heads[o] <= 1;
        {used[o], used_request[o], used_acknowledgement[o]} <= 0;
      end else begin
        if (valid) out_heads[o] <= tail;
        used[o] <= used[o] + 3'(head && kind == 0) - 3'(out_credits[3 * o]);
        used_request[o] <= (used_request[o] || (head && kind == 1)) && !out_credits[3 * o + 1];
        used_acknowledgement[o] <= (used_acknowledgement[o] || (head && kind == 2)) && !out_credits[3 * o + 2];
      end
      if (started && !reset) begin
        if (head) begin
          assert (kind == h[1:0]);
          assert (o == (h[23:16] < 1 ? 4 : h[23:16] > 1 ? 2 : h[31:24] < 1 ? 1 : h[31:24] > 1 ? 3 : h[3] ? 5 : 0));
        end
        // The next buffer does not overflow.
        if (o != 0) assert (used[o] <= 2 && !(head && kind == 1 && used_request[o]) &&
                            !(head && kind == 2 && used_acknowledgement[o]));
        if (!out_heads[o]) assert (valid);
        if (arrives[o]) begin
          // No packet from nowhere, none twice; the followed packet unchanged, in its turn.
          assert (ahead != 0 || inside);
          if (inside && ahead == 0) assert (h[100:99] == mark);
        end
      end
    end
  end
  logic follows;
  assign follows = mine != 0 && !seen && picks[0];
  always_ff @(posedge clock) begin
    started <= 1;
    assume (reset == !started);
    assume (me < 6 && class_me < 3 && to < 6);
    if (reset) {seen, inside, ahead} <= 0;
    else begin
      // Before the followed packet all packets of its way are counted; behind it none.
      if (follows) begin
        seen <= 1;
        inside <= 1;
        mark <= marks[2 * me +: 2];
      end
      if (arrives != 0 && inside && ahead == 0) inside <= 0;
      ahead <= ahead + 5'(mine != 0 && !seen && !follows) - 5'(arrives != 0 && ahead != 0);
    end
    // Behind the followed packet no other of its way comes.
    if (seen) assume (mine == 0);
  end

endmodule
