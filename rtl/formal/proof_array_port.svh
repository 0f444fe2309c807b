// The port of the array: a write is an access of the results, with their address and bytes. All requests are free.
  always_ff @(posedge clock) begin
    assert ((winner & (winner - 9'd1)) == 0 && (winner & ~contend) == 0);
    if (port_write) begin
      assert (grant[Write] && request[Write] && access[Write]);
      assert (port_address == addresses[17 * Write +: 17] && port_bytes == sizes[6 * Write +: 6]);
    end
    for (integer i = 0; i < 32; i = i + 1) assert (port_strobe[i] == (port_write && i < sizes[6 * Write +: 6]));
    if (!port_write) assert (port_strobe == 0);
    if (port_request) assert (enable && winner != 0);
  end
