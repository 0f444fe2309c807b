// SPDX-License-Identifier: Apache-2.0
// The transposer: two buffers of 16 x 16 bytes. The port fills one, a row of 16 bytes for each of
// 16 pixels; meanwhile the other gives byte i of all 16 pixels.
module array_transposer (
  input  logic clock, enable, start,
  input  logic write,
  input  logic [3:0] write_pixel,
  input  logic [127:0] write_data,
  input  logic write_last,               // the buffer is full
  output logic full,                     // the buffer to read is full
  input  logic [3:0] read_byte,
  output logic [127:0] read_data,
  input  logic release_buffer);          // the buffer to read is empty from now on

  logic [1:0] count;
  logic fill, drain;
  assign full = count != 0;
  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      count <= 0;
      fill <= 0;
      drain <= 0;
    end else begin
      count <= count + 2'(write && write_last) - 2'(release_buffer);
      if (write && write_last) fill <= !fill;
      if (release_buffer) drain <= !drain;
    end
  end

  // Byte k of pixel p is in bank k + p modulo 16, at the place of pixel p: the bytes of a pixel and the
  // bytes k of all pixels are in 16 different banks.
  logic [127:0] from_banks;
  // Half of a shifted pair is the rotated row.
  // verilator lint_off UNUSEDSIGNAL
  logic [255:0] filled, drained;
  // verilator lint_on UNUSEDSIGNAL
  assign filled = {write_data, write_data} << {write_pixel, 3'd0};
  assign drained = {from_banks, from_banks} >> {read_byte, 3'd0};
  assign read_data = drained[127:0];
  for (genvar i = 0; i < 16; i++) begin : banks
    logic [7:0] bank [0:31];
    logic [3:0] read_pixel;
    assign read_pixel = 4'(i) - read_byte;
    always_ff @(posedge clock) if (enable && write) bank[{fill, write_pixel}] <= filled[128 + 8 * i +: 8];
    assign from_banks[8 * i +: 8] = bank[{drain, read_pixel}];
  end
endmodule
