// The port of the DMA: fetch, sender and receiver have it one at a time, at most one access in a cycle, and an access is
// reported exactly when bytes move. Router, SRAM and core are free within the rules of section 4.4.
  (* hierconn *) wire \receiver.good ;
  (* hierconn *) wire \receiver.broken ;
  (* hierconn *) wire \receiver.first ;
  (* hierconn *) wire [127:0] \receiver.held ;
  (* hierconn *) wire \receiver.numbers.dropped ;
  logic started = 0, active, head;
  logic [1:0] class_now;
  logic [2:0] owners;
  noc_pkg::header_t head_flit;
  assign head_flit = receive.flit;
  assign owners = {receiving, fetch_port, tx_port};
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    // Output 0: one packet at a time, and only what the DMA allows.
    assume (granted == 0 || granted == 1 || granted == 2 || granted == 4);
    assume ((granted & ~allowed) == 0);
    assume (granted == 0 || !active || receive.tail);
    assume (receive.valid == active);
    if (active) assume (receive.kind == class_now);
    // A header with a right CRC has the class of the wires.
    if (active && head && \receiver.good ) assume (head_flit.kind == receive.kind);
    if (reset) begin
      active <= 0;
      head <= 1;
    end else begin
      active <= granted != 0 || (active && !receive.tail);
      if (active) head <= receive.tail;
    end
    if (granted != 0) class_now <= granted[0] ? 2'd0 : granted[1] ? 2'd1 : 2'd2;
    if (!reset && started) begin
      assert ((owners & (owners - 3'd1)) == 0);
      assert (32'(fetch_read) + 32'(tx_read) + 32'(rx_moves) <= 1);
      assert (port_access == (fetch_read || tx_read || rx_moves));
      assert (port_read == (fetch_read || tx_read) && (!port_write || rx_moves));
      assert (!fetch_read || fetch_port);
      assert (!tx_read || tx_port);
      assert (!rx_moves || receiving);
      assert (receiving == (active && class_now == 0));
      assert (head == \receiver.first );
      assert (active || head);
      // The class of a packet whose header was right.
      if (active && !head && !\receiver.broken  && !\receiver.numbers.dropped )
        assert (\receiver.held [1:0] == class_now);
      // With a request or an acknowledgement no byte moves.
      if (active && class_now != 0) assert (!rx_moves);
    end
  end
