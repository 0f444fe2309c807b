// SPDX-License-Identifier: Apache-2.0
// Types shared by the modules of the DMA.
package dma_pkg;

  // A message: rows of bytes from a place to a place, or the request for it.
  typedef struct packed {
    logic request;                       // the source is elsewhere: a request is sent
    logic source_dram;
    logic [7:0] source_y, source_x;      // the router of the source
    logic [31:0] source, source_stride;
    logic dram;                          // the destination is the DRAM at the router
    logic [7:0] y, x;                    // the router of the destination
    logic [31:0] address, stride;        // of the destination; no address with a list
    logic [15:0] rows, row_bytes;
    logic [6:0] flag;                    // of the destination
    logic [7:0] home_y, home_x;          // the router of the DMA with the descriptor
    logic [3:0] list_flits;
  } message_t;

  // The flits of a packet, in their order.
  localparam logic [1:0] Header = 0, Second = 1, List = 2, Rows = 3;
endpackage
