"""The area of a PE: the stored page, its claims, and the way from the RTL to its figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.rtl import area

from helpers import needs
from npukit.board.board import load_board
from rtl.area_page import MULTIPLIERS, OUTPUT, energies, page, ratio
from rtl.routed import NAMES, around, instance, packed, registers, reported, to_cells
from rtl.synthesis import GATES, Size, counted, run, sizes

FOUND = json.loads(area.ROWS.read_text())


def test_the_page_is_made_of_its_rows() -> None:
    assert area.ROWS.with_suffix(".md").read_text() == page(FOUND), "made by benchmarks/rtl/area.py --save"


def test_the_output_stage_is_at_most_as_large_as_the_multipliers() -> None:
    assert 0 < ratio(FOUND) <= 1


def test_energies_of_the_board_follow_from_the_area() -> None:
    energy = load_board("pe-mesh").energy
    assert energy is not None
    product, *messages = energies(FOUND).values()
    assert product[0] == pytest.approx(product[1], rel=energy.uncertainty_percent / 100)
    for by_area, by_board in messages:
        assert by_area == pytest.approx(by_board, rel=energy.traffic_uncertainty_percent / 100)


def test_a_module_counts_for_the_nearest_part_around_it() -> None:
    memory = {"type": "$mem_v2", "parameters": {"SIZE": "100", "WIDTH": "1000"}}
    modules = {
        "mac_array": {"cells": {"a": {"type": "array_output"}, "b": {"type": "$paramod\\array_multipliers\\N=1"}}},
        "array_output": {"cells": {"a": {"type": "steps"}, "b": {"type": "steps"}}},
        "$paramod\\array_multipliers\\N=1": {"cells": {"a": {"type": "steps"}, "b": memory}},
        "steps": {"cells": {"a": {"type": "NAND2"}, "b": {"type": "$_DFFE_PP_"}, "c": {"type": "ZERO"}}},
    }
    found = counted(modules, "mac_array")
    assert found["array", OUTPUT] == Size(cells=2, flip_flops=2, area=2 * (0.798 + 4.522))
    assert found["array", MULTIPLIERS] == Size(cells=1, flip_flops=1, memory_bits=32, area=0.798 + 4.522)
    assert len(found) == 2


def test_a_gate_without_an_area_is_an_error() -> None:
    with pytest.raises(ValueError, match="without an area: \\$_DLATCH_P_"):
        counted({"mac_array": {"cells": {"a": {"type": "$_DLATCH_P_"}}}}, "mac_array")


@needs("yosys")
def test_yosys_makes_gates_and_memories_of_the_rtl(tmp_path: Path) -> None:
    (size,) = sizes(tmp_path, "noc_buffer").values()
    assert size.memory_bits == 64 * 144
    assert 64 < size.flip_flops < 300
    assert size.area > size.cells * min(area for _, area in GATES.values() if area)


def test_chains_of_flip_flops_hold_all_pins() -> None:
    wires = {"clock": ("input", 1), "a": ("input", 3), "b": ("output", 2), "c": ("output", 5)}
    text, pins = around("top", {name: {"direction": way, "bits": [0] * n} for name, (way, n) in wires.items()})
    assert pins == 10
    assert "top inside(.clock(clock), .a(into[0 +: 3]), .b(after[0 +: 2]), .c(after[2 +: 5]));" in text


@needs("yosys")
def test_a_word_of_registers_is_chosen_by_luts_of_four_inputs(tmp_path: Path) -> None:
    """Yosys alone makes wide multiplexers of PFUMX and L6MUX21 cells."""
    (tmp_path / "words.v").write_text(WORDS)
    cells: dict[str, set[str]] = {}
    for name, steps in {"usual": ["synth_ecp5 -top words"], "ours": to_cells("words")}.items():
        run("; ".join(("read_verilog words.v", *steps, f"write_json {name}.json")), tmp_path, 600)
        found = json.loads((tmp_path / f"{name}.json").read_text())["modules"]["words"]["cells"]
        cells[name] = {each["type"] for each in found.values()}
    assert not cells["ours"] & {"PFUMX", "L6MUX21"}
    assert "LUT4" in cells["ours"]
    assert "PFUMX" in cells["usual"]


WORDS = """module words(input clock, input clear, input [3:0] at, input [7:0] in, input put, output [7:0] out);
  reg [7:0] word [0:15];
  integer i;
  always @(posedge clock)
    if (clear) for (i = 0; i < 16; i = i + 1) word[i] <= 0;
    else if (put) word[at] <= in;
  assign out = word[at];
endmodule
"""


def test_a_report_of_nextpnr_is_read() -> None:
    used = {name: {"used": 3, "available": 9} for name in NAMES.values()}
    steps = [
        {"net": "inside.dma.check.a[3]", "to": {"cell": "$lut"}},
        {"net": "$abc$5", "to": {"cell": "$a"}},
        {"to": {"cell": "$a"}},
    ]
    path = {"from": "posedge clock", "to": "posedge clock", "path": steps}
    report = {"utilization": used, "fmax": {"clock": {"achieved": 50.5}}, "critical_paths": [path]}
    netlist = {
        "netnames": {
            "inside.dma.check.span.b[1].c": {"hide_name": 0, "bits": [4]},
            "$d": {"hide_name": 1, "bits": [4]},
        },
        "cells": {"$a": {"type": "TRELLIS_FF", "connections": {"Q": [4]}}, "$lut": {"type": "LUT4"}},
    }
    found = reported(report, 7, registers(netlist))
    assert (found.used["DSPs"], found.megahertz, found.pins) == (3, 50.5, 7)
    assert list(found.path) == ["dma.check", "dma.check.span.b"]
    assert [instance(name) for name in ("inside.a", "into[3]")] == ["top", "chain of pins"]


def test_a_circuit_that_is_not_routed_has_no_clock() -> None:
    names = ("TRELLIS_COMB", "TRELLIS_FF", "MULT18X18D", "DP16KD")
    lines = [f"Info: \t          {name}: {at}/ 83640     5%" for at, name in enumerate(names, 4)]
    found = packed("\n".join(lines), 7)
    assert (found.used["LUTs"], found.available["EBRs"], found.how) == (4, 83640, "packed")
    lines.append("Info: Max frequency for clock '$glbnet$clock': 27.13 MHz (FAIL at 100.00 MHz)")
    assert packed("\n".join(lines), 7).megahertz == 27.13
    with pytest.raises(RuntimeError, match="it failed"):
        packed("ERROR: it failed\n", 7)
