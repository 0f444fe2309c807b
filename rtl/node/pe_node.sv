// SPDX-License-Identifier: Apache-2.0
// A processing element without its core: router, DMA, MAC array, and the device port of the SRAM.
// The SRAM's banks, single-port with synchronous read, are outside. The core's half of a cycle at the
// banks is not here.
module pe_node #(parameter int ARRAY = 1,   // 0: a PE without the array
                 CHIP_COLUMNS = 4, CHIP_ROWS = 4, BOARD_CHIP_COLUMNS = 1,
                 BOARD_CHIP_ROWS = 1, DATA_PLACES = 2, INPUT_PLACES = DATA_PLACES,
                 PACKET_FLITS = 32, SRAM_BYTES = 131072,
                 parameter longint DRAM_BYTES = 64'h8000_0000) (
  input  logic clock, reset,
  input  logic [7:0] x, y, corner_x, corner_y,   // constant: this PE, and the chip's first PE
  input  logic [31:0] pe, chip,
  // registers
  input  logic select_array,             // the array's registers, else the DMA's
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic event_set,
  // for a testbench or a logic analyser: counts and descriptors done show in the next cycle
  output logic done, moves, busy,
  output logic [1:0] count,              // a message received, a message sent
  output logic [11:0] count_index,
  output logic [3:0] error,
  // the banks of the SRAM
  output logic [7:0] bank_select, bank_write,
  output logic [95:0] bank_address,
  output logic [31:0] bank_mask,
  output logic [255:0] bank_wdata,
  input  logic [255:0] bank_rdata,
  // links: north, east, south, west, DRAM
  input  logic [759:0] in,
  output logic [14:0] in_credits,
  output logic [759:0] out,
  input  logic [14:0] out_credits,
  input  logic dram_wrong_crc, dram_wrong_number);  // the DRAM at the router has found an error

  // --- The router.
  noc_pkg::link_t to_router, to_dma;
  logic [2:0] send_credits, allowed, granted;
  logic wrong_number, has_dram, holds;
  assign has_dram = x == corner_x && y == corner_y;
  noc_router #(.BOARD_COLUMNS(CHIP_COLUMNS * BOARD_CHIP_COLUMNS),
               .BOARD_ROWS(CHIP_ROWS * BOARD_CHIP_ROWS), .DATA_PLACES(DATA_PLACES),
               .PACKET_FLITS(PACKET_FLITS), .INPUT_PLACES(INPUT_PLACES))
    router (.clock, .reset, .x, .y, .has_dram, .in({in, to_router}),
            .in_credits({in_credits, send_credits}), .out({out, to_dma}),
            .out_credits({out_credits, 3'd0}), .allowed, .granted, .wrong_number, .holds);

  // --- The DMA.
  logic dma_write_register, array_write_register;
  logic [31:0] dma_register, array_register;
  logic dma_event, array_event, dma_empty, dma_serving, dma_receiving;
  logic dma_sending;
  logic dma_access, dma_read, dma_write;
  logic [16:0] dma_address;
  logic [5:0] dma_bytes;
  logic [127:0] dma_wdata;
  logic [255:0] rdata;
  assign dma_write_register = register_write && !select_array;
  assign array_write_register = register_write && select_array;
  pe_dma #(.CHIP_COLUMNS(CHIP_COLUMNS), .CHIP_ROWS(CHIP_ROWS),
           .BOARD_CHIP_COLUMNS(BOARD_CHIP_COLUMNS), .BOARD_CHIP_ROWS(BOARD_CHIP_ROWS),
           .SRAM_BYTES(SRAM_BYTES), .DRAM_BYTES(DRAM_BYTES))
    dma (.clock, .reset, .x, .y, .corner_x, .corner_y, .pe, .chip,
         .register_read(register_read && !select_array), .register_write(dma_write_register),
         .register_offset, .register_wdata, .register_rdata(dma_register), .event_set(dma_event),
         .empty(dma_empty), .done, .serving(dma_serving), .receiving(dma_receiving),
         .sends(dma_sending), .count, .count_index, .first_error(error),
         .port_access(dma_access), .port_read(dma_read), .port_write(dma_write),
         .port_address(dma_address), .port_bytes(dma_bytes), .port_wdata(dma_wdata),
         .port_rdata(rdata), .wrong_number, .dram_wrong_crc, .dram_wrong_number, .send(to_router), .send_credits,
         .receive(to_dma), .allowed, .granted);

  // --- The array.
  logic enable, array_request, array_write;
  logic [16:0] array_address;
  logic [5:0] array_bytes;
  logic [31:0] array_strobe;
  logic [255:0] array_wdata;
  logic array_busy;
  if (ARRAY != 0) begin : with_array
    logic work_end;
    mac_array #(.SRAM_BYTES(SRAM_BYTES)) array (.clock, .reset, .enable,
      .register_read(register_read && select_array), .register_write(array_write_register),
      .register_offset, .register_wdata, .register_rdata(array_register),
      .port_request(array_request), .port_write(array_write), .port_address(array_address),
      .port_bytes(array_bytes), .port_strobe(array_strobe), .port_wdata(array_wdata),
      .port_rdata(rdata), .event_set(array_event), .busy(array_busy), .work_end);
    logic unused;
    assign unused = work_end;
  end else begin : without_array
    assign {array_register, array_request, array_write, array_address, array_bytes} = '0;
    assign {array_strobe, array_wdata, array_event, array_busy} = '0;
    logic unused;
    assign unused = enable && array_write_register;
  end
  assign register_rdata = select_array ? array_register : dma_register;
  assign event_set = dma_event || array_event;

  // --- The device port.
  sram_arbiter arbiter (.clock, .dma_access, .dma_read, .dma_write, .dma_address, .dma_bytes,
    .dma_wdata, .array_enable(enable), .array_request, .array_write, .array_address, .array_bytes,
    .array_strobe, .array_wdata, .rdata, .bank_select, .bank_write, .bank_address, .bank_mask,
    .bank_wdata, .bank_rdata);

  assign moves = dma_access;
  // Without `busy` nothing changes until a register is written, a flit or a credit arrives.
  assign busy = !dma_empty || dma_serving || dma_receiving || dma_sending || dma_event || holds ||
                to_router.valid || to_dma.valid || array_busy || out_valid != 0;
  logic [4:0] out_valid;
  for (genvar i = 0; i < 5; i++) begin : links
    assign out_valid[i] = out[152 * i + 151];
  end
endmodule
