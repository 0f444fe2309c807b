"""`npukit bench`: the cost of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npukit.cli.networks import chosen_network, refuse_for_several
from npukit.cli.options import BoardKey, BuildFolder, Inputs, Modified, Network, On, Stream, Tracker, verb
from npukit.cli.summary import of_frame, show_costs, show_modified, told_of
from npukit.cli.terminal import Terminal
from npukit.display import IN_MODEL, counted, in_model, milliseconds

MOST_PES = 16

if TYPE_CHECKING:
    from npukit.farm.client import FarmBench
    from npukit.measure.bench import Bench, LayerCost
    from npukit.measure.coresident import CoresidentBench
    from npukit.project.build_folder import Build


@verb(plugins=True, left="nothing is written")
def bench(
    terminal: Terminal,
    build: BuildFolder,
    network: Network = None,
    on: On = None,
    frames: Annotated[int, typer.Option("--frames", min=1, metavar="N", help="Frames to measure.")] = 3,
    inputs: Inputs = None,
    stream: Stream = False,
    tracker: Tracker = None,
    key: BoardKey = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="OLD.json", help="Beside what an earlier `bench --json` printed."),
    ] = None,
    modified: Modified = False,
) -> None:
    """Measure a build: cycles and instructions, whole and layer by layer; on one board, or on a farm's.

    A wrong output is an error, as it is of `validate`.
    """
    from npukit import api
    from npukit.project.build_folder import REPORT

    build = chosen_network(build, network)
    if networks := api.load_networks(build, modified=modified):
        refuse_for_several(build, "--inputs, --stream, --tracker and --compare", inputs, stream, tracker, compare)
        show_modified(terminal, *networks.values())
        _bench_networks(terminal, networks, on, frames)
        return
    old = _load_old(compare)
    if tracker:
        _show_boards(terminal, api.farm_bench(build, tracker=tracker, key=key, frames=frames))
        return
    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    measured = api.bench(built, on=on, frames=frames, inputs=inputs, stream=stream, progress=terminal)
    terminal.result({**measured.to_json(), **told_of(built)})
    _show(terminal, measured, built.manifest.summary["frames"])
    if measured.energy:
        show_costs(terminal, built.manifest.summary, measured.to_json())
    if old:
        _show_comparison(terminal, old, measured)
    if not built.modified:
        terminal.note(f"report: {built.folder / REPORT}")


def _bench_networks(terminal: Terminal, builds: Mapping[str, Build], on: str | None, frames: int) -> None:
    """Print a row for each network: alone, and with all others at the same time."""
    from npukit import api

    measured = api.bench_networks(builds, on=on, frames=frames, progress=terminal)
    told = {name: {"name": name, **each.to_json()} for name, each in measured.items()}
    terminal.result({"networks": [{**told[name], **told_of(builds[name])} for name in told]})
    headings = ("network", ">cycles a frame", ">between frames", ">all at once", ">instructions", ">MACs a cycle")
    terminal.table(headings, [_network_row(name, each) for name, each in measured.items()])


def _network_row(name: str, measured: CoresidentBench) -> tuple[str, ...]:
    alone = measured.alone
    cycles = (alone.latency_cycles, alone.interval_cycles, measured.coresident_interval_cycles)
    return name, *map(_number, cycles), _number(alone.instructions), f"{alone.macs_per_cycle or 0:g}"


def _show_boards(terminal: Terminal, farm: FarmBench) -> None:
    terminal.result(farm.to_json())
    rows = [
        (
            board.host,
            board.on,
            f"{board.frames}",
            *map(_number, (board.bench.latency_cycles, board.bench.interval_cycles)),
        )
        for board in farm.boards
    ]
    terminal.table(("host", "board", ">frames", ">cycles", ">between frames"), rows)
    terminal.print(_summary(farm.slowest))


def _show(terminal: Terminal, measured: Bench, frames: int) -> None:
    """Print the figures: by PE if there are several, in cycles if the target counts them."""
    if measured.latency_cycles is None:
        rows = [(*_named(layer), _number(layer.instructions)) for layer in measured.layers]
        terminal.table(("layer", IN_MODEL, "engine", ">instructions"), rows)
        terminal.print(_summary(measured))
        return
    several = len(measured.pes) > 1
    _show_layers(terminal, measured, frames, several)
    if several:
        _show_pes(terminal, measured)
    terminal.print(_summary(measured))


def _show_layers(terminal: Terminal, measured: Bench, frames: int, several: bool) -> None:
    """Print a row for each layer. If a frame's rows are known, add a column of cycles, and rows outside layers."""
    headings = ["layer", IN_MODEL, "engine", ">cycles", ">predicted", ">difference", ">instructions"]
    headings += [">on the accelerator", ">waiting before", ">sending after"] if several else []
    rows = [[*_row(layer), *(_on_mesh(layer) if several else ())] for layer in measured.layers]
    if measured.frame is not None:
        spent = {row.name: row.cycles for row in measured.frame.rows}
        for row in rows:
            row.append(_number(spent.pop(row[0], 0)))
        rows += [[name, *[""] * (len(headings) - 1), _number(cycles)] for name, cycles in spent.items() if cycles]
        headings.append(of_frame(frames))
    terminal.table(headings, rows)


