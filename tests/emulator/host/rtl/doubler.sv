// The device of doubler.c in SystemVerilog: doubles a word of SRAM in 123 cycles in which the port is
// free, the doorbell's cycle included.
module doubler (
  input  logic clock, reset, enable,
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic port_request, port_write,
  output logic [31:0] port_address,
  output logic [5:0] port_bytes,
  output logic [31:0] port_strobe,
  output logic [255:0] port_wdata,
  input  logic [255:0] port_rdata,
  output logic busy, work_end, event_set);

  localparam logic [7:0] Cycles = 123;
  logic [7:0] done;                      // cycles so far
  logic fresh;                           // the word arrives
  logic [31:0] address, word;
  logic doorbell, last;
  assign doorbell = register_write && register_offset == 0 && !busy;
  assign last = busy && done == Cycles - 1;

  assign port_request = enable && busy && (done == 1 || last);
  assign port_write = last;
  assign port_address = address;
  assign port_bytes = 4;
  assign port_strobe = last ? 32'hF : 32'h0;
  assign port_wdata = {224'd0, word << 1};
  assign register_rdata = register_read && register_offset == 4 ? {31'd0, busy} : 32'd0;

  always_ff @(posedge clock) begin
    if (reset) begin
      busy <= 0;
      fresh <= 0;
      work_end <= 0;
      event_set <= 0;
    end else begin
      work_end <= enable && last;
      event_set <= enable && last;
      fresh <= port_request && !port_write;
      if (fresh) word <= port_rdata[31:0];
      if (doorbell) begin
        busy <= 1;
        address <= register_wdata;
        done <= 8'(enable);
      end else if (enable && busy) begin
        done <= done + 1;
        if (last) busy <= 0;
      end
    end
  end
endmodule
