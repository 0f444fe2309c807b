// SPDX-License-Identifier: Apache-2.0
// The output stage: takes the second rank of accumulators in units of 16 results, four results (a
// quad) a cycle, through the four requantisers to the write back.
// A unit passes the requantisers once, with RESIDUAL four times, in add three times. The passes are
// four cycles apart, as long as a requantiser takes, so each pass finds the results before it:
//   First: the accumulators, or the first operand of add. Own: the int8 result as an operand of
//   the residual add. Other: the second operand, with PRODUCT times the first. Sum: both, where the
//   first waited for four cycles; with PRODUCT the second alone.
module array_output (
  input  logic clock, reset, enable, start,
  // A part of the array needs only some fields of the command.
  // verilator lint_off UNUSEDSIGNAL
  input  array_pkg::setup_t setup,
  // verilator lint_on UNUSEDSIGNAL
  input  logic result,
  input  logic [1855:0] results,
  output logic result_taken,
  input  logic [17:0] loaded,
  output logic [17:0] released,
  output logic [2:0] read_entry,
  // An accumulator has 29 bits: the upper 3 of a bias do nothing.
  // verilator lint_off UNUSEDSIGNAL
  input  logic [127:0] biases,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [127:0] multipliers,
  input  logic [31:0] shifts,
  input  logic constants_ready,
  input  logic [255:0] constants,
  input  logic extra_ready,
  input  logic [127:0] extra,
  output logic extra_take,
  input  logic reciprocal_ready,
  input  logic [31:0] reciprocal,
  input  logic [4:0] exponent,
  output logic reciprocal_take,
  output logic write, whole,
  output logic [1:0] write_slice,
  output logic [127:0] write_data,
  input  logic entry_free);

  localparam logic [1:0] First = 0, Own = 1, Other = 2, Sum = 3;

  // --- Where the output stage is: step, unit, slot of the unit.
  logic inner_last, middle_last, done, unused_last;
  logic [17:0] unused_outer, unused_middle, inner;
  logic [1:0] unit, quad, pass;
  logic [3:0] slot, last_slot;
  logic issue, unit_end, group_end, reads_result;
  array_steps steps (.clock, .start, .enable, .advance(issue && group_end),
    .outer_count(setup.outer), .middle_count(setup.middle), .inner_count(setup.inner),
    .outer(unused_outer), .middle(unused_middle), .inner, .middle_last, .inner_last,
    .last(unused_last), .done);
  assign quad = slot[1:0];
  assign pass = setup.add && slot[3:2] != 0 ? slot[3:2] + 2'd1 : slot[3:2];
  assign last_slot = setup.residual ? 4'd15 : setup.add ? 4'd11 : 4'd3;
  assign unit_end = slot == last_slot;
  assign group_end = unit_end && 3'(unit) + 1 == setup.units;
  assign reads_result = pass == First || (setup.add && pass == Other);

  // --- Whether the slot can be issued. Within a unit of several passes nothing may wait.
  logic [2:0] entries;                   // of the write back, in use or promised
  logic ready, takes_entry, parameters_ready;
  assign parameters_ready = !(setup.convolution || setup.depthwise) ||
                            (setup.keep_parameters ? loaded > inner : loaded != released);
  assign takes_entry = setup.raw || slot == 0;
  assign ready = (!takes_entry || entries != 4) &&
                 (slot != 0 || (parameters_ready &&
                  (!(setup.residual || setup.add) || constants_ready) &&
                  (!setup.average || reciprocal_ready))) &&
                 (!(setup.residual ? slot == 0 : setup.accumulate) || extra_ready);
  assign issue = !done && !start && ready && (!reads_result || result);
  assign result_taken = issue && reads_result && quad == 3 && 3'(unit) + 1 == setup.units &&
                        (!setup.add || pass == Other);
  assign extra_take = issue && (setup.residual ? slot == 11 : setup.accumulate);
  assign reciprocal_take = issue && setup.average && slot == 3;

  always_ff @(posedge clock) if (enable) begin
    if (start) begin
      unit <= 0;
      slot <= 0;
      entries <= 0;
      released <= 0;
    end else begin
      if (issue) slot <= unit_end ? 0 : slot + 1;
      if (issue && unit_end) unit <= group_end ? 0 : unit + 1;
      if (issue && group_end && !setup.keep_parameters &&
          (setup.across || (inner_last && middle_last))) released <= released + 1;
      entries <= entries + 3'(issue && takes_entry) - 3'(entry_free);
    end
  end

  // --- The pipeline beside the requantisers: what becomes of each result.
  typedef struct packed {
    logic valid, wide, ends, added;      // ends: the last pass; added: of the residual
    logic [1:0] quad;
  } tag_t;
  tag_t tag, tag_1, tag_2, tag_3;
  always_comb begin
    tag.valid = issue;
    tag.wide = setup.add ? pass != Sum : pass == Own || pass == Other;
    tag.ends = slot[3:2] == last_slot[3:2];
    tag.added = setup.residual && pass == Sum;
    tag.quad = quad;
  end
  always_ff @(posedge clock) begin
    if (reset) {tag_1, tag_2, tag_3} <= 0;
    else if (enable) {tag_1, tag_2, tag_3} <= {tag, tag_1, tag_2};
  end
  logic [7:0] zero, low, high;
  assign zero = tag_3.added ? setup.residual_zero
              : setup.maximum || setup.average ? 8'd0 : setup.output_zero;
  assign low = tag_3.added ? setup.residual_min : setup.clamp_min;
  assign high = tag_3.added ? setup.residual_max : setup.clamp_max;

  // --- Parameters of the quad.
  assign read_entry = setup.pixels ? released[2:0]
                    : {setup.keep_parameters ? inner[0] : released[0], quad};
  logic [31:0] constant_zero, constant_multiplier, constant_shift;
  always_comb begin
    case (pass)
      Other: {constant_shift, constant_multiplier, constant_zero} = constants[191:96];
      Sum: {constant_shift, constant_multiplier, constant_zero} = {constants[255:192], 32'd0};
      default: {constant_shift, constant_multiplier, constant_zero} = constants[95:0];
    endcase
  end

  // A shift of more than 31 places acts as 31.
  function automatic logic [9:0] left_right(input logic signed [31:0] shift);
    logic [31:0] places;
    logic [4:0] held;
    places = shift[31] ? -shift : shift;
    held = places > 31 ? 5'd31 : places[4:0];
    left_right = shift[31] ? {5'd0, held} : {held, 5'd0};
  endfunction

  logic [115:0] accumulators, odd;       // of the quad; of the odd lanes beside it, for pairs
  array_quad quads (.results, .pixels(setup.pixels), .pair(setup.pair),
    .lane(setup.add ? {1'b0, pass == Other} : unit), .unit, .quad, .accumulators, .odd);

  logic [127:0] shifted, outcome;
  for (genvar i = 0; i < 4; i++) begin : requantisers
    logic [28:0] addend, total;
    logic [31:0] value, operand, multiplier, outcome_now, waiting;
    logic [127:0] delay;                 // the results of the last four cycles
    logic [9:0] places;
    always_comb begin
      addend = setup.accumulate ? extra[32 * i +: 29]
             : setup.convolution || setup.depthwise ? biases[32 * i +: 29] : 29'd0;
      total = accumulators[29 * i +: 29] + odd[29 * i +: 29] + addend;
      case (pass)
        Own: value = outcome[32 * i +: 32];
        Other: value = setup.add ? {{3{accumulators[29 * i + 28]}}, accumulators[29 * i +: 29]}
                     : {{24{extra[32 * quad + 8 * i + 7]}}, extra[32 * quad + 8 * i +: 8]};
        Sum: value = outcome[32 * i +: 32] + (setup.product ? 0 : waiting);
        default: value = {{3{total[28]}}, total};
      endcase
      operand = value;
      multiplier = setup.product && pass == Other ? outcome[32 * i +: 32] : constant_multiplier;
      places = left_right(constant_shift);
      if (setup.add ? pass != Sum : pass == Own || pass == Other)
        operand = (value - constant_zero) << 20;
      if (!setup.add && pass == First) begin
        multiplier = multipliers[32 * i +: 32];
        places = left_right({{24{shifts[8 * i + 7]}}, shifts[8 * i +: 8]});
        if (setup.raw) places = 0;
        // A pool multiplies by 2^(24 - exponent) * 2^30 ... 2^31 and divides by 2^31 * 2^23.
        if (setup.maximum) begin
          multiplier = 32'h4000_0000;
          places = {5'd24, 5'd23};
        end else if (setup.average) begin
          multiplier = reciprocal;
          places = {5'd24 - exponent, 5'd23};
        end
      end
    end
    array_requantise requantise (.clock, .enable, .operand, .left(places[9:5]),
      .right(places[4:0]), .multiplier, .shifted(shifted[32 * i +: 32]), .wide(tag_3.wide),
      .zero, .low, .high, .next_result(outcome_now), .result(outcome[32 * i +: 32]));
    always_ff @(posedge clock) if (enable) delay <= {delay[95:0], outcome[32 * i +: 32]};
    assign waiting = delay[127:96];
    assign write_data[32 * i +: 32] = setup.raw ? shifted[32 * i +: 32] : outcome_now;
  end

  assign whole = setup.raw;
  assign write = setup.raw ? tag_1.valid : tag_3.valid && tag_3.ends;
  assign write_slice = tag_3.quad;
endmodule
