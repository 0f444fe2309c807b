// SPDX-License-Identifier: Apache-2.0
// The receiver at the end of a link: it compares the number of each packet with its own count, and throws
// away packets of data behind an error. Requests and acknowledgements pass.
// A packet with the number of the packet before has come again: it is dropped, and has taken no place.
module noc_number (
  input  logic clock, reset,
  // Flits and CRC matter to others.
  // verilator lint_off UNUSEDSIGNAL
  input  noc_pkg::link_t link,
  // verilator lint_on UNUSEDSIGNAL
  input  logic close,                    // a wrong CRC: data is thrown away from the next packet on
  output logic first,                    // the next flit is a header
  output logic take,                     // the flit is the receiver's
  output logic wrong,                    // a packet was lost or has come again; once until reset
  output logic freed);                   // the last flit of a packet that gives its place back

  logic closed, data, differs, repeated, drop, again, dropped, dropped_again;
  logic [3:0] expected;
  assign data = link.kind == noc_pkg::Data;
  assign differs = link.number != expected;
  assign repeated = link.number + 4'd1 == expected;
  assign wrong = link.valid && first && differs && !closed;
  assign drop = first ? repeated || (data && (closed || differs)) : dropped;
  assign again = first ? repeated : dropped_again;
  assign take = link.valid && !drop;
  assign freed = link.valid && link.tail && drop && !again;
  always_ff @(posedge clock) begin
    if (reset) begin
      first <= 1;
      closed <= 0;
      expected <= 0;
    end else begin
      if (link.valid) first <= link.tail;
      if (wrong || close) closed <= 1;
      if (link.valid && first && !repeated) expected <= link.number + 4'd1;
    end
    if (link.valid) dropped <= drop;
    if (link.valid) dropped_again <= again;
  end
endmodule
