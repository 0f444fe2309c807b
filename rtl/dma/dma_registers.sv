// SPDX-License-Identifier: Apache-2.0
// The registers of section 4.1. Reads are combinational. A store and a count or an error of the same
// cycle: the store comes first, since the other shows in the next cycle.
module dma_registers (
  input  logic clock, reset,
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  input  logic [31:0] pe, pes, chip,
  output logic event_set,
  // chains
  output logic doorbell,
  input  logic full, empty, done,        // done: a descriptor
  // errors of this cycle
  input  logic fetch_fault,
  input  logic [2:0] fetch_error,        // 2 to 6
  input  logic wrong_crc, wrong_number,
  output logic fault,                    // any error but 1
  output logic [3:0] error,
  // flags
  input  logic [1:0] count,
  input  logic [11:0] count_index);

  logic [3:0] error_before, error_now;
  logic [31:0] completed, flag;
  logic flag_register;
  assign doorbell = register_write && register_offset == 12'h000;
  assign flag_register = register_offset[11:8] == 1;
  assign fault = fetch_fault || wrong_crc || wrong_number;
  assign error_before = register_write && register_offset == 12'h00C ? 4'd0 : error;
  assign error_now = wrong_number ? 4'd8 : wrong_crc ? 4'd7 : fetch_fault ? {1'b0, fetch_error} :
                     doorbell && full ? 4'd1 : 4'd0;
  dma_flags counters (.clock, .reset, .write(register_write && flag_register && register_offset[1:0] == 0),
    .index(register_offset[7:2]), .wdata(register_wdata), .rdata(flag), .count, .count_index);

  always_ff @(posedge clock) begin
    if (reset) begin
      error <= 0;
      completed <= 0;
      event_set <= 0;
    end else begin
      error <= error_before == 0 ? error_now : error_before;
      completed <= completed + 32'(done);
      event_set <= fault || count != 0;
    end
  end

  always_comb begin
    register_rdata = 0;
    if (register_read && flag_register) register_rdata = flag;
    else if (register_read) case (register_offset)
      12'h004: register_rdata = {30'd0, error != 0, !empty};
      12'h008: register_rdata = completed;
      12'h00C: register_rdata = {28'd0, error};
      12'h010: register_rdata = pe;
      12'h014: register_rdata = pes;
      12'h018: register_rdata = chip;
      default: ;
    endcase
  end
endmodule
