// SPDX-License-Identifier: Apache-2.0
// The bytes of a row of weights in each block, in fours. A block has 16 columns, with PIXELS 4. The last
// block of a convolution across has only 4 or 8 columns where these are enough for its channels.
// With NIBBLES a row has half the bytes, and 8 columns at least; with PIXELS two rows have 4 bytes.
module array_weight_rows (
  input  logic [15:0] channels,
  input  logic pixels, depthwise, second, nibbles,
  output logic [17:0] row_quads,         // of all blocks
  output logic [2:0] full_quads, first_quads, last_quads);

  logic [17:0] quads;                    // four channels of which one exists
  logic [1:0] rest;                      // of them in a partly filled block, else 0
  logic narrow;                          // the last block has fewer columns
  logic [17:0] whole;                    // four columns
  logic [2:0] last;
  assign quads = (18'(channels) + 18'd3) >> 2;
  assign rest = quads[1:0];
  assign narrow = (rest == 1 || rest == 2) && !depthwise && !second;
  assign last = narrow ? {1'b0, rest} : 3'd4;
  assign whole = (quads + 18'd3) & ~18'd3;
  assign full_quads = nibbles ? 3'd2 : 3'd4;
  assign last_quads = !nibbles ? last : narrow ? 3'd1 : 3'd2;
  assign first_quads = quads < 4 ? last_quads : full_quads;
  always_comb begin
    if (pixels) row_quads = quads;
    else if (nibbles) row_quads = (whole >> 1) - 18'(narrow);
    else row_quads = narrow ? quads : whole;
  end
endmodule
