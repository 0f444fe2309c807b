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
  for (genvar pixel = 0; pixel < 16; pixel++) begin : pixels
    logic [127:0] even, odd, chosen;
    always_ff @(posedge clock) if (enable && write && write_pixel == pixel) begin
      if (fill) odd <= write_data;
      else even <= write_data;
    end
    assign chosen = drain ? odd : even;
    assign read_data[8 * pixel +: 8] = chosen[8 * read_byte +: 8];
  end
endmodule
