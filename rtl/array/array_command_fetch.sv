// SPDX-License-Identifier: Apache-2.0
// Fetches the 24 words of a command in three wide accesses, and counts the slots of the check behind
// them. A command outside the SRAM or not aligned is not fetched.
module array_command_fetch #(parameter int SRAM_BYTES = 131072) (
  input  logic clock, reset, enable,
  input  logic start,                  // fetch the command at address, from this cycle on
  input  logic [31:0] address,
  output logic port_request,           // granted always
  output logic [16:0] port_address,
  input  logic [255:0] port_rdata,
  output logic misplaced,              // the command has error 2
  output logic [767:0] words,
  output logic [4:0] slot,             // of the check: 0 to 13, 14 behind them, 31 before them
  output logic [4:0] done_slot);       // the slot in the cycle before

  logic [31:0] held, from;
  logic [1:0] part, arriving;
  logic fetching, arrives;
  assign from = start ? address : held;
  assign port_request = (start || fetching) && !bad(from);
  assign port_address = from[16:0] + (start ? 17'd0 : {10'd0, part, 5'd0});

  function automatic logic bad(input logic [31:0] place);
    bad = place[3:0] != 0 || place > SRAM_BYTES - 96;
  endfunction

  always_ff @(posedge clock) begin
    if (reset) begin
      fetching <= 0;
      arrives <= 0;
      slot <= 31;
      done_slot <= 31;
    end else if (enable) begin
      arrives <= port_request;
      arriving <= start ? 2'd0 : part;
      if (arrives && arriving == 0) words[255:0] <= port_rdata;
      if (arrives && arriving == 1) words[511:256] <= port_rdata;
      if (arrives && arriving == 2) words[767:512] <= port_rdata;
      if (start) begin
        held <= address;
        misplaced <= bad(address);
        part <= 1;
        fetching <= 1;
        slot <= 31;
        done_slot <= 31;
      end else begin
        if (fetching) part <= part + 1;
        if (part == 2) fetching <= 0;
        if (arrives && arriving == 2) slot <= 0;
        else if (slot < 14) slot <= slot + 1;
        done_slot <= slot;
      end
    end
  end
endmodule
