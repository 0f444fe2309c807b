"""The page `benchmarks/rtl/area.md` from the rows of `area.json`: areas, circuits of an ECP5, energy by the area."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from typing import Any

from docs.wrap import wrapped
from npukit.board.board import load_board
from rtl.routed import NAMES
from rtl.synthesis import FLIP_FLOP, NAND2, Size

COUNTS = ("cells", "flip_flops", "memory_bits", "nand2")
MULTIPLIERS, OUTPUT = "multipliers and accumulators", "output stage"
HEAD = """# The area of a PE

Measured at {commit} by `python benchmarks/rtl/area.py --save`: the devices of a PE, without its core
and its SRAM, synthesised by Yosys 0.23. `tests/rtl/synthesis.py` has the commands. Modules are
synthesised apart. An array of words with more than 6 bits is memory: its bits are counted, its gates
are not. The last column is the area of gates and flip-flops over the area of a NAND2. All areas are
those of the smallest cells of the NanGate 45 nm Open Cell Library: NAND2_X1 {nand2} square micrometres,
DFF_X1 {flip_flop}. A clock gate serves a whole register and is not counted. Wires, clock tree and test
logic are not counted.
"""
ROUTED = """
## On an ECP5

Placed and routed for an LFE5U-85F of speed 8 by Yosys 0.23 and nextpnr (`area.py --ecp5 TOP`), between
two chains of flip-flops in place of pins (`tests/rtl/routed.py`); the flip-flops of the chains are not
in the table. *Placed*: the clock is the estimate of nextpnr's placer. *Packed*: no clock is known. The
critical path shows the instances of its registers.
"""
ENERGY = """
## Energy by the area

Energies of operations in 45 nm at 0.9 V (Horowitz, ISSCC 2014), and their areas (Dally, tutorial at NIPS
2015):

| operation | pJ | square micrometres |
|---|--:|--:|
{operations}

The mean is {per_area:.2f} fJ for a square micrometre at work in a cycle, {gate:.2f} fJ for a NAND2. In 22 nm
half of the capacitance is left, as for the SRAM of `benchmarks/energy.py`, and 0.8 V take (0.8 / 0.9)^2 of
the energy: {small:.2f} fJ. A memory of 8 KB takes 10 pJ for 64 bits in 45 nm, of 32 KB 20 pJ (Horowitz):
the energy grows with the square root of the size. In 22 nm it takes half.

- A *product* in a convolution: gates of multipliers, operand file, weights queue and loads, divided by 64;
  20 bytes of SRAM a cycle (16 of weights, 4 of inputs) for 64 products.
- A *byte of a message in SRAM*: a macro of 16 KB; gates of the arbiter for a flit of 16 bytes.
- A *hop*: gates of an input and of an output of six, for a flit; a buffer written and read; 0.51 pJ of wire
  (`benchmarks/energy.py`).

The figures of the board file come from silicon and from memories and wires of other chips. They agree with
the area within their uncertainty, and stay. The rule leaves out clock tree, wires between gates and parts
without work, so it gives the order of size. The power of a sleeping PE and of a PE switched off does not
follow: the leakage of gates in 22 nm is not public.
"""


def rows(sizes: Mapping[tuple[str, str], Size]) -> list[dict[str, Any]]:
    """The rows of `area.json`."""
    return [{"group": g, "part": p, **asdict(size), "nand2": size.nand2} for (g, p), size in sizes.items()]


def measured(found: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The rows of parts by name."""
    return {row["part"]: row for row in found["parts"]}


def total(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in COUNTS}


def ratio(found: Mapping[str, Any]) -> float:
    """The output stage over multipliers and accumulators."""
    parts = measured(found)
    return parts[OUTPUT]["nand2"] / parts[MULTIPLIERS]["nand2"]


def page(found: Mapping[str, Any]) -> str:
    lines = [HEAD.format(commit=found["commit"], nand2=NAND2, flip_flop=FLIP_FLOP), *_parts(found)]
    lines += ["", f"The output stage has {ratio(found):.2f} of the area of multipliers and accumulators."]
    lines += [ROUTED, *_circuits(found["routed"]), _energy_text(), *_energies(found)]
    return wrapped("\n".join(lines) + "\n")


