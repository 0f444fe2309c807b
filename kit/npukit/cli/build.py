"""`npukit build`: a model file becomes firmware."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from npukit.cli.options import AsJson, Quiet, Verbose, open_terminal

if TYPE_CHECKING:
    from npukit.cli.terminal import Terminal


class Objective(StrEnum):
    LATENCY = "latency"
    THROUGHPUT = "throughput"
    MEMORY = "memory"


class Engine(StrEnum):
    CPU = "cpu"


class Compiler(StrEnum):
    GCC = "gcc"
    ZIG = "zig"


def build(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .tflite or .onnx file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="The build folder to leave.")],
    board: Annotated[str, typer.Option("--board", "-b", metavar="NAME", help="A board's name, or a board file.")] = (
        "pe-mesh"
    ),
    pes: Annotated[int | None, typer.Option("--pes", min=1, metavar="N", help="Use at most N PEs.")] = None,
    engine: Annotated[Engine | None, typer.Option("--engine", help="cpu: use no accelerator.")] = None,
    objective: Annotated[Objective, typer.Option("--objective", help="What to make good.")] = Objective.LATENCY,
    strict: Annotated[bool, typer.Option("--strict", help="Any op off the accelerator is an error.")] = False,
    toolchain: Annotated[
        Compiler | None, typer.Option("--toolchain", help="By default gcc if it is on the PATH, else zig.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Compile a model for a board: plan, C project, images, report."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api

        options = api.Options(pes=pes, engine=engine, objective=objective, strict=strict, toolchain=toolchain)
        built = api.build(model, board=board, output=output, options=options, progress=terminal)
        terminal.result(built.manifest.summary)
        _show(terminal, built.manifest.summary, output)


def _show(terminal: Terminal, summary: dict[str, Any], output: Path) -> None:
    headings = ("layer", "op", "engine", ">MACs", ">cycles, predicted", "why not accelerated")
    terminal.table(headings, [_row(op) for op in summary["ops"]])
    least = min(pe["free"] for pe in summary["memory"])
    latency = summary["predicted"]["latency_cycles"]
    used = "1 PE" if summary["pes_used"] == 1 else f"{summary['pes_used']} PEs, each"
    terminal.print(f"{used} with at least {least:,} bytes free; {latency:,} cycles predicted")
    terminal.note(f"built {output}; next: npukit validate {output}")


def _row(op: dict[str, Any]) -> tuple[str, ...]:
    return op["name"], op["op"], op["engine"], f"{op['macs']:,}", f"{op['predicted_cycles']:,}", op["reason"]
