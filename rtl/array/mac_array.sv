// SPDX-License-Identifier: Apache-2.0
// The MAC array of a processing element: section 3 of the hardware manual.
// The parts run at their own pace and wait for each other: loads for operands, sums for loads,
// results for sums. The timer counts the manual's cycles, and the command ends when
// they are over; assertions hold all work to this end.
module mac_array #(parameter int SRAM_BYTES = 131072) (
  input  logic clock, reset,
  input  logic enable,
  input  logic register_read, register_write,
  input  logic [11:0] register_offset,
  input  logic [31:0] register_wdata,
  output logic [31:0] register_rdata,
  output logic port_request, port_write,
  output logic [16:0] port_address,
  output logic [5:0] port_bytes,
  output logic [31:0] port_strobe,
  output logic [255:0] port_wdata,
  input  logic [255:0] port_rdata,
  output logic event_set,
  output logic busy,                     // the array wants to be clocked
  output logic work_end);

  array_pkg::setup_t checked, setup;
  logic check_start, check_ready, load, start, over, period_end, finished;
  logic [31:0] check_address;
  logic [2:0] check_error;
  logic [8:0] request, access;
  logic [8:1] grant;
  logic [255:0] read_data;
  logic [127:0] out_data;

  // --- Control.
  array_registers registers (.clock, .reset, .enable, .register_read, .register_write,
    .register_offset, .register_wdata, .register_rdata, .event_set, .busy, .work_end, .check_start, .check_address,
    .check_ready, .check_error, .load, .start, .next(setup.next), .finished(over && finished));
  logic [16:0] command_address;
  array_command_check #(.SRAM_BYTES(SRAM_BYTES)) check (.clock, .reset, .enable,
    .start(check_start), .address(check_address), .port_request(request[0]),
    .port_address(command_address), .port_rdata(read_data), .ready(check_ready),
    .error(check_error), .setup(checked));
  always_ff @(posedge clock) begin
    // An idle array has no kind of work, so nothing asks for the port.
    if (reset || (enable && over && finished && !load)) setup <= 0;
    else if (load) setup <= checked;
  end
  array_timer timer (.clock, .reset, .enable, .start, .setup, .period_end, .over);

  // --- The port.
  logic urgent, unused_grant;
  logic [16:0] constants_address, extra_address, weights_address, window_address, write_address,
               lane_address, patch_address;
  logic [5:0] parameter_bytes, extra_bytes, weights_bytes, window_bytes, write_bytes, lane_bytes,
              patch_bytes;
  logic extra_access, window_access, write_access, lane_access, patch_access;
  assign access = {patch_access, lane_access, 1'b1, write_access, window_access, 1'b1,
                   extra_access, 2'b11};
  logic [8:0] asked;
  assign asked = start ? request & 9'd1 : request;
  array_port port (.clock, .enable, .elastic((setup.pair && !setup.nibbles) || setup.second),
    .across(setup.across), .request(asked), .urgent, .residual(setup.residual),
    .grant({grant, unused_grant}), .access,
    .addresses({patch_address, lane_address, constants_address, write_address, window_address,
                weights_address, extra_address, constants_address, command_address}),
    .sizes({patch_bytes, lane_bytes, parameter_bytes, write_bytes, window_bytes, weights_bytes,
            extra_bytes, parameter_bytes, 6'd32}),
    .write_data(out_data), .port_request, .port_write, .port_address, .port_bytes, .port_strobe,
    .port_wdata, .port_rdata, .read_data);

  // --- Loads.
  logic [6:0] complete, freed;
  logic transposer_release, patch_write, patch_complete, lane_complete;
  logic [3:0] patch_lanes, patch_pixel, lane_lanes, window_lanes;
  logic [5:0] patch_row, lane_row;
  logic [127:0] patch_data, window_data;
  logic [17:0] window_block, patch_block, block_begun;
  assign block_begun = setup.window ? window_block : patch_block;
  logic [511:0] lane_data;
  logic [1:0] lane_halves, sums_group, loaded_group;
  logic [15:0] rows_done, rows_begun, loaded_rows;
  logic [7:0] columns_done, loaded_columns, old_columns;
  logic [23:0] window_rows;
  array_patches patches (.clock, .enable, .start, .setup, .freed,
    .buffer_released(transposer_release), .request(request[8]), .access(patch_access),
    .address(patch_address), .bytes(patch_bytes), .granted(grant[8]),
    .port_rdata(read_data[127:0]), .write(patch_write), .write_lanes(patch_lanes),
    .write_pixel(patch_pixel), .write_row(patch_row), .write_data(patch_data),
    .row_complete(patch_complete), .block(patch_block));
  array_lane_weights lane_weights (.clock, .enable, .start, .setup, .freed, .block_begun,
    .request(request[7]),
    .access(lane_access), .address(lane_address), .bytes(lane_bytes), .granted(grant[7]),
    .port_rdata(read_data), .write_lanes(lane_lanes), .write_halves(lane_halves),
    .write_row(lane_row), .write_data(lane_data), .row_complete(lane_complete));
  array_window window (.clock, .enable, .start, .setup, .sums_group, .rows_done, .rows_begun,
    .columns_done, .request(request[4]), .access(window_access), .address(window_address),
    .bytes(window_bytes), .granted(grant[4]), .port_rdata(read_data[127:0]), .write_lanes(window_lanes),
    .write_rows(window_rows), .write_data(window_data), .loaded_group, .loaded_rows, .loaded_columns,
    .old_columns, .block(window_block));

  logic [5:0] file_row;
  logic [511:0] file_data;
  array_operand_file file (.clock, .enable, .start,
    .write_lanes(patch_lanes | lane_lanes | window_lanes),
    .write_halves(setup.transposed ? lane_halves : 2'b11),
    .write_rows(setup.transposed ? {4{lane_row}} : setup.window ? window_rows : {4{patch_row}}),
    .write_data(setup.transposed ? lane_data : setup.window ? {4{window_data}} : {4{patch_data}}),
    .row_complete(setup.transposed ? lane_complete : patch_complete), .complete,
    .read_row(file_row), .read_data(file_data));

  logic transposer_full;
  logic [3:0] transposer_byte;
  logic [127:0] pixels;
  array_transposer transposer (.clock, .enable, .start, .write(patch_write && setup.transposed),
    .write_pixel(patch_pixel), .write_data(patch_data), .write_last(patch_complete),
    .full(transposer_full), .read_byte(transposer_byte), .read_data(pixels),
    .release_buffer(transposer_release));

  logic weights_ready, weights_take;
  logic [127:0] even, odd;
  array_weights weights (.clock, .enable, .start, .setup, .request(request[3]), .urgent,
    .address(weights_address), .bytes(weights_bytes), .granted(grant[3]), .port_rdata(read_data),
    .ready(weights_ready), .even, .odd, .take(weights_take));

  // --- Sums.
  logic valid, first, last, stall;
  logic [3:0] file_byte;
  array_sums sums (.clock, .enable, .start, .setup, .complete, .transposer_full, .weights_ready,
    .loaded_group, .loaded_rows, .loaded_columns, .old_columns, .stall, .valid, .first, .last,
    .file_row, .file_byte, .transposer_byte, .weights_take, .transposer_release, .freed, .sums_group,
    .rows_done, .rows_begun, .columns_done);

  logic [575:0] lane;
  logic [143:0] wide_even, wide_odd;
  array_operands operands (.setup, .file_data, .file_byte, .pixels, .even, .odd, .lane,
    .wide_even, .wide_odd);
  logic result, result_taken;
  logic [1855:0] results;
  array_multipliers multipliers (.clock, .reset(reset || start), .enable, .valid, .first, .last,
    .stall, .maximum(setup.maximum), .lane, .wide_even, .wide_odd, .result_taken, .result,
    .results);

  // --- Results.
  logic constants_ready, extra_ready, extra_take, reciprocal_ready, reciprocal_take;
  logic [255:0] constants;
  logic [17:0] loaded, released;
  logic [2:0] read_entry;
  logic [127:0] biases, parameter_multipliers, extra, stage_data;
  logic [31:0] shifts, reciprocal;
  logic [4:0] exponent;
  logic stage_write, stage_whole, entry_free;
  logic [1:0] stage_slice;
  array_parameters parameters (.clock, .enable, .start, .setup, .constants_request(request[1]),
    .request(request[6]), .address(constants_address), .bytes(parameter_bytes),
    .constants_granted(grant[1]), .granted(grant[6]), .port_rdata(read_data), .constants_ready,
    .constants, .loaded, .released, .block_begun, .summing(valid), .sums_group, .read_entry,
    .biases, .multipliers(parameter_multipliers), .shifts);
  array_extra extras (.clock, .enable, .start, .setup, .request(request[2]),
    .access(extra_access), .address(extra_address), .bytes(extra_bytes), .granted(grant[2]),
    .port_rdata(read_data[127:0]), .ready(extra_ready), .entry(extra), .take(extra_take));
  array_reciprocal reciprocals (.clock, .enable, .start, .setup, .ready(reciprocal_ready),
    .reciprocal, .exponent, .take(reciprocal_take));
  array_output out (.clock, .reset, .enable, .start, .setup, .result, .results, .result_taken,
    .loaded, .released, .read_entry, .biases, .multipliers(parameter_multipliers), .shifts,
    .constants_ready, .constants, .extra_ready, .extra, .extra_take, .reciprocal_ready,
    .reciprocal, .exponent, .reciprocal_take, .write(stage_write), .whole(stage_whole),
    .write_slice(stage_slice), .write_data(stage_data), .entry_free);
  array_write_back write_back (.clock, .enable, .start, .setup, .write(stage_write),
    .whole(stage_whole), .write_slice(stage_slice), .write_data(stage_data),
    .request(request[5]), .access(write_access), .address(write_address), .bytes(write_bytes),
    .data(out_data), .granted(grant[5]), .entry_free, .finished);

`ifndef SYNTHESIS
  // The promises of the manual: the sums of a step are done with its period, but for the cycles
  // from a load to its sum, and those of the transposer; the results with the command.
  logic [31:0] due, summed;
  logic [21:0] periods_ended;            // in the last 22 cycles
  logic was_over, due_now;
  assign due_now = setup.transposed ? periods_ended[21] : periods_ended[5];
  always_ff @(posedge clock) if (enable && !reset) begin
    periods_ended <= start ? 22'd0 : {periods_ended[20:0], period_end};
    due <= start ? 0 : due + 32'(due_now);
    summed <= start ? 0 : summed + 32'(valid && last);
    was_over <= over;
    if (!start && due_now) assert (summed > due) else $error("the sums of a step are late");
    if (over && !was_over) begin
      assert (finished) else $error("the results are late");
      assert (setup.next == 0 || check_ready) else $error("the check is late");
    end
  end
  always_ff @(posedge clock) if (port_request && !reset) begin
    assert (enable);
    assert (port_bytes == 32 ? port_address[1:0] == 0 && !port_write
                             : port_bytes <= 16 && port_bytes != 0);
  end
`endif
endmodule
