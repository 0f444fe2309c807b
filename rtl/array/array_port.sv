// SPDX-License-Identifier: Apache-2.0
// Gives the port to one access a cycle, in a fixed order, and keeps the read data while
// the array is frozen.
module array_port (
  input  logic clock, enable,
  // Weights that need the port in every cycle of the sums come last: the step has cycles for all
  // else, and would have none left at the end.
  input  logic elastic,
  input  logic across,                   // parameters come in each step, else before a block's loads
  input  logic [8:0] request,            // in the order of the fields below
  input  logic urgent,                   // the weights queue runs dry
  input  logic residual,                 // operands to add are urgent: four multiplications wait for it
  output logic [8:0] grant,
  input  logic [8:0] access,             // the request needs the port
  input  logic [152:0] addresses,        // 17 bits each
  input  logic [53:0] sizes,             // 6 bits each
  input  logic [127:0] write_data,
  output logic port_request, port_write,
  output logic [16:0] port_address,
  output logic [5:0] port_bytes,
  output logic [31:0] port_strobe,
  output logic [255:0] port_wdata,
  input  logic [255:0] port_rdata,
  output logic [255:0] read_data);       // of the access granted in the enabled cycle before

  localparam int Command = 0, Constants = 1, Extra = 2, Weights = 3, Window = 4, Write = 5,
                 Parameters = 6, LaneWeights = 7, Patches = 8;
  // A request without need of the port (padding, a missing pixel or channel) is granted at once.
  logic [8:0] contend, winner;
  assign contend = request & access;

  // The order. The next command first: its check has no cycle to lose. Then what RESIDUAL adds, since
  // four multiplications follow. Of a depthwise block or PIXELS, the parameters open the block.
  // Weights come before the rest if the queue runs dry; else after results, whose room is needed, and
  // after the columns of the window. Elastic weights leave the port to all but the patches, which run
  // far ahead anyway.
  always_comb begin
    winner = 0;
    if (contend[Command]) winner[Command] = 1;
    else if (contend[Constants]) winner[Constants] = 1;
    else if (contend[Extra] && residual) winner[Extra] = 1;
    else if (contend[Parameters] && !across) winner[Parameters] = 1;
    else if (contend[Weights] && urgent && !elastic) winner[Weights] = 1;
    else if (contend[Write]) winner[Write] = 1;
    else if (contend[Window]) winner[Window] = 1;
    else if (contend[Weights] && !elastic) winner[Weights] = 1;
    else if (contend[Extra]) winner[Extra] = 1;
    else if (contend[Parameters]) winner[Parameters] = 1;
    else if (contend[LaneWeights]) winner[LaneWeights] = 1;
    else if (contend[Weights]) winner[Weights] = 1;
    else if (contend[Patches]) winner[Patches] = 1;
  end
  assign grant = winner | (request & ~access);

  always_comb begin
    integer i;
    port_request = enable && contend != 0;
    port_write = winner[Write];
    port_address = 0;
    port_bytes = 0;
    for (i = 0; i < 9; i = i + 1) begin
      if (winner[i]) port_address = port_address | addresses[17 * i +: 17];
      if (winner[i]) port_bytes = port_bytes | sizes[6 * i +: 6];
    end
    port_strobe = port_write ? ~(32'hFFFF_FFFF << port_bytes) : 32'd0;
    port_wdata = {128'd0, write_data};
  end

  logic fresh;                           // port_rdata is of the access in the cycle before
  logic [255:0] held;
  always_ff @(posedge clock) begin
    fresh <= port_request && !port_write;
    if (fresh) held <= port_rdata;
  end
  assign read_data = fresh ? port_rdata : held;
endmodule
