"""`npukit bench`: what a frame costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.options import AsJson, BuildFolder, On, Quiet, Verbose, open_terminal

if TYPE_CHECKING:
    from npukit.cli.terminal import Terminal
    from npukit.farm.client import FarmBench
    from npukit.measure.bench import Bench, LayerCost


def bench(
    build: BuildFolder,
    on: On = None,
    frames: Annotated[int, typer.Option("--frames", min=1, metavar="N", help="Frames to measure.")] = 3,
    tracker: Annotated[
        str | None, typer.Option("--tracker", metavar="HOST:PORT", help="On all free boards of this TVM tracker.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="With --tracker: boards served under this key.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Measure a build: cycles and instructions, whole and layer by layer; on one board, or on a farm's."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api
        from npukit.report.page import write_report

        if tracker:
            farm = api.farm_bench(build, tracker=tracker, key=key, frames=frames)
            terminal.result(farm.to_json())
            _show_boards(terminal, farm)
            return
        measured = api.bench(build, on=on, frames=frames, progress=terminal)
        terminal.result(measured.to_json())
        page = write_report(api.load(build), bench=measured.to_json())
        _show(terminal, measured)
        terminal.note(f"report: {page}")


def _show_boards(terminal: Terminal, farm: FarmBench) -> None:
    rows = [
        (board.host, board.on, f"{board.frames}", f"{board.bench.latency_cycles:,}", f"{board.bench.interval_cycles:,}")
        for board in farm.boards
    ]
    terminal.table(("host", "board", ">frames", ">cycles", ">between frames"), rows)
    terminal.print(_summary(farm.slowest))


def _show(terminal: Terminal, measured: Bench) -> None:
    headings = ("layer", "engine", ">cycles", ">predicted", ">accelerator busy", ">instructions")
    terminal.table(headings, [_row(layer) for layer in measured.layers])
    terminal.print(_summary(measured))


def _summary(measured: Bench) -> str:
    instructions = f"{measured.instructions:,} instructions"
    if measured.latency_cycles is None or measured.interval_cycles is None:
        return f"{instructions} a frame on {measured.engine}, which counts no cycles"
    milliseconds = 1e3 * measured.latency_cycles / measured.clock_hz
    return (
        f"{measured.latency_cycles:,} cycles a frame ({milliseconds:.3g} ms at {measured.clock_hz / 1e6:g} MHz, on"
        f" {measured.engine}), {measured.interval_cycles:,} between frames; {instructions};"
        f" {measured.macs_per_cycle:g} MACs a cycle"
    )


def _row(layer: LayerCost) -> tuple[str, ...]:
    numbers = (layer.cycles, layer.predicted_cycles, layer.npu_cycles, layer.instructions)
    return layer.name, layer.engine, *("" if number is None else f"{number:,}" for number in numbers)
