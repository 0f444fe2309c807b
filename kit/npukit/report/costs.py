"""The cost of a frame: time, memory and energy side by side, at each supply voltage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npukit.display import milliseconds, of_kilobytes
from npukit.plan.predict.energy import FrameEnergy

_CONSUMERS = {"cores": "core energy", "accelerators": "accelerator energy"}
"""Labels of the energies whose consumers have a plural name."""

Row = Sequence[str]


@dataclass(frozen=True)
class Costs:
    """A table: a column for each voltage, a row for each kind of cost. `parts`: rows of the consumers of energy."""

    headings: Row
    rows: Sequence[Row]
    parts: Sequence[Row] = ()


def costs_of(summary: Mapping[str, Any], bench: Mapping[str, Any] | None = None) -> Costs:
    """The costs as measured, or else as predicted in a build's summary. Boards without power figures have a column for
    the clock, and no energy."""
    told = bench or {**summary["predicted"], "energy": summary.get("energy", ())}
    energies = [FrameEnergy(**each) for each in told["energy"]]
    rate = summary.get("frames_per_second")
    title = f"a frame, {rate:g} a second" if rate else "a frame"
    levels = [f">{each.volts:g} V, {each.clock_hz / 1e6:g} MHz" for each in energies]
    clocks = [each.clock_hz for each in energies] or [summary["clock_hz"]]
    label = "latency" if summary["frames"] == 1 else f"latency, batch of {summary['frames']:,}"
    rows = [_at(label, told["latency_cycles"], clocks), _at("interval", told["interval_cycles"], clocks)]
    rows += _memories(summary, len(clocks))
    if not energies:
        return Costs((title, f">{summary['clock_hz'] / 1e6:g} MHz"), rows)
    idle, *parts = (_part(part, energies) for part in energies[0].parts)
    parts = [row for row in parts if any(not value.startswith("0 ") for value in row[1:])]
    return Costs((title, *levels), [*rows, ("energy", *(each.amount for each in energies)), idle], parts)


def _at(label: str, cycles: int, clocks: Sequence[int]) -> Row:
    return label, *(milliseconds(cycles, clock) for clock in clocks)


def _memories(summary: Mapping[str, Any], levels: int) -> Iterator[Row]:
    fullest = ", fullest PE" if summary["pes_used"] > 1 else ""
    for region in summary["regions"]:
        yield f"{region['name']}{fullest}", *[of_kilobytes(region["used"], region["size"])] * levels
    if summary["dram_bytes"]:
        yield "DRAM", *[f"{summary['dram_bytes']:,} bytes"] * levels


def _part(part: str, energies: Sequence[FrameEnergy]) -> Row:
    return _CONSUMERS.get(part, f"{part} energy"), *(f"{each.parts[part]:.3g} uJ" for each in energies)
