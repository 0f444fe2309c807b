"""The report: one self-contained HTML page about a build, extended by each validation and measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from npukit import __version__
from npukit.board.board import Board
from npukit.display import milliseconds, of_kilobytes, shares, thousands
from npukit.errors import NpukitError
from npukit.measure.bench import Bench
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.floors import with_measured
from npukit.plan.predict.memory import RegionUse, regions_of
from npukit.progress import Progress
from npukit.project.build_folder import REPORT, Build
from npukit.project.folder_files import read_text
from npukit.report.costs import costs_of
from npukit.report.gantt import gantt
from npukit.report.layers import adds_up, in_short, layer_rows, time_note, unit_of
from npukit.report.mesh import mesh_picture
from npukit.report.sram import sram_maps
from npukit.templates import templates_in
from npukit.writing import write_file

RESULTS = "results.json"
MEMORY_BARS = 4
MEMORY_ROWS = 256
LEAST_WITHOUT_DECIMALS = 100
"""Smallest interval in cycles that is shown without decimals."""


@dataclass(frozen=True)
class Figure:
    """A headline figure. `mood`: good, bad or empty."""

    label: str
    value: str
    mood: str = ""


@dataclass(frozen=True)
class Share:
    """A part of a whole, in percent."""

    kind: str
    label: str
    share: float


def write_report(build: Build, plan: Plan | None = None, /, **results: dict[str, Any]) -> Path:
    """Write `report.html`. `results`: `validation`, `bench` and `gantt`, added to the results of earlier calls. `plan`:
    read from the build by default."""
    plan = plan or build.plan()
    known = {**_shown(build, plan, known_results(build)), **results}
    page = render(build, known, plan)
    write_file(build.folder / RESULTS, json.dumps(known, indent=1) + "\n")
    write_file(build.folder / REPORT, page)
    return build.folder / REPORT


def _shown(build: Build, plan: Plan, found: Mapping[str, Any]) -> dict[str, Any]:
    """The results that the page can render. Others in the file were not written by npukit, and are dropped."""
    if not found or _renders(build, plan, found):
        return dict(found)
    return {name: result for name, result in found.items() if _renders(build, plan, {name: result})}


def _renders(build: Build, plan: Plan, results: Mapping[str, Any]) -> bool:
    try:
        render(build, results, plan)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, UndefinedError):
        return False
    return True


def keep_results(build: Build, progress: Progress, **results: dict[str, Any]) -> None:
    """Add results to the build's report, unless the firmware was edited by hand, or the folder is read-only."""
    if build.modified:
        progress.stage("the report stays as it was: it is about the build as npukit made it")
        return
    try:
        write_report(build, **results)
    except NpukitError as error:
        progress.stage(f"the report stays as it was: {error.message}")


def keep_bench(build: Build, measured: Bench, progress: Progress) -> None:
    """Add a measurement to the build's report, with the chart of a frame if there is a timeline."""
    chart = {"gantt": asdict(gantt(measured.timeline))} if measured.timeline else {}
    keep_results(build, progress, bench=measured.to_json(), **chart)


def render(build: Build, results: Mapping[str, dict[str, Any]], plan: Plan | None = None) -> str:
    """The page as text."""
    plan = plan or build.plan()
    validation, bench, chart = (results.get(name) for name in ("validation", "bench", "gantt"))
    bars_of_chart = [bar for row in (chart["rows"] if chart else ()) for bar in (*row["upper"], *row["lower"])]
    environment = templates_in("report", html=True)
    environment.filters["thousands"] = thousands
    manifest, summary, bars = build.manifest, build.manifest.summary, _memory(build.board, plan)
    return environment.get_template("report.html.j2").render(
        summary=summary,
        board=manifest.board,
        accelerated=bool(manifest.board.accelerator),
        figures=_figures(summary, validation, bench, manifest.board),
        in_short=_in_short(summary, bench),
        time_note=time_note(bench),
        adds_up=adds_up(bench),
        unit=unit_of(summary["frames"]),
        chips=len(plan.chips),
        measured=bench,
        counts_cycles=bool(bench and bench["latency_cycles"] is not None),
        pes_vary=manifest.board.pe_count > 1,
        rows=layer_rows(summary, bench),
        spending=_spending(bench),
        floors=with_measured(summary["floors"], *_latency_and_interval(summary, bench)),
        costs=costs_of(summary, bench if bench and bench["energy"] else None),
        gantt=chart,
        drawn={bar["kind"] for bar in bars_of_chart},
        picture=mesh_picture(build.board, build.net(), plan, _busy_shares(plan, bench), unit_of(plan.frames))
        if build.board.pe_count > 1
        else None,
        memory=bars,
        kinds=list(dict.fromkeys(kind for bar in bars for kind in bar.region.parts)),
        shown_bars=MEMORY_BARS,
        most_rows=MEMORY_ROWS,
        sram=sram_maps(plan),
        validation=validation,
        version=__version__,
        build_id=manifest.build_id[:16],
        toolchain=manifest.toolchain,
    )


