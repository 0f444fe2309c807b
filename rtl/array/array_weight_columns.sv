// SPDX-License-Identifier: Apache-2.0
// The columns of the blocks of weights, in fours. A block has 16 columns, with PIXELS 4. The last
// block of a convolution across has only 4 or 8 columns where these are enough for its channels.
module array_weight_columns (
  input  logic [15:0] channels,
  input  logic pixels, depthwise, second,
  output logic [17:0] column_quads,      // of all blocks
  output logic [2:0] first_quads, last_quads);

  logic [17:0] quads;                    // with a channel
  logic [1:0] rest;                      // quads in a partly filled block, else 0
  logic narrow;                          // the last block has fewer columns
  assign quads = (18'(channels) + 18'd3) >> 2;
  assign rest = quads[1:0];
  assign narrow = (rest == 1 || rest == 2) && !depthwise && !second;
  assign column_quads = pixels || narrow ? quads : (quads + 18'd3) & ~18'd3;
  assign last_quads = narrow ? {1'b0, rest} : 3'd4;
  assign first_quads = quads < 4 ? last_quads : 3'd4;
endmodule
