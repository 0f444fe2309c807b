// SPDX-License-Identifier: Apache-2.0
// The registers, and the chain of commands: when a command starts, ends or is at fault.
// Convention of time: in the cycle of the doorbell STATUS still reads idle; this cycle is the first
// of the command. A chain of n cycles reads busy in the n - 1 cycles behind, idle from then on. The
// core writes the doorbell also while the array is frozen: the command then starts with the next cycle.
module array_registers (
  input  logic clock, reset, enable,
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic event_set,
  output logic busy,
  output logic work_end,                 // a command has ended with the cycle before
  // the command check
  output logic check_start,
  output logic [31:0] check_address,
  input  logic check_ready,
  input  logic [2:0] check_error,
  // the running command
  output logic load,                     // the checked command becomes the running command
  output logic start,                    // the first cycle of the running command
  input  logic [31:0] next,
  input  logic finished);                // the running command may end with this cycle

  // The first command of a chain is checked in 24 cycles, the doorbell's included, and starts like
  // every other: 28 cycles of setup less the 4 of a later command. An error shows after all 28.
  localparam logic [4:0] CheckCycles = 24, SetupCycles = 28;

  logic checking, running;
  logic [4:0] phase;
  logic [31:0] completed, busy_cycles, error_command, command;
  logic [2:0] error;
  logic doorbell, accepted, check_end, command_end, fault, chain_end;
  assign doorbell = register_write && register_offset == 12'h000;
  assign accepted = doorbell && !busy;

  assign check_end = enable && checking && check_ready &&
                     phase == (check_error == 0 ? CheckCycles : SetupCycles) - 1;
  assign command_end = enable && running && finished && (next == 0 || check_ready);
  assign fault = check_error != 0 && (check_end || (command_end && next != 0));
  assign chain_end = fault || (command_end && next == 0);
  assign load = (check_end || command_end) && !chain_end;
  assign check_start = checking ? phase == 1 : start && next != 0;
  assign check_address = checking ? command : next;

  always_ff @(posedge clock) begin
    if (reset) begin
      busy <= 0;
      checking <= 0;
      running <= 0;
      start <= 0;
      completed <= 0;
      busy_cycles <= 0;
      error <= 0;
      error_command <= 0;
      event_set <= 0;
      work_end <= 0;
    end else begin
      event_set <= chain_end;
      work_end <= command_end || (check_end && fault);
      if (accepted) begin
        busy <= 1;
        checking <= 1;
        phase <= 5'(enable);
        command <= register_wdata;
      end else if (enable && checking) begin
        phase <= phase + 1;
      end
      if (check_end) checking <= 0;
      if (enable) start <= load;
      if (load) running <= 1;
      if (command_end) command <= next;
      if (command_end) completed <= completed + 1;
      if (chain_end) begin
        busy <= 0;
        running <= 0;
      end
      busy_cycles <= busy_cycles + 32'(busy || accepted);

      if (register_write && register_offset == 12'h010) error <= 0;
      else if (error == 0 && fault) begin
        error <= check_error;
        error_command <= running ? next : command;
      end else if (error == 0 && doorbell && busy) begin
        error <= 1;
        error_command <= register_wdata;
      end
    end
  end

  always_comb begin
    register_rdata = 0;
    if (register_read) case (register_offset)
      12'h004: register_rdata = {30'd0, error != 0, busy};
      12'h008: register_rdata = completed;
      12'h00C: register_rdata = busy_cycles;
      12'h010: register_rdata = {29'd0, error};
      12'h014: register_rdata = error_command;
      default: ;
    endcase
  end
endmodule
