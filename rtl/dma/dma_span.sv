// SPDX-License-Identifier: Apache-2.0
// How far rows reach below and above their first address. Distances beyond 2^33 read as 2^33.
module dma_span (
  input  logic [48:0] product,           // (rows - 1) * stride, signed
  input  logic [15:0] row_bytes,
  output logic [33:0] below, above);

  logic [48:0] distance;
  logic negative;
  logic [33:0] near;
  assign negative = product[48];
  assign distance = negative ? -product : product;
  assign near = distance[48:33] != 0 ? 34'h2_0000_0000 : distance[33:0];
  assign below = negative ? near : 34'd0;
  assign above = (negative ? 34'd0 : near) + 34'(row_bytes);
endmodule