def _show_pes(terminal: Terminal, measured: Bench) -> None:
    """Print the root, then the PEs that wait least, `MOST_PES` in all."""
    root, *others = measured.pes
    shown = (root, *sorted(others, key=lambda pe: pe.wait)[: MOST_PES - 1])
    rows = [(f"PE {pe.pe}", *map(_number, (pe.busy, pe.npu_busy, pe.wait, pe.send, pe.instructions))) for pe in shown]
    terminal.table(("", ">core awake", ">accelerator", ">waiting", ">port moves data", ">instructions"), rows)
    if len(measured.pes) > len(shown):
        terminal.print(f"{len(measured.pes) - len(shown)} more PEs: --json has them")


def _summary(measured: Bench) -> str:
    if measured.latency_cycles is None or measured.interval_cycles is None:
        return f"{counted(measured.instructions)} a frame on {measured.engine}, which counts no cycles"
    told = "" if measured.instructions is None else f" {counted(measured.instructions)};"
    time = milliseconds(measured.latency_cycles, measured.clock_hz)
    return (
        f"{measured.latency_cycles:,} cycles a frame ({time} at {measured.clock_hz / 1e6:g} MHz, on"
        f" {measured.engine}), {measured.interval_cycles:,} between frames;{told}"
        f" {measured.macs_per_cycle:g} MACs a cycle{_utilisation(measured)}"
    )


def _utilisation(measured: Bench) -> str:
    used, count = measured.utilisation, len(measured.pes)
    return "" if used is None or count < 2 else f"; {count} PEs at work {used:.0%} of the time"


def _row(layer: LayerCost) -> tuple[str, ...]:
    cycles, predicted = layer.cycles, layer.predicted_cycles
    change = _percent(cycles / predicted - 1) if cycles and predicted else ""
    return *_named(layer), _number(cycles), _number(predicted), change, _number(layer.instructions)


def _named(layer: LayerCost) -> tuple[str, str, str]:
    return layer.name, in_model(layer.title), layer.engine


def _load_old(path: Path | None) -> dict[str, Any] | None:
    """The old bench, read before the measurement: a wrong file costs no time."""
    from npukit.cli.compare import load_bench

    return load_bench(path) if path else None


def _show_comparison(terminal: Terminal, old: dict[str, Any], measured: Bench) -> None:
    from npukit.cli.compare import compare

    rows = [(row.name, _number(row.old), _number(row.new), _percent(row.change)) for row in compare(old, measured)]
    terminal.table(("", ">before", ">now", ">change"), rows)


def _on_mesh(layer: LayerCost) -> tuple[str, ...]:
    return _number(layer.npu_cycles), _number(layer.wait), _number(layer.send)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _percent(change: float | None) -> str:
    return "" if change is None else f"{change:+.1%}"
