"""`npukit trace`: the activity of every PE over time, for ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import BuildFolder, Modified, On, verb
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal


@verb(plugins=True, left="no trace is written")
def trace(
    terminal: Terminal,
    build: BuildFolder,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.json", help="Where the trace goes.")],
    on: On = None,
    frames: Annotated[int, typer.Option("--frames", min=1, metavar="N", help="Frames to run.")] = 1,
    pes: Annotated[
        str | None,
        typer.Option("--pes", metavar="0-3,8", help="Only these PEs; without it, at most 64 spread over the mesh."),
    ] = None,
    modified: Modified = False,
) -> None:
    """Record frames to the cycle: on the built-in emulator kernels, accelerators, messages, links, SRAM.

    Elsewhere, of a build with `--trace`, the steps of every PE as its firmware notes them.
    """
    from npukit import api

    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    traced = api.trace(built, output, on=on, frames=frames, pes=pes, progress=terminal)
    terminal.result({**traced.to_json(), **told_of(built)})
    if traced.overwritten:
        terminal.note(f"{traced.overwritten:,} events before these were overwritten: trace fewer frames at a time")
    one, several = ("frame", "frames") if traced.together == 1 else ("batch", "batches")
    what = f"{traced.frames} {several if traced.frames > 1 else one}"
    what += f" of {traced.together} frames" if traced.together > 1 else ""
    terminal.print(
        f"{what}, {traced.cycles:,} {traced.unit}, {len(traced.pes)} of {traced.pes_used} PEs:"
        f" {output} (open it at https://ui.perfetto.dev)"
    )
