// SPDX-License-Identifier: Apache-2.0
// A chip of COLUMNS x ROWS processing elements with their SRAM, for Verilator. The DRAM at port 5 of
// PE 0 is outside. A fault may be put on a link in any cycle.
module mesh #(parameter int COLUMNS = `MESH_COLUMNS, ROWS = `MESH_ROWS) (
  input  logic clock, reset,
  // registers
  input  logic register_read [COLUMNS * ROWS], register_write [COLUMNS * ROWS],
  input  logic select_array [COLUMNS * ROWS],
  input  logic [11:0] register_offset [COLUMNS * ROWS],
  input  logic [31:0] register_wdata [COLUMNS * ROWS],
  output logic [31:0] register_rdata [COLUMNS * ROWS],
  // what happens in this cycle
  output logic event_set [COLUMNS * ROWS],
  output logic done [COLUMNS * ROWS],    // shows in the next cycle
  output logic [1:0] count [COLUMNS * ROWS],     // likewise: a message received, a message sent
  output logic [11:0] count_index [COLUMNS * ROWS],
  output logic [3:0] error [COLUMNS * ROWS],
  output logic moves [COLUMNS * ROWS],   // bytes of the DMA
  output logic active,
  // the DRAM
  input  noc_pkg::link_t dram_in,
  output noc_pkg::link_t dram_out,
  output logic [2:0] dram_in_credits,
  input  logic [2:0] dram_out_credits,
  input  logic dram_wrong_crc, dram_wrong_number,
  // faults: bits flip on the link into a port, or the flit is lost
  input  logic [31:0] fault_pe, fault_port,
  input  logic fault_lose,
  input  logic [143:0] fault_flip,
  output logic fault_valid, fault_tail); // a flit on this link

  localparam int Pes = COLUMNS * ROWS;

  // --- Links by PE and port, ports 1 to 5.
  noc_pkg::link_t to [Pes][1:5];
  noc_pkg::link_t from [Pes][1:5];
  logic [2:0] to_credits [Pes][1:5];
  logic [2:0] from_credits [Pes][1:5];
  logic [Pes - 1:0] busy;
  logic [7:0] bank_select [Pes], bank_write [Pes];
  logic [95:0] bank_address [Pes];
  logic [31:0] bank_mask [Pes];
  logic [255:0] bank_wdata [Pes], bank_rdata [Pes];
  assign active = busy != 0 || dram_in.valid;

  for (genvar p = 0; p < Pes; p++) begin : pes
    localparam int X = p % COLUMNS, Y = p / COLUMNS;
    noc_pkg::link_t here [1:5];
    for (genvar i = 1; i < 6; i++) begin : ports
      localparam bit Linked = i == 1 ? Y > 0 : i == 2 ? X < COLUMNS - 1 : i == 3 ? Y < ROWS - 1 :
                              i == 4 ? X > 0 : p == 0;
      localparam int Neighbour = i == 1 ? p - COLUMNS : i == 2 ? p + 1 : i == 3 ? p + COLUMNS : p - 1;
      localparam int Facing = i < 3 ? i + 2 : i - 2;
      if (!Linked) begin : edge_of_chip
        assign to[p][i] = '0;
        assign from_credits[p][i] = '0;
      end else if (i == 5) begin : dram
        assign to[p][i] = dram_in;
        assign from_credits[p][i] = dram_out_credits;
      end else begin : neighbour
        assign to[p][i] = from[Neighbour][Facing];
        assign from_credits[p][i] = to_credits[Neighbour][Facing];
      end
      logic fault;
      assign fault = fault_pe == p && fault_port == i;
      always_comb begin
        here[i] = to[p][i];
        if (fault) {here[i].crc, here[i].flit} = {to[p][i].crc, to[p][i].flit} ^ fault_flip;
        if (fault && fault_lose) here[i].valid = 0;
      end
    end
    mesh_node node (.clock, .reset, .x(8'(X)), .y(8'(Y)),
      .pe(p), .select_array(select_array[p]),
      .register_read(register_read[p]), .register_write(register_write[p]),
      .register_offset(register_offset[p]), .register_wdata(register_wdata[p]),
      .register_rdata(register_rdata[p]), .event_set(event_set[p]), .count(count[p]), .done(done[p]),
      .moves(moves[p]), .busy(busy[p]), .count_index(count_index[p]), .error(error[p]),
      .bank_select(bank_select[p]),
      .bank_write(bank_write[p]), .bank_address(bank_address[p]), .bank_mask(bank_mask[p]),
      .bank_wdata(bank_wdata[p]), .bank_rdata(bank_rdata[p]),
      .in({here[5], here[4], here[3], here[2], here[1]}),
      .in_credits({to_credits[p][5], to_credits[p][4], to_credits[p][3], to_credits[p][2],
                   to_credits[p][1]}),
      .out({from[p][5], from[p][4], from[p][3], from[p][2], from[p][1]}),
      .out_credits({from_credits[p][5], from_credits[p][4], from_credits[p][3], from_credits[p][2],
                    from_credits[p][1]}),
      .dram_wrong_crc(p == 0 && dram_wrong_crc), .dram_wrong_number(p == 0 && dram_wrong_number));
    assign bank_rdata[p] = rdata;
    logic [255:0] rdata;
    mesh_sram sram (.clock, .select(bank_select[p]), .write(bank_write[p]), .address(bank_address[p]),
      .mask(bank_mask[p]), .wdata(bank_wdata[p]), .rdata);
  end
  assign dram_out = from[0][5];
  assign dram_in_credits = to_credits[0][5];
  assign fault_valid = to[fault_pe][fault_port].valid;
  assign fault_tail = to[fault_pe][fault_port].tail;
endmodule
