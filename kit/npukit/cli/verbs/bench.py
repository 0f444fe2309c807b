"""`npukit bench`: the cost of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from npukit.cli import options
from npukit.cli.compare import compared, load_bench
from npukit.cli.networks import chosen_network, refuse_for_several
from npukit.cli.summary import show_costs, show_modified, told_of
from npukit.cli.terminal import Terminal
from npukit.display import IN_MODEL, counted, in_model, shares, thousands

SHOWN_PES = 16

if TYPE_CHECKING:
    from npukit.farm.client import FarmBench
    from npukit.measure.bench import Bench, LayerCost
    from npukit.project.build_folder import Build


@options.verb(plugins=True, tables=True, left="nothing is written")
def bench(
    terminal: Terminal,
    build: options.BuildFolder,
    network: options.Network = None,
    on: options.On = None,
    frames: Annotated[int, options.model("--frames", min=1, metavar="N", help="Frames to measure.")] = 3,
    inputs: options.Inputs = None,
    stream: options.Stream = False,
    tracker: options.Tracker = None,
    key: options.BoardKey = None,
    compare: Annotated[
        Path | None,
        options.output("--compare", metavar="OLD.json", help="Compare with an earlier output of bench --json."),
    ] = None,
    modified: options.Modified = False,
) -> None:
    """Measure latency, interval, energy and each layer of a build, on one board or on a farm of boards.

    A wrong output is an error.
    """
    from npukit import api
    from npukit.project.build_folder import REPORT

    build = chosen_network(build, network)
    if networks := api.load_networks(build, modified=modified):
        refuse_for_several(build, "--inputs, --stream, --tracker and --compare", inputs, stream, tracker, compare)
        show_modified(terminal, *networks.values())
        _bench_networks(terminal, networks, on, frames)
        return
    old = load_bench(compare) if compare else None  # before the measurement: a wrong file costs no time
    if tracker:
        _show_boards(terminal, api.farm_bench(build, tracker=tracker, key=key, frames=frames))
        return
    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    measured = api.bench(built, on=on, frames=frames, inputs=inputs, stream=stream, progress=terminal)
    terminal.result({**measured.to_json(), **told_of(built)})
    _show(terminal, measured, built.manifest.summary)
    if old:
        figures = compared(old, measured)
        rows = [(each.name, thousands(each.old), thousands(each.new), _percent(each.change)) for each in figures]
        terminal.table(("", ">before", ">now", ">change"), rows)
    if not built.modified:
        terminal.note(f"report: {built.folder / REPORT}")


def _bench_networks(terminal: Terminal, builds: Mapping[str, Build], on: str | None, frames: int) -> None:
    """Print a row for each network: alone, and with all others at the same time."""
    from npukit import api

    measured = api.bench_networks(builds, on=on, frames=frames, progress=terminal)
    told = {name: {"name": name, **each.to_json()} for name, each in measured.items()}
    terminal.result({"networks": [{**told[name], **told_of(builds[name])} for name in told]})
    rows = []
    for name, each in measured.items():
        cycles = (each.alone.latency_cycles, each.alone.interval_cycles, each.coresident_interval_cycles)
        numbers = map(thousands, (*cycles, each.alone.instructions))
        rows.append((name, *numbers, f"{each.alone.macs_per_cycle or 0:.1f}"))
    headings = ("network", ">latency", ">interval", ">interval, together", ">instructions", ">MACs a cycle")
    terminal.table(headings, rows)


def _show_boards(terminal: Terminal, farm: FarmBench) -> None:
    terminal.result(farm.to_json())
    rows = [
        (board.host, board.on, *map(thousands, (board.frames, board.bench.latency_cycles, board.bench.interval_cycles)))
        for board in farm.boards
    ]
    terminal.print(f"slowest board: {_verdict(farm.slowest)}; {_totals(farm.slowest)}")
    terminal.table(("host", "board", ">frames", ">latency", ">interval"), rows)


def _show(terminal: Terminal, measured: Bench, summary: dict[str, Any]) -> None:
    """Print the whole frame, then its layers, then its PEs if there are several; cycles if the target counts them."""
    terminal.print(_verdict(measured))
    if measured.latency_cycles is None:
        counts = [layer.instructions or 0 for layer in measured.layers]
        rows = [
            (layer.name, in_model(layer.title), layer.engine, f"{count:,}", f"{share:.1f} %")
            for layer, count, share in zip(measured.layers, counts, shares(counts), strict=True)
        ]
        terminal.table(
            ("layer", IN_MODEL, "engine", ">instructions", ">share"), rows, (*BENCH_COLUMNS, ">instructions")
        )
        return
    show_costs(terminal, summary, measured.to_json())
    if measured.manual:
        _show_manual(terminal, measured, measured.manual)
    _show_layers(terminal, measured, {row["name"]: row["cycles"] for row in summary["frame"]})
    _show_floors(terminal, measured, summary["floors"])
    if len(measured.pes) > 1:
        _show_pes(terminal, measured)
    terminal.print(_totals(measured))


def _show_floors(terminal: Terminal, measured: Bench, floors: Mapping[str, Any]) -> None:
    """Print the measured cycles beside those that no other network, or no other plan, could undercut."""
    from npukit.plan.predict.floors import with_measured

    rows = with_measured(floors, measured.latency_cycles or 0, measured.interval_cycles or 0)
    terminal.print()
    terminal.table(("floor", ">latency", ">interval"), [(name, *map(thousands, cycles)) for name, *cycles in rows])


def _show_manual(terminal: Terminal, measured: Bench, manual: Bench) -> None:
    """Print the cycles of a frame in RTL beside the cycles by the manual's C models."""
    told = ", ".join(measured.rtl_parts)
    layers = {layer.name: layer.engine for layer in measured.layers}
    rtl, known = _spent(measured), _spent(manual)
    rows = [(name, layers.get(name, ""), *_beside(known.get(name), cycles)) for name, cycles in rtl.items()]
    terminal.print(f"\nin RTL: {told}")
    terminal.table(("cycles", "engine", ">manual", ">RTL", ">difference"), rows)


