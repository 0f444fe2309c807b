"""The cost of a frame: time, memory and energy side by side, at each supply voltage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npukit.display import milliseconds, of_kilobytes
from npukit.plan.predict.energy import FrameEnergy


@dataclass(frozen=True)
class Costs:
    """A table: a column for each voltage, a row for each kind of cost."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def costs_of(summary: Mapping[str, Any], bench: Mapping[str, Any] | None = None) -> Costs | None:
    """The costs as measured, or else as predicted in a build's summary. None for a board without power figures."""
    told = bench or {**summary["predicted"], "energy": summary.get("energy", ())}
    energies = [FrameEnergy(**each) for each in told["energy"]]
    if not energies:
        return None
    levels = (f">{each.volts:g} V, {each.clock_hz / 1e6:g} MHz" for each in energies)
    rate = summary.get("frames_per_second")
    return Costs((f"a frame, {rate:g} a second" if rate else "a frame", *levels), list(_rows(summary, told, energies)))


def _rows(
    summary: Mapping[str, Any], told: Mapping[str, Any], energies: Sequence[FrameEnergy]
) -> Iterator[Sequence[str]]:
    whole = "alone" if summary["frames"] == 1 else f"batch of {summary['frames']:,}"
    yield f"time, {whole}", *(milliseconds(told["latency_cycles"], each.clock_hz) for each in energies)
    yield "time between two", *(f"{each.milliseconds:.3g} ms" for each in energies)
    for region in summary["regions"]:
        yield f"{region['name']} of the fullest PE", *[of_kilobytes(region["used"], region["size"])] * len(energies)
    yield "DRAM", *[f"{summary['dram_bytes']:,} bytes"] * len(energies)
    yield "energy", *(each.amount for each in energies)
    for part in energies[0].parts:
        yield f"of it {part}", *(f"{each.parts[part]:.3g} uJ" for each in energies)
