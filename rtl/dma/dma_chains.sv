// SPDX-License-Identifier: Apache-2.0
// The chains of descriptors: which descriptor is fetched next, and when it is done.
// A descriptor with more than 60 destinations is fetched again for each group.
module dma_chains (
  input  logic clock, reset,
  input  logic doorbell,
  input  logic [31:0] doorbell_address,
  output logic full, empty,
  input  logic fault,                    // an error that drops all chains
  // the fetch
  output logic want_fetch,
  output logic [31:0] address,
  output logic [14:0] entries_before,
  input  logic grant, finish, good,      // good: without error
  input  logic [31:0] next,
  input  logic more,
  input  logic wants_acknowledgement,    // the destination is in DRAM
  // the packets
  output logic sending,                  // the descriptor has packets
  input  logic sent,                     // in this cycle its last packet has been read
  input  logic acknowledged,             // an acknowledgement has come in this cycle
  output logic done);                    // in the next cycle the descriptor is done

  localparam logic [2:0] First = 0, Next = 1, Fetch = 2, Send = 3, Wait = 4;
  logic [2:0] state;
  logic [31:0] chain, later;
  logic group_end, chain_end, finished;

  // Acknowledgements of dropped descriptors come too, and say nothing about the present one.
  logic [3:0] stale;
  logic awaited, last_sent;
  assign awaited = acknowledged && stale == 0;
  assign last_sent = state == Send && sent && wants_acknowledgement;

  assign sending = state == Send;
  assign finished = (state == Send && sent && !wants_acknowledgement) || (state == Wait && awaited);
  assign group_end = finished && more;
  assign done = finished && !more;
  assign chain_end = done && next == 0;
  assign want_fetch = (state == First && !empty) || state == Next;
  assign address = state == First ? chain : later;
  dma_queue queue (.clock, .reset, .push(doorbell), .push_address(doorbell_address),
    .pop(chain_end), .drop(fault), .full, .empty, .address(chain));

  always_ff @(posedge clock) begin
    if (grant) later <= address;
    else if (done) later <= next;
    if (reset || fault) state <= First;
    else if (grant) state <= Fetch;
    else if (state == Fetch && finish && good) state <= Send;
    else if (group_end) state <= Next;
    else if (done) state <= next == 0 ? First : Next;
    else if (last_sent) state <= Wait;

    if (reset || fault || done) entries_before <= 0;
    else if (group_end) entries_before <= entries_before + 60;

    if (reset) stale <= 0;
    else stale <= stale - 4'(acknowledged && stale != 0)
                + 4'(sent && wants_acknowledgement && (state != Send || fault))
                + 4'(fault && state == Wait && !awaited);
  end
endmodule