def _spent(measured: Bench) -> dict[str, int]:
    """The cycles of the frame's rows, or of the layers, then of the whole."""
    of_layers = {layer.name: layer.cycles or 0 for layer in measured.layers}
    rows = {name: cycles for name, cycles in (measured.frame or of_layers).items() if cycles or name in of_layers}
    return {**rows, "latency": measured.latency_cycles or 0, "interval": measured.interval_cycles or 0}


def _beside(manual: int | None, rtl: int) -> tuple[str, ...]:
    return thousands(manual), thousands(rtl), _percent(rtl / manual - 1) if manual else ""


BENCH_COLUMNS = ("layer", "engine", ">cycles", ">share", ">predicted", ">difference")
"""Columns without --wide."""


def _show_layers(terminal: Terminal, measured: Bench, predicted: Mapping[str, int]) -> None:
    """Print the rows that add up to the frame beside their prediction; elsewhere the cycles of each layer alone."""
    layers = {layer.name: layer for layer in measured.layers}
    if measured.frame is None:
        predicted = {name: layer.predicted_cycles for name, layer in layers.items()}
        spent = {name: layer.cycles or 0 for name, layer in layers.items()}
    else:
        spent = dict(measured.frame)
    rows = [
        (*_named(name, layers.get(name)), *_figures(cycles, predicted.get(name), share), *_alone(layers.get(name)))
        for (name, cycles), share in zip(spent.items(), shares([*spent.values()]), strict=True)
        if cycles or name in layers
    ]
    alone = (">cycles alone", ">predicted alone", ">instructions", ">accelerator", ">waiting before", ">sending after")
    terminal.print()
    terminal.table(("layer", IN_MODEL, *BENCH_COLUMNS[1:], *alone), rows, BENCH_COLUMNS)


def _named(name: str, layer: LayerCost | None) -> tuple[str, str, str]:
    return (name, in_model(layer.title), layer.engine) if layer else (name, "", "")


def _figures(cycles: int, predicted: int | None, share: float) -> tuple[str, ...]:
    change = _percent(cycles / predicted - 1) if predicted else ""
    return thousands(cycles), f"{share:.1f} %", thousands(predicted), change


def _alone(layer: LayerCost | None) -> tuple[str, ...]:
    """Figures of a layer on the PE with the most cycles."""
    if layer is None:
        return ("",) * 6
    counts = (layer.cycles, layer.predicted_cycles, layer.instructions, layer.npu_cycles, layer.wait, layer.send)
    return tuple(map(thousands, counts))


def _show_pes(terminal: Terminal, measured: Bench) -> None:
    """Print the root, then the PEs that wait least, `SHOWN_PES` in all."""
    root, *others = measured.pes
    shown = (root, *sorted(others, key=lambda pe: pe.wait)[: SHOWN_PES - 1])
    rows = [(f"PE {pe.pe}", *map(thousands, (pe.busy, pe.npu_busy, pe.wait, pe.send, pe.instructions))) for pe in shown]
    terminal.print()
    terminal.table(("cycles of", ">core", ">accelerator", ">idle", ">SRAM port", ">instructions"), rows)
    if len(measured.pes) > len(shown):
        terminal.print(f"{len(measured.pes) - len(shown)} more PEs: --json has them")


def _verdict(measured: Bench) -> str:
    if measured.latency_cycles is None:
        return f"{counted(measured.instructions)} a frame on {measured.engine}, which counts no cycles"
    told = f"{measured.latency_cycles:,} cycles on {measured.engine}, predicted {measured.predicted_latency_cycles:,}"
    return f"{told}; outputs equal to the reference"


def _totals(measured: Bench) -> str:
    parts = [f"{measured.macs_per_cycle or 0:.1f} MACs a cycle"]
    if measured.instructions is not None:
        parts = [counted(measured.instructions), *parts]
    if measured.utilisation is not None and len(measured.pes) > 1:
        parts.append(f"{len(measured.pes)} PEs at work {measured.utilisation:.0%} of the time")
    return "; ".join(parts)


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"
