// SPDX-License-Identifier: Apache-2.0
// Four neighbouring accumulators of a lane.
module array_quad_lane (
  input  logic [463:0] results,
  input  logic [1:0] which,
  output logic [115:0] near);
  always_comb begin
    case (which)
      0: near = results[115:0];
      1: near = results[231:116];
      2: near = results[347:232];
      default: near = results[463:348];
    endcase
  end
endmodule
