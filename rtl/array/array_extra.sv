// SPDX-License-Identifier: Apache-2.0
// Reads the operands added to the results, a little ahead of the output stage: the accumulators of
// ACCUMULATE, 4 an entry, or the bytes of RESIDUAL, 16 an entry.
module array_extra (
  input  logic clock, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  output logic request, access,
  output logic [16:0] address,
  output logic [5:0] bytes,
  input  logic granted,
  input  logic [127:0] port_rdata,
  output logic ready,
  output logic [127:0] entry,
  input  logic take);

  logic present, entry_end, done, unused_last;
  logic [4:0] item_bytes;
  logic [1:0] slice, arrives_slice, count, owed;   // owed: entries there or under way
  array_items items (.clock, .enable, .start, .setup, .wide(setup.accumulate),
    .origin(setup.extra), .row_stride(setup.extra_row), .pixel_stride(setup.extra_pixel),
    .advance(granted), .present, .address, .bytes(item_bytes), .slice, .entry_end,
    .last(unused_last), .done);
  assign bytes = {1'b0, item_bytes};
  assign access = present;
  assign request = (setup.residual || setup.accumulate) && !done &&
                   (owed != 2 || take || slice != 0);

  logic [127:0] entry_0, entry_1;
  logic head, tail, arrives, arrives_end;
  assign ready = count != 0;
  assign entry = head ? entry_1 : entry_0;
  // With PIXELS and RESIDUAL an entry comes in four parts.
  logic [127:0] older, merged;
  assign older = tail ? entry_1 : entry_0;
  for (genvar i = 0; i < 4; i++) begin : parts
    assign merged[32 * i +: 32] = !setup.pixels || !setup.residual ? port_rdata[32 * i +: 32]
                                : arrives_slice == i ? port_rdata[31:0] : older[32 * i +: 32];
  end
  always_ff @(posedge clock) if (enable) begin
    arrives <= granted && !start;
    arrives_end <= entry_end;
    arrives_slice <= slice;
    if (start) begin
      head <= 0;
      tail <= 0;
      count <= 0;
      owed <= 0;
    end else begin
      owed <= owed + 2'(granted && slice == 0) - 2'(take);
      count <= count + 2'(arrives && arrives_end) - 2'(take);
      if (take) head <= !head;
      if (arrives && arrives_end) tail <= !tail;
      if (arrives && !tail) entry_0 <= merged;
      if (arrives && tail) entry_1 <= merged;
    end
  end
endmodule
