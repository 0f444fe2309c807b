// The buffer of an input. The predecessor starts a packet only where a place is free, flits come without a pause;
// outputs take a packet only while nothing is sent. One symbolic packet is followed from its first flit to its last
// branch; a symbolic flit of it is compared. Ghosts of the other packets are counts.
  logic started = 0;
  (* anyseq *) logic pick;               // follow this packet
  (* anyconst *) logic [F - 1:0] chosen; // the flit to compare
  logic [2:0] packets_in, length;        // packets inside; flits of the arriving packet so far
  logic arriving, known_now, active, sending;
  logic seen, inside, complete;          // the followed packet
  logic [2:0] ahead, got, next_sent;     // packets before it; its flits that have come; the next to send
  logic [WIDTH - 1:0] data;
  logic data_tail, told, sending_it, compare;
  logic [5:0] to_do;                     // its outputs that have not been granted
  logic [5:0] at_first;
  logic begins, follows, ends, is_it, read_it, leaves;
  assign begins = write && !arriving;
  assign follows = begins && pick && !seen;
  assign sending = active && !read_tail;
  assign is_it = inside && ahead == 0 && to_do != 0 && told;      // the first packet in the buffer is the followed one
  assign read_it = grant ? is_it : sending_it;
  assign leaves = read && tails[read_at] && (grant ? last_branch : read_last);
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    // The predecessor.
    if (begins) assume (packets_in < PLACES);
    if (arriving) assume (write);
    if (write && 32'(length) == FLITS - 1) assume (write_tail);
    // The input: proof_input.svh proves it.
    if (known) assume (write && !(arriving && known_now));
    if (write && write_tail) assume (known || (arriving && known_now));
    if (known) assume (known_outputs != 0);
    // The outputs.
    assume ((granted & ~left) == 0);
    if (granted != 0) assume (pending && !sending);
    assume (read == (granted != 0 || sending));
    if (reset) begin
      {packets_in, length, arriving, known_now, active, seen, inside, complete, ahead, sending_it, compare} <= 0;
    end else begin
      packets_in <= packets_in + 3'(begins) - 3'(leaves);
      if (write) begin
        arriving <= !write_tail;
        length <= write_tail ? 3'd0 : length + 3'd1;
        known_now <= !write_tail && (known || (arriving && known_now));
      end
      active <= granted != 0 || sending;
      if (follows) begin
        seen <= 1;
        inside <= 1;
        told <= 0;
        to_do <= 0;
        complete <= 0;
        got <= 0;
        ahead <= packets_in - 3'(leaves);
      end else if (inside && ahead != 0 && leaves) ahead <= ahead - 1;
      if (write && (follows || (inside && !complete))) begin
        got <= follows ? 3'd1 : got + 3'd1;
        complete <= write_tail;
        if ((follows ? 3'd0 : got) == 3'(chosen)) {data, data_tail} <= {write_data, write_tail};
        if (known) {to_do, at_first, told} <= {known_outputs, known_outputs, 1'b1};
      end
      if (grant && is_it) to_do <= to_do & ~granted;
      if (grant) sending_it <= is_it;
      if (read) next_sent <= grant ? 3'd1 : next_sent + 3'd1;
      compare <= read && read_it && (grant ? 3'd0 : next_sent) == 3'(chosen);
      if (inside && read_it && leaves) inside <= 0;
    end
    if (!reset && started) begin
      assert (32'(packets_in) <= PLACES);
      // The followed packet is first exactly when the buffer says so, with the outputs that are left.
      if (inside && ahead == 0 && told && to_do != 0) assert (pending && left == to_do);
      // No flit is sent before it has come, and the last flit of the packet ends it.
      if (read && read_it) assert ((grant ? 3'd0 : next_sent) < got);
      if (compare) assert (read_data == data && read_tail == data_tail);
      // It stays until every branch has been sent, and does not leave before.
      if (inside && ahead == 0 && leaves) assert (read_it && (grant ? to_do == granted : to_do == 0) && complete);
      if (granted != 0 && is_it) assert ((granted & ~to_do) == 0);
    end
  end
