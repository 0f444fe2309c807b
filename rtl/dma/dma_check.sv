// SPDX-License-Identifier: Apache-2.0
// Finds the errors of a descriptor, and makes its message. Steps count from the grant of the fetch:
//   3: the source's place, (rows - 1) * source_stride
//   4: the destination's place, (rows - 1) * destination_stride, the source's errors
//   5: all errors; step 3 lasts until the list has been read, and the lists' errors come behind it
module dma_check #(parameter int CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                   BOARD_CHIP_ROWS = 1, SRAM_BYTES = 131072, parameter longint DRAM_BYTES = 64'h8000_0000) (
  input  logic clock,
  input  logic [7:0] x, y, corner_x, corner_y,
  input  logic [2:0] step,
  input  logic misplaced, bad_list,
  // Tag and the words behind the flags have no effect.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [383:0] words,
  // verilator lint_on UNUSEDSIGNAL
  input  logic list_arrives,
  input  logic [3:0] list_index,
  input  logic [2:0] list_count,
  input  logic [3:0] list_flits,
  input  logic [255:0] list_words,
  output logic [2:0] error,              // in step 5
  output dma_pkg::message_t message,     // from step 5 on, until the next fetch
  output logic [7:0] source_flag,
  output logic list_write,
  output logic [3:0] list_write_index,
  output logic [127:0] list_write_flit);

  logic [7:0] kind, destination_flag;
  logic [15:0] rows, row_bytes;
  logic multicast, signal;
  logic [31:0] source, source_stride, destination, stride;
  assign kind = words[32 +: 8];
  assign multicast = words[32 + 8];
  assign source = words[3 * 32 +: 32];
  assign destination = words[5 * 32 +: 32];
  assign {rows, row_bytes} = words[6 * 32 +: 32];
  assign {stride, source_stride} = words[7 * 32 +: 64];
  assign {destination_flag, source_flag} = words[9 * 32 +: 16];
  assign signal = rows == 0 || row_bytes == 0;

  // --- Places and distances, those of the source first. Step 3 with a list repeats, so its last cycle
  // decides; step 4 lasts a cycle, and the later entries of the list need its results earlier.
  logic second;                          // the destination's turn
  logic was_third;
  logic exists, dram;
  logic [7:0] place_x, place_y;
  logic source_exists, source_dram, to_exists, to_dram;
  logic [7:0] source_x, source_y, to_x, to_y;
  logic [48:0] product;
  logic [33:0] below, above;
  assign second = step != 3 || was_third;
  dma_place #(.CHIP_COLUMNS(CHIP_COLUMNS), .CHIP_ROWS(CHIP_ROWS),
              .BOARD_CHIP_COLUMNS(BOARD_CHIP_COLUMNS), .BOARD_CHIP_ROWS(BOARD_CHIP_ROWS))
    place (.corner_x, .corner_y, .number(second ? words[4 * 32 +: 32] : words[2 * 32 +: 32]),
           .exists, .dram, .x(place_x), .y(place_y));
  dma_span span (.product, .row_bytes, .below, .above);

  function automatic logic outside(input logic in_dram, input logic [31:0] address,
                                   input logic [33:0] under, over);
    outside = under > 34'(address) ||
              34'(address) + over > (in_dram ? 34'(DRAM_BYTES) : 34'(SRAM_BYTES));
  endfunction

  logic source_outside, source_known;
  logic signed [48:0] factor, length;
  assign factor = {33'd0, rows - 16'd1};
  assign length = 49'(signed'(second ? stride : source_stride));
  always_ff @(posedge clock) begin
    was_third <= step == 3;
    if (step == 3 || step == 4) product <= factor * length;
    if (step == 3 && !second) {source_exists, source_dram, source_x, source_y} <=
                              {exists, dram, place_x, place_y};
    if (second) {to_exists, to_dram, to_x, to_y} <= {exists, dram, place_x, place_y};
    // The cycle behind the source's turn; its place and product are there.
    source_known <= step == 3 && !second;
    if (source_known) source_outside <= !signal && outside(source_dram, source, below, above);
  end

  // --- The list.
  logic [11:0] errors;
  logic [2:0] four_error, list_error;
  for (genvar i = 0; i < 4; i++) begin : entries
    dma_entry #(.CHIP_COLUMNS(CHIP_COLUMNS), .CHIP_ROWS(CHIP_ROWS),
                .BOARD_CHIP_COLUMNS(BOARD_CHIP_COLUMNS), .BOARD_CHIP_ROWS(BOARD_CHIP_ROWS),
                .SRAM_BYTES(SRAM_BYTES))
      checked (.clock, .corner_x, .corner_y, .present(list_arrives && list_count > 3'(i)),
             .words(list_words[64 * i +: 64]), .signal, .below, .above,
             .entry(list_write_flit[32 * i +: 32]), .error(errors[3 * i +: 3]));
  end
  assign four_error = errors[2:0] != 0 ? errors[2:0] : errors[5:3] != 0 ? errors[5:3]
                    : errors[8:6] != 0 ? errors[8:6] : errors[11:9];
  always_ff @(posedge clock) begin
    list_write <= list_arrives;
    list_write_index <= list_index;
    if (step == 2) list_error <= 0;
    else if (list_write && list_error == 0) list_error <= four_error;
  end

  // --- All errors, in the order of the manual.
  logic own_source, bad_source_flag, bad_flag;
  logic [2:0] to_error;
  assign own_source = !source_dram && source_x == x && source_y == y;
  assign bad_source_flag = source_flag != 8'hFF && (source_flag >= 64 || !own_source);
  assign bad_flag = destination_flag != 8'hFF &&
                    (destination_flag >= 64 || (!multicast && to_dram));
  assign to_error = multicast ? list_error : !to_exists ? 3'd4
                  : !signal && outside(to_dram, destination, below, above) ? 3'd5 : 3'd0;
  assign error = misplaced ? 3'd2 : kind != 1 ? 3'd3 : bad_list ? 3'd5
               : !source_exists ? 3'd4 : source_outside ? 3'd5
               : to_error != 0 ? to_error : bad_source_flag || bad_flag ? 3'd6 : 3'd0;

  // --- The message.
  always_comb begin
    message = '0;
    message.request = !own_source;
    message.source_dram = source_dram;
    message.source_x = source_x;
    message.source_y = source_y;
    message.source = source;
    message.source_stride = source_stride;
    message.dram = !multicast && to_dram;
    message.x = multicast ? 8'd0 : to_x;
    message.y = multicast ? 8'd0 : to_y;
    message.address = multicast ? 32'd0 : destination;
    message.stride = stride;
    message.rows = rows;
    message.row_bytes = row_bytes;
    message.flag = destination_flag[6:0];
    message.home_x = x;
    message.home_y = y;
    message.list_flits = list_flits;
  end
endmodule
