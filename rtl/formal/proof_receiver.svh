// The receiver: a flag counts with the last flit of the last packet of a message, once, and never with a wrong CRC or
// number, nor behind one. Content, CRCs, numbers and lengths of the packets are free; the CRC is a black box.
  // Wires of the module that counts.
  (* hierconn *) wire [3:0] \numbers.expected ;
  (* hierconn *) wire \numbers.closed ;
  (* hierconn *) wire \numbers.dropped ;
  logic started = 0;
  logic head;                            // the next flit is a header
  logic broken_now, wrong_before;        // an error in this packet's flits so far; in any data or number before
  logic [3:0] packets;                   // that have come: the number of the next
  logic bad_number, bad_now, error_here;
  noc_pkg::header_t head_flit;
  noc_pkg::header_t kept;
  logic [1:0] class_now;
  assign head_flit = link.flit;
  logic bad_flit, wanted, repeated_number;
  assign repeated_number = link.number + 4'd1 == packets;
  assign bad_number = head && link.number != packets;
  assign bad_flit = link.crc != after;
  // The first error of any kind closes the receiver for data.
  assign bad_now = bad_number || bad_flit || (!head && broken_now);
  noc_pkg::header_t used;
  assign used = head ? head_flit : kept;
  assign wanted = link.valid && link.tail && !bad_now && !wrong_before && used.kind == noc_pkg::Data && used.last &&
                  used.flag < 64;
  logic [7:0] counted, messages;
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    // Classes of the wires and of the headers agree, unless a flit is wrong.
    if (link.valid && head && !bad_flit) assume (head_flit.kind == link.kind);
    if (reset) begin
      head <= 1;
      {broken_now, wrong_before, packets, counted, messages} <= 0;
    end else if (link.valid) begin
      head <= link.tail;
      broken_now <= !link.tail && bad_now;
      wrong_before <= wrong_before || bad_number || (bad_flit && take && (head || !broken_now));
      packets <= head && !repeated_number ? link.number + 4'd1 : packets;
      if (head) kept <= head_flit;
      if (head) class_now <= link.kind;
      counted <= counted + 8'(count);
      messages <= messages + 8'(wanted);
    end
    // The class is that of the header for the whole packet.
    if (link.valid && !head && !broken_now) assume (link.kind == kept.kind);
    if (!reset && started) begin
      assert (head == first);
      assert (packets == \numbers.expected );
      if (link.valid) assert (count == (wanted && take));
      if (!link.valid) assert (!count);
      if (count) assert (!wrong_before && !bad_now && used.last && count_index == used.flag[5:0]);
      if (wanted) assert (count);
      assert (counted == messages);
      assert (wrong_before == \numbers.closed );
      if (!head && !broken_now && !wrong_before) assert (kept == held && !broken && !\numbers.dropped );
      if (!head && wrong_before && class_now == noc_pkg::Data) assert (broken || \numbers.dropped );
      if (!head && class_now != noc_pkg::Data && !broken && !\numbers.dropped ) assert (held.kind == class_now);
      assert (!broken_now || wrong_before);
      // Nothing is written behind an error.
      if (write) assert (!wrong_before && !bad_now);
    end
  end
