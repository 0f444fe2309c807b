"""`npukit trace`: the activity of every PE over time, for ui.perfetto.dev."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from npukit.cli.options import BuildFolder, Modified, On, model, target, verb
from npukit.cli.options import output as output_option
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal


@verb(plugins=True, left="no trace is written")
def trace(
    terminal: Terminal,
    build: BuildFolder,
    output: Annotated[Path, output_option("-o", "--output", metavar="FILE.json", help="File to write.")],
    on: On = None,
    frames: Annotated[int, model("--frames", min=1, metavar="N", help="Frames to run.")] = 1,
    pes: Annotated[
        str | None,
        target("--pes", metavar="0-3,8", help="PEs to record. Default: at most 64, spread over the mesh."),
    ] = None,
    modified: Modified = False,
) -> None:
    """Record frames cycle by cycle for ui.perfetto.dev: kernels, accelerators, messages, links, SRAM.

    Other targets than the built-in emulator record the steps of each PE, in a build with --trace.
    """
    from npukit import api

    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    traced = api.trace(built, output, on=on, frames=frames, pes=pes, progress=terminal)
    terminal.result({**traced.to_json(), **told_of(built)})
    if traced.overwritten:
        terminal.note(f"{traced.overwritten:,} earlier events were overwritten: trace fewer frames at a time")
    one, several = ("frame", "frames") if traced.together == 1 else ("batch", "batches")
    what = f"{traced.frames} {several if traced.frames > 1 else one}"
    what += f" of {traced.together} frames" if traced.together > 1 else ""
    terminal.made(
        output,
        f"{what}, {traced.cycles:,} {traced.unit}, {len(traced.pes)} of {traced.pes_used} PEs:"
        f" {output} (open it at https://ui.perfetto.dev)",
    )