def _parts(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| | part | cells | flip-flops | memory bits | NAND2 |"
    yield "|---|---|--:|--:|--:|--:|"
    groups = list(dict.fromkeys(row["group"] for row in found["parts"]))
    for group in groups:
        rows = [row for row in found["parts"] if row["group"] == group]
        for row in rows:
            yield _line("", row["part"], row)
        if len(rows) > 1:
            yield _line(f"**{group}**", "", total(rows))
    yield _line("**PE**", "", total(found["parts"]))


def _line(group: str, part: str, row: Mapping[str, int]) -> str:
    return f"| {group} | {part} | {' | '.join(f'{row[name]:,}' for name in COUNTS)} |"


def _circuits(routed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"| module | measured at | | {' | '.join(NAMES)} | MHz | critical path |"
    yield f"|---|---|---|{'--:|' * len(NAMES)}--:|---|"
    for top, row in routed.items():
        used = {**row["used"], "flip-flops": row["used"]["flip-flops"] - row["pins"]}
        speed = f"{row['megahertz']:.0f}" if row["megahertz"] else ""
        counts = " | ".join(f"{used[name]:,}" for name in NAMES)
        path = ", ".join(f"`{name}`" for name in row["path"])
        yield f"| `{top}` | {row['commit']} | {row['how']} | {counts} | {speed} | {path} |"


OPERATIONS = {"addition of 32 bits": (0.1, 137), "product of 8 bits": (0.2, 282), "product of 32 bits": (3.1, 3495)}
PER_AREA = 1000 * sum(energy / area for energy, area in OPERATIONS.values()) / len(OPERATIONS)
"""Femtojoules of a square micrometre in 45 nm, at 0.9 V."""
GATE_FJ = PER_AREA * NAND2 * 0.5 * (0.8 / 0.9) ** 2
"""Of a NAND2 at work in a cycle, in 22 nm at 0.8 V."""
WIRE_PJ = 0.51


def memory_pj(kilobytes: float) -> float:
    """Of a byte, in 22 nm."""
    return 10 / 8 / 2 * sqrt(kilobytes / 8)


def energies(found: Mapping[str, Any]) -> Mapping[str, tuple[float, float]]:
    """Picojoules by the area and in the board file."""
    parts, energy = measured(found), load_board("pe-mesh").energy
    assert energy is not None
    works = (MULTIPLIERS, "operand file, choice of operands", "weights queue", LOADS)
    product = sum(parts[name]["nand2"] for name in works) * GATE_FJ / 1000 / 64 + 20 * memory_pj(16) / 64
    router = total([row for row in found["parts"] if row["group"] == "router"])
    buffer = parts["buffers"]["memory_bits"] / 6 / 8 / 1024
    hop = router["nand2"] / 6 * GATE_FJ / 1000 / 16 + 2 * memory_pj(buffer) + WIRE_PJ
    port = memory_pj(16) + parts["arbiter"]["nand2"] * GATE_FJ / 1000 / 16
    return {
        "`pj_per_mac` at 0.8 V": (product, energy.level[0].pj_per_mac),
        "`pj_per_sram_byte`": (port, energy.pj_per_sram_byte),
        "`pj_per_byte_hop`": (hop, energy.pj_per_byte_hop),
    }


LOADS = "loads: patches, sliding window, weights of the lanes"


def _energy_text() -> str:
    rows = "\n".join(f"| {name} | {energy} | {area:,} |" for name, (energy, area) in OPERATIONS.items())
    return ENERGY.format(operations=rows, per_area=PER_AREA, gate=PER_AREA * NAND2, small=GATE_FJ)


def _energies(found: Mapping[str, Any]) -> Iterator[str]:
    yield "| figure, pJ | by the area | board file |"
    yield "|---|--:|--:|"
    for name, (area, board) in energies(found).items():
        yield f"| {name} | {area:.2f} | {board:.2f} |"