def _busy_shares(plan: Plan, bench: dict[str, Any] | None) -> dict[int, float]:
    """The share of a frame in which each PE's core or accelerator works: measured, or predicted."""
    if bench and bench["pes"]:
        return {pe["pe"]: 1 - pe["wait"] / max(bench["latency_cycles"], 1) for pe in bench["pes"]}
    latency = max(plan.predicted.latency_cycles, 1)
    return {pe.pe: min(sum(step.cycles for step in pe.computes()) / latency, 1) for pe in plan.pes}


def _spending(bench: dict[str, Any] | None) -> list[Share]:
    """The cycles of all PEs in a frame, by use. Empty if there is only one use."""
    if not bench or not bench["pes"]:
        return []
    labels = {
        "npu_busy": ("npu", "accelerators compute"),
        "busy": ("cpu", "cores awake"),
        "wait": ("wait", "idle"),
    }
    cycles = [sum(pe[key] for pe in bench["pes"]) for key in labels]
    parts = [Share(kind, label, part) for (kind, label), part in zip(labels.values(), shares(cycles), strict=True)]
    spent = [part for part in parts if part.share]
    return spent if len(spent) > 1 else []


def _latency_and_interval(summary: dict[str, Any], bench: dict[str, Any] | None) -> tuple[int, int]:
    """Latency and interval: measured, or predicted."""
    told = bench if bench and bench["latency_cycles"] is not None else summary["predicted"]
    return told["latency_cycles"], told["interval_cycles"]


def _in_short(summary: dict[str, Any], bench: dict[str, Any] | None) -> str:
    """A few sentences on the use of time and of the PEs."""
    told, shares = in_short(summary, bench), {part.kind: part.share for part in _spending(bench)}
    if "npu" in shares:
        told += f" Accelerators compute {shares['npu']:.0f} % of the time, cores are awake {shares['cpu']:.0f} %."
    return told.strip()


@dataclass(frozen=True)
class MemoryBar:
    """A memory of a PE: bytes by kind, and their shares in percent."""

    pe: int
    region: RegionUse

    @property
    def shares(self) -> dict[str, float]:
        return {kind: round(100 * size / self.region.size, 2) for kind, size in self.region.parts.items()}


def _memory(board: Board, plan: Plan) -> list[MemoryBar]:
    """The memories of the root first, then of the other PEs by bytes used."""
    root, *others = plan.pes
    ordered = (root, *sorted(others, key=lambda pe: pe.memory.free))
    return [MemoryBar(pe.pe, region) for pe in ordered for region in regions_of(board.seen_by(pe.pe), pe.memory)]


def known_results(build: Build) -> dict[str, Any]:
    """The results of earlier calls in the build's folder. Empty if the file was not written by npukit."""
    path = build.folder / RESULTS
    try:
        known = json.loads(read_text(path)) if path.is_file() and not path.is_symlink() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _figures(
    summary: dict[str, Any], validation: dict[str, Any] | None, bench: dict[str, Any] | None, board: Board
) -> list[Figure]:
    figures = list[Figure]()
    if validation:
        cases, exact = validation["cases"], validation["outputs_equal"] and not validation["mismatches"]
        figures.append(
            Figure(f"{cases} case{'s' * (cases != 1)}", "bit-exact" if exact else "DIFFERS", "good" if exact else "bad")
        )
        if "accuracy" in validation:
            figures.append(Figure("of the labels right", f"{validation['accuracy']:.1%}"))
    figures += [
        *_time(summary, bench, board.core.clock_hz),
        *(Figure(each["name"], of_kilobytes(each["used"], each["size"])) for each in summary["regions"]),
    ]
    if board.pe_count > 1:
        figures.append(Figure("PEs used", thousands(summary["pes_used"])))
    figures.append(Figure("MACs", thousands(sum(op["macs"] for op in summary["ops"]))))
    if bench and bench["macs_per_cycle"]:
        figures.append(Figure("MACs a cycle", f"{bench['macs_per_cycle']:.1f}"))
    return figures


def _time(summary: dict[str, Any], bench: dict[str, Any] | None, clock_hz: int) -> list[Figure]:
    """The time of a frame, or the interval in a batch. Instructions if cycles are not counted."""
    if bench and bench["latency_cycles"] is None:
        counted = Figure(f"instructions a frame, on {bench['engine']}", thousands(bench["instructions"]))
        return [counted, *_time(summary, None, clock_hz)]
    told, said = bench or summary["predicted"], "" if bench else ", predicted"
    if summary["frames"] == 1:
        cycles = told["latency_cycles"]
        per_time = Figure(f"latency at {clock_hz / 1e6:g} MHz", milliseconds(cycles, clock_hz))
        return [Figure(f"cycles of latency{said}", thousands(cycles)), per_time]
    cycles = told["interval_cycles"]
    if cycles < LEAST_WITHOUT_DECIMALS:  # as on many chips: keep the fraction
        cycles = max(told["latency_cycles"], 1) / summary["frames"]
    return [
        Figure(f"cycles of interval{said}", f"{cycles:,.0f}" if cycles >= LEAST_WITHOUT_DECIMALS else f"{cycles:.2f}"),
        Figure(f"frames a second at {clock_hz / 1e6:g} MHz", f"{clock_hz / cycles:,.0f}"),
        Figure(f"cycles of latency, {unit_of(summary['frames'])}{said}", thousands(told["latency_cycles"])),
    ]
