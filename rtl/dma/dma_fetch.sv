// SPDX-License-Identifier: Apache-2.0
// Reads a descriptor in two cycles, then the list of a multicast, four entries in a cycle; counts the
// cycles of the setup. A descriptor outside the SRAM or not aligned is not read.
module dma_fetch #(parameter int SRAM_BYTES = 131072) (
  input  logic clock, reset,
  input  logic grant,                    // the port is the fetch's from the next cycle on
  input  logic [31:0] address,           // right with the grant
  input  logic [14:0] entries_before,    // of the list, in the groups that have been sent
  input  logic abort,
  output logic has_port, last_port,      // last_port: in the last cycle of the port
  output logic read,
  output logic [16:0] read_address,
  input  logic [255:0] rdata,
  output logic misplaced, bad_list,
  output logic [383:0] words,
  output logic [2:0] step,               // 1 to 5: cycles behind the grant, less those of the list
  output logic list_arrives,             // rdata has entries of the list
  output logic [3:0] list_index,         // their flit
  output logic [2:0] list_count,         // their number
  output logic [3:0] list_flits,
  output logic more,                     // entries follow in a further group
  output logic finish);                  // the last cycle

  // --- What follows from the first eight words, in the cycle in which they arrive.
  logic [31:0] list, length, after;
  logic bad, multicast, lists;           // lists: a list is read
  logic [31:0] left;
  logic [5:0] count;
  logic [3:0] flits;
  assign list = rdata[4 * 32 +: 32];
  assign length = rdata[5 * 32 +: 32];
  assign after = list + {length[28:0], 3'd0};
  assign bad = length == 0 || list[1:0] != 0 || length > 32'(SRAM_BYTES / 8) ||
               list > 32'(SRAM_BYTES) || after > 32'(SRAM_BYTES);
  assign multicast = rdata[32 +: 8] == 1 && rdata[32 + 8];
  assign lists = multicast && !bad && !misplaced;
  assign left = length - {17'd0, entries_before};
  assign count = left > 60 ? 6'd60 : left[5:0];
  assign flits = 4'((7'(count) + 7'd3) >> 2);

  // --- Steps: 1 and 2 read the descriptor, 3 lasts as long as the list and a cycle more.
  logic [3:0] flit, flits_left;
  logic [5:0] entries_left;
  logic [11:0] quads_before;             // four entries have 32 bytes; the list lies in the SRAM
  assign quads_before = entries_before[13:2] + 12'(flit);
  logic in_list;
  assign in_list = step == 3 && flits_left != 0;
  assign has_port = step == 1 || step == 2 || in_list;
  assign last_port = step == 2 ? !lists : in_list && flits_left == 1;
  assign read = has_port && !misplaced;
  logic [16:0] first;
  assign read_address = step == 1 ? first : step == 2 ? first + 17'd32
                      : words[4 * 32 +: 17] + {quads_before, 5'd0};
  assign finish = step == 5;

  always_ff @(posedge clock) begin
    if (grant) begin
      first <= address[16:0];
      misplaced <= address[3:0] != 0 || address > 32'(SRAM_BYTES - 48);
    end
    if (step == 2) begin
      words[255:0] <= rdata;
      bad_list <= multicast && bad && !misplaced;
      more <= multicast && left > 60;
      entries_left <= count;
      flit <= 0;
      flits_left <= lists ? flits : 4'd0;
      list_flits <= multicast ? flits : 4'd0;
    end
    if (step == 3 && !described) words[383:256] <= rdata[127:0];
    list_arrives <= in_list;
    list_index <= flit;
    list_count <= entries_left > 4 ? 3'd4 : entries_left[2:0];
    if (in_list) begin
      flit <= flit + 1;
      flits_left <= flits_left - 1;
      entries_left <= entries_left - 4;
    end
    described <= step == 3;
    if (reset || abort) step <= 0;
    else if (grant) step <= 1;
    else if (step == 5) step <= 0;
    else if (step != 0 && !in_list) step <= step + 1;
  end
  logic described;                       // all words are there
endmodule
