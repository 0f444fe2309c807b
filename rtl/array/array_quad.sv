// SPDX-License-Identifier: Apache-2.0
// Picks a quad, four accumulators, from the second rank: four neighbours of a lane, or with PIXELS
// the same one of each lane. Each lane first gives four neighbours; both ways begin there.
module array_quad (
  input  logic [1855:0] results,         // 4 lanes x 16 results of 29 bits
  input  logic pixels, pair,
  input  logic [1:0] lane,               // without pixels and pair
  input  logic [1:0] unit, quad,
  output logic [115:0] accumulators,
  output logic [115:0] odd);             // paired: of the odd lane, to be added; else 0

  logic [115:0] near_0, near_1, near_2, near_3, along;
  array_quad_lane lane_0 (.results(results[463:0]), .which(pixels ? unit : quad), .near(near_0));
  array_quad_lane lane_1 (.results(results[927:464]), .which(pixels ? unit : quad), .near(near_1));
  array_quad_lane lane_2 (.results(results[1391:928]), .which(pixels ? unit : quad), .near(near_2));
  array_quad_lane lane_3 (.results(results[1855:1392]), .which(pixels ? unit : quad), .near(near_3));
  always_comb begin
    case (pair ? {unit[0], 1'b0} : lane)
      0: along = near_0;
      1: along = near_1;
      2: along = near_2;
      default: along = near_3;
    endcase
    odd = !pair ? 116'd0 : unit[0] ? near_3 : near_1;
    case (quad)
      0: accumulators = {near_3[28:0], near_2[28:0], near_1[28:0], near_0[28:0]};
      1: accumulators = {near_3[57:29], near_2[57:29], near_1[57:29], near_0[57:29]};
      2: accumulators = {near_3[86:58], near_2[86:58], near_1[86:58], near_0[86:58]};
      default: accumulators = {near_3[115:87], near_2[115:87], near_1[115:87], near_0[115:87]};
    endcase
    if (!pixels) accumulators = along;
  end
endmodule
