// SPDX-License-Identifier: Apache-2.0
// Types and widths shared by the routers, the DMA and the DRAM's port.
package noc_pkg;

  // The wires of a link in its direction. A credit for each class runs against it.
  typedef struct packed {
    logic valid;
    logic tail;                          // the last flit of a packet
    logic [1:0] kind;                    // the class: 0 data, 1 requests, 2 acknowledgements
    logic [3:0] number;                  // packets before this packet on the link, modulo 16
    logic [15:0] crc;                    // of the packet up to and including the flit
    logic [127:0] flit;
  } link_t;

  // The header of a packet: section 4.3.
  typedef struct packed {
    logic [31:0] stride;                 // bytes from row to row
    logic [31:0] address;                // of the first row, 0 with a list
    logic [1:0] unused;
    logic [4:0] rows;
    logic [8:0] row_bytes;
    logic [7:0] home_y, home_x;          // the router of the DMA with the descriptor
    logic [7:0] y, x;                    // the router of the place, 0 with a list
    logic [6:0] flag;
    logic [3:0] list_flits;                   // flits of the list
    logic acknowledge;                   // an acknowledgement is wanted
    logic dram;                          // the place is the DRAM at the router
    logic last;                          // of the message
    logic [1:0] kind;
  } header_t;

  // An entry of the list in a packet: the address in bits 0-16, x in 17-24, y in 25-31. Column 0xFF
  // marks an unused entry.

  // Not every design with this package uses every constant.
  // verilator lint_off UNUSEDPARAM
  localparam int LinkBits = 152;
  localparam logic [1:0] Data = 0, Request = 1, Acknowledgement = 2;
  // verilator lint_on UNUSEDPARAM
endpackage
