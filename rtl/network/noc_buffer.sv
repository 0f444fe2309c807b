// SPDX-License-Identifier: Apache-2.0
// The buffer of an input for a class: PLACES packets of up to FLITS flits, in the order of arrival.
// A packet may leave while it still arrives. A multicast stays until its last branch has left.
module noc_buffer #(parameter int PLACES = 2, FLITS = 32) (
  input  logic clock, reset,
  // arrival
  input  logic write, write_tail,
  input  logic [143:0] write_data,       // a flit and its CRC
  input  logic known,                    // with this flit the outputs are known
  input  logic [5:0] known_outputs,
  // the first packet
  output logic pending,
  output logic [5:0] left,               // outputs to which it has not been sent
  input  logic [5:0] granted,            // outputs that send it from the next cycle on
  // sending
  input  logic read,                     // of the next flit; with a grant, of the first
  output logic [143:0] read_data,
  output logic read_tail,
  output logic read_last);               // this branch is the packet's last

  // Bits of a place and of a flit's number, of the address in the memory, and its words.
  localparam int P = PLACES == 1 ? 1 : $clog2(PLACES), F = FLITS == 1 ? 1 : $clog2(FLITS);
  localparam int A = PLACES == 1 ? F : P + F, Words = 1 << A;
  logic [143:0] memory [0:Words - 1];
  logic tails [0:Words - 1];
  logic [F - 1:0] write_flit, read_flit;
  logic [P - 1:0] write_place, known_place, head, read_place;
  logic [(1 << P) - 1:0] waiting;
  logic [5:0] branches [0:(1 << P) - 1];
  logic grant, last_branch;
  logic [A - 1:0] write_at, read_at;

  function automatic logic [P - 1:0] after(input logic [P - 1:0] place);
    after = place == P'(PLACES - 1) ? '0 : place + 1'b1;
  endfunction

  assign pending = waiting[head];
  assign left = branches[head];
  assign grant = granted != 0;
  assign last_branch = (left & ~granted) == 0;
  assign write_at = A'({write_place, write_flit});
  assign read_at = grant ? A'({head, F'(0)}) : A'({read_place, read_flit});

  always_ff @(posedge clock) begin
    if (write) memory[write_at] <= write_data;
    if (write) tails[write_at] <= write_tail;
    if (read) read_data <= memory[read_at];
    if (read) read_tail <= tails[read_at];
    if (known) branches[known_place] <= known_outputs;
    if (grant) begin
      branches[head] <= left & ~granted;
      read_place <= head;
      read_last <= last_branch;
    end
    if (read) read_flit <= grant ? F'(1) : read_flit + 1'b1;
    if (reset) begin
      write_flit <= 0;
      write_place <= 0;
      known_place <= 0;
      head <= 0;
      waiting <= 0;
    end else begin
      if (write) write_flit <= write_tail ? '0 : write_flit + 1'b1;
      if (write && write_tail) write_place <= after(write_place);
      if (known) known_place <= after(known_place);
      if (known) waiting[known_place] <= 1;
      if (grant && last_branch) waiting[head] <= 0;
      if (grant && last_branch) head <= after(head);
    end
  end

`ifndef SYNTHESIS
  // Packets in the buffer, from their first flit to the last cycle on the output.
  logic [P + 1:0] packets;
  logic first, leaves;
  assign first = write && write_flit == 0;
  always_ff @(posedge clock) begin
    leaves <= read && tails[read_at] && (grant ? last_branch : read_last);
    packets <= reset ? '0 : packets + (P + 2)'(first) - (P + 2)'(leaves);
    if (!reset) begin
      assert (packets <= (P + 2)'(PLACES)) else $error("a buffer has too many packets");
      assert (!write || 32'(write_flit) < FLITS) else $error("a packet is too long");
      assert (!grant || pending) else $error("a grant without a packet");
      // Flits leave behind their arrival.
      if (read && read_at_place == write_place && packets != 0 && !first)
        assert (write_flit == 0 || read_now < write_flit) else $error("a packet stops on the link");
    end
  end
  logic [P - 1:0] read_at_place;
  logic [F - 1:0] read_now;
  assign read_at_place = grant ? head : read_place;
  assign read_now = grant ? '0 : read_flit;
`endif
endmodule
