// The wait at an input. A packet of data whose outputs are known leaves by all of them within a number of cycles. Its
// premises: packets have at most 3 flits; an input that is free with a packet is granted within 30 cycles, which
// proof_output.svh proves of each output; while the packet waits, at most HIGHER grants go to higher classes.
// The outputs of each packet are known once, with its tail at the latest, for any header: proof_buffer.svh builds on it.
  localparam int HIGHER = 4, WAIT = 30, LENGTH = 3;
  // Wires of the buffer of data.
  (* hierconn *) wire [1:0] \classes[0].buffer.waiting ;
  (* hierconn *) wire \classes[0].buffer.head ;
  (* hierconn *) wire \classes[0].buffer.known_place ;
  (* hierconn *) wire [5:0] \classes[0].buffer.outputs_0 ;
  (* hierconn *) wire [5:0] \classes[0].buffer.outputs_1 ;
  (* hierconn *) wire \numbers.dropped ;
  (* hierconn *) wire \numbers.closed ;
  logic told, dropped;                   // the outputs of the packet that arrives; it is thrown away
  logic misled, closed;                  // a header or list was wrong; data is thrown away
  (* anyseq *) logic pick;               // follow the packet whose outputs are known in this cycle
  logic started = 0, data_known, follows, inside, fresh, place, own, other;
  logic [1:0] waiting;
  logic head, known_place;
  logic [5:0] outputs_0, outputs_1;
  logic [4:0] to_go, most, events;       // grants until it has left, and at first; grants since it is known
  logic [2:0] sent, higher;
  logic [5:0] quiet;                     // cycles in which the input is free and not granted
  logic [11:0] waited;
  function automatic logic [4:0] count(input logic [5:0] set);
    count = 5'(set[0]) + 5'(set[1]) + 5'(set[2]) + 5'(set[3]) + 5'(set[4]) + 5'(set[5]);
  endfunction
  assign waiting = \classes[0].buffer.waiting ;
  assign head = \classes[0].buffer.head ;
  assign known_place = \classes[0].buffer.known_place ;
  assign dropped = \numbers.dropped ;
  assign closed = \numbers.closed ;
  assign outputs_0 = \classes[0].buffer.outputs_0 ;
  assign outputs_1 = \classes[0].buffer.outputs_1 ;
  assign data_known = known && link.kind == noc_pkg::Data;
  assign follows = data_known && pick && !inside;
  assign own = grant && choice[0];
  assign other = grant && !choice[0];
  assign to_go = count(place ? outputs_1 : outputs_0) + (head != place ? count(head ? outputs_1 : outputs_0) : 5'd0);
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    // Outputs grant what is wanted; a free input with a packet in time. A packet comes where a place is free.
    assume ((granted & ~wants) == 0);
    assume (quiet != WAIT - 1 || grant || taken);
    assume (!(active && sent == LENGTH - 1) || tail);
    assume (!data_known || waiting != 3);
    assume (!inside || !other || higher != HIGHER);
    sent <= reset || grant ? 3'd0 : sent + 3'(active);
    quiet <= reset || grant || taken || !inside ? 6'd0 : quiet + 6'd1;
    fresh <= follows;
    if (accept) told <= known || (!first && told);
    misled <= !reset && (misled || wrong_way);
    if (fresh) most <= to_go;
    if (reset) {inside, waited, events, higher} <= 0;
    else if (follows) begin
      inside <= 1;
      place <= known_place;
      {waited, events, higher} <= 0;
    end else if (inside) begin
      waited <= waited + 1;
      events <= events + 5'(grant);
      higher <= higher + 3'(other);
      if (own && head == place && to_go == count(granted)) inside <= 0;
    end
    if (started && !reset) begin
      assert (waiting == 0 ? head == known_place : waiting == 3 ? head == known_place : waiting[head] && known_place != head);
      assert (!waiting[0] || outputs_0 != 0);
      assert (!waiting[1] || outputs_1 != 0);
      assert (!active || sent < LENGTH);
      if (!first && !dropped) assert (told == (list_left == 0));
      if (accept && link.tail) assert (known || (!first && told));
      if (known) assert (accept && known_outputs != 0 && !(!first && told));
      // Data with a wrong header or list goes to output 0, and no data comes behind.
      if (wrong_way) assert (known && known_outputs == 6'd1);
      assert (!misled || closed);
      if (misled && accept && first) assert (link.kind != noc_pkg::Data);
      // A packet that can leave is offered to all its outputs with room, the highest class first.
      if (!taken && possible[2]) assert (wants == (left[17:12] & room[17:12]));
      else if (!taken && possible[1]) assert (wants == (left[11:6] & room[11:6]));
      else if (!taken) assert (wants == (pending[0] ? left[5:0] & room[5:0] : 6'd0));
      if (inside) begin
        assert (waiting[place] && (head == place || waiting[head]));
        assert (to_go != 0 && to_go <= 12 && events >= 5'(higher) && higher <= HIGHER);
        assert (fresh ? events == 0 && higher == 0 : most <= 12 && 7'(events) + 7'(to_go) <= 7'(most) + 7'(higher));
        assert (quiet < WAIT && (!fresh || waited == 0));
        assert (waited <= (12'(events) + 1) * (WAIT + LENGTH) - (taken ? 12'(LENGTH) - 12'(sent) + WAIT : WAIT - 12'(quiet)));
        assert (waited < (12 + HIGHER + 1) * (WAIT + LENGTH));
      end
    end
  end
