"""Two builds side by side: one self-contained HTML page of figures, layers and memory, largest change first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npukit.project.build_folder import Build
from npukit.report.layers import layer_rows
from npukit.report.page import known_results, thousands
from npukit.templates import templates_in
from npukit.writing import write_file

COMPARISON = "compare.html"
_MEMORY = ("code", "constants", "activations", "stack")


@dataclass(frozen=True)
class Pair:
    """A figure of both builds. None if a build does not have it."""

    label: str
    left: float | None
    right: float | None

    @property
    def change(self) -> float | None:
        """The change from left to right in percent."""
        if not self.left or self.right is None:
            return None
        return round(100 * (self.right - self.left) / self.left, 1)


def write_comparison(left: Build, right: Build, path: Path | None = None) -> Path:
    """Write the page to `path`, by default into the folder of the left build."""
    path = path or left.folder / COMPARISON
    write_file(path, render_comparison(left, right))
    return path


def render_comparison(left: Build, right: Build) -> str:
    """The page as text."""
    environment = templates_in("report", html=True)
    environment.filters["thousands"] = thousands
    benches = _benches(left, right)
    old, new = (
        {row.name: row.spent for row in layer_rows(build.manifest.summary, bench)}
        for build, bench in zip((left, right), benches, strict=True)
    )
    pairs = [Pair(name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new))]
    return environment.get_template("compare.html.j2").render(
        builds=[(build.folder.name, build.manifest.summary, build.manifest.toolchain) for build in (left, right)],
        measured=bool(benches[0]),
        figures=list(_figures(left, right, benches)),
        layers=sorted(pairs, key=lambda pair: -abs((pair.right or 0) - (pair.left or 0))),
        memory=[Pair(part, _bytes(left, part), _bytes(right, part)) for part in _MEMORY],
    )


_Benches = tuple[dict[str, Any] | None, dict[str, Any] | None]


def _benches(left: Build, right: Build) -> _Benches:
    """Both results of `bench`, if there are two in the same unit, cycles or instructions; else None for both."""
    found = [known_results(build).get("bench") for build in (left, right)]
    comparable = all(found) and len({bench["latency_cycles"] is None for bench in found if bench}) == 1
    return (found[0], found[1]) if comparable else (None, None)


def _figures(left: Build, right: Build, benches: _Benches) -> Iterator[Pair]:
    summaries = [build.manifest.summary for build in (left, right)]
    told = [bench or summary["predicted"] for bench, summary in zip(benches, summaries, strict=True)]
    one_frame = all(summary["frames"] == 1 for summary in summaries)
    key, label = ("latency_cycles", "cycles of latency") if one_frame else ("interval_cycles", "cycles of interval")
    if told[0][key] is None:
        key, label = "instructions", "instructions a frame"
    if None not in (told[0][key], told[1][key]):
        yield Pair(label, told[0][key], told[1][key])
    if key != "instructions":
        clocks = (build.board.core.clock_hz for build in (left, right))
        times = (round(1e9 * each[key] / clock) for each, clock in zip(told, clocks, strict=True))
        yield Pair("nanoseconds of it", *times)
        old, new = (_energy(build, bench) for build, bench in zip((left, right), benches, strict=True))
        for volts in dict.fromkeys((*old, *new)):
            yield Pair(f"nanojoules a frame at {volts:g} V", old.get(volts), new.get(volts))
    yield Pair("PEs used", summaries[0]["pes_used"], summaries[1]["pes_used"])
    yield Pair("MACs", *(sum(op["macs"] for op in summary["ops"]) for summary in summaries))


def _energy(build: Build, bench: dict[str, Any] | None) -> Mapping[float, int]:
    """The nanojoules of a frame at each supply voltage."""
    told = (bench or build.manifest.summary).get("energy", ())
    return {each["volts"]: round(1e3 * each["microjoules"]) for each in told}


def _bytes(build: Build, part: str) -> int:
    """The bytes of one kind in all PEs."""
    return sum(pe[part] for pe in build.manifest.summary["memory"])
