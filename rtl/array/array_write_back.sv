// SPDX-License-Identifier: Apache-2.0
// Collects results in four entries of 16 bytes and writes them to the SRAM.
module array_write_back (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic write, whole,             // 4 bytes, or with whole a whole entry
  input  logic [1:0] write_slice,
  input  logic [127:0] write_data,       // without whole: bytes 0, 4, 8, 12
  output logic request, access,
  output logic [16:0] address,
  output logic [5:0] bytes,
  output logic [127:0] data,
  input  logic granted,
  output logic entry_free,               // an entry is free again after this cycle
  output logic finished);                // everything has been written, or is in this cycle

  logic present, entry_end, done, last;
  logic [4:0] item_bytes;
  logic [1:0] slice, head, tail;
  logic [2:0] count;
  logic [127:0] entries [0:3];
  logic [127:0] entry;
  array_items items (.clock, .enable, .start, .setup, .wide(setup.raw),
    .origin(setup.output_address), .row_stride(setup.output_row),
    .pixel_stride(setup.output_pixel), .advance(granted), .present, .address,
    .bytes(item_bytes), .slice, .entry_end, .last, .done);
  assign request = count != 0;
  assign access = present;
  assign bytes = {1'b0, item_bytes};
  assign entry = entries[head];
  assign data = setup.pixels && !setup.raw ? {96'd0, entry[32 * slice +: 32]} : entry;
  assign entry_free = granted && entry_end;
  assign finished = done || (granted && last);

  // Four bytes at a time make an entry.
  logic [95:0] collected;
  logic [31:0] four;
  logic entry_full;
  assign four = {write_data[103:96], write_data[71:64], write_data[39:32], write_data[7:0]};
  assign entry_full = write && (whole || write_slice == 3);
  always_ff @(posedge clock) if (enable) begin
    if (write) collected <= {four, collected[95:32]};
    if (entry_full) entries[tail] <= whole ? write_data : {four, collected};
    if (start) begin
      head <= 0;
      tail <= 0;
      count <= 0;
    end else begin
      if (entry_full) tail <= tail + 1;
      if (entry_free) head <= head + 1;
      count <= count + 3'(entry_full) - 3'(entry_free);
    end
  end
endmodule
