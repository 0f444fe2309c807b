"""`npukit tune`: search for faster code of what TVM schedules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.options import AsJson, BuildFolder, Calibration, Quiet, Verbose, open_terminal

if TYPE_CHECKING:
    from npukit.cli.terminal import Terminal
    from npukit.tuner import Tuned


def tune(
    build: BuildFolder,
    model: Annotated[Path, typer.Option("--model", metavar="MODEL", help="The file the build was made from.")],
    budget: Annotated[
        int, typer.Option("--budget", min=1, metavar="SECONDS", help="Try nothing new after this.")
    ] = 300,
    database: Annotated[
        Path | None,
        typer.Option("--database", metavar="FILE", help="By default $NPUKIT_TUNED or a file in the user's cache."),
    ] = None,
    merge: Annotated[
        Path | None, typer.Option("--merge", metavar="FILE", help="First take over what others have found.")
    ] = None,
    calibration: Calibration = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Measure blockings of float layers, keep the best for all builds to come, and build again with them."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api

        tuned = api.tune(
            build,
            model,
            budget_seconds=budget,
            database=database,
            merge=merge,
            calibration=calibration,
            progress=terminal,
        )
        terminal.result(tuned.to_json())
        _show(terminal, tuned)


def _show(terminal: Terminal, tuned: Tuned) -> None:
    rows = [
        (kernel.name, ", ".join(kernel.layers), f"{kernel.before:,}", f"{kernel.after:,}", kernel.blocking)
        for kernel in tuned.kernels
    ]
    terminal.table(("kernel", "layers", ">before", ">now", "blocking"), rows)
    gain = f"{tuned.before / tuned.after:.2f} times as fast" if tuned.after < tuned.before else "nothing faster found"
    terminal.print(
        f"{tuned.before:,} -> {tuned.after:,} {tuned.unit} a frame, {gain}; {tuned.trials} trials in"
        f" {tuned.seconds:g} s; kept in {tuned.database}"
    )
