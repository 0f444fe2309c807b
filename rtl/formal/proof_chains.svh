// A descriptor's end: `done` comes once for each descriptor that was fetched without error, behind its fetch, for a
// DRAM behind its own acknowledgement. Faults, doorbells and acknowledgements are free within the rules.
  logic started = 0, fetching, open, waiting;
  logic lost;                            // a packet of a dropped descriptor may still be under way
  logic [3:0] outstanding;               // acknowledgements that will come
  always_ff @(posedge clock) begin
    started <= 1;
    assume (started || reset);
    // The fetch ends behind its grant; a packet is the last one only while there are packets.
    assume (!grant || want_fetch);
    assume (!finish || fetching);
    assume (!sent || (open && !waiting) || lost);
    assume (!acknowledged || outstanding != 0);
    assume (!finish || good || fault);   // an error of the descriptor drops the chains
    assume (outstanding < 8);
    if (reset) {fetching, open, waiting, lost, outstanding} <= 0;
    else begin
      if (fault) {fetching, open, waiting} <= 0;
      else begin
        fetching <= grant || (fetching && !finish);
        // A descriptor is open from the end of its fetch to `done`, or to the next group.
        open <= (finish && good) || (open && !(sent && !wants_acknowledgement) && !(waiting && acknowledged && stale == 0));
        waiting <= (waiting || (open && sent && wants_acknowledgement)) && !(waiting && acknowledged && stale == 0);
      end
      lost <= (lost || (fault && open && !waiting)) && !sent && !grant;
      outstanding <= outstanding + 4'(sent && wants_acknowledgement) - 4'(acknowledged);
    end
    if (!reset && started) begin
      assert (!done || open);
      assert (done == (open && !more && (waiting ? acknowledged && stale == 0 : sent && !wants_acknowledgement)));
      // A grant begins a new fetch only when the descriptor before is over.
      if (grant) assert (!open && !fetching);
      assert (fetching == (state == Fetch) && open == (state == Send || state == Wait) && waiting == (state == Wait));
      assert (!lost || (!open && !fetching));
      assert (outstanding == stale + 4'(waiting));
    end
  end
