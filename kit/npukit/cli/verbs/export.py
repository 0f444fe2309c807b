"""`npukit export`: the network as a C library for other firmware."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import BuildFolder, verb
from npukit.cli.terminal import Terminal


@verb(plugins=True, left="no folder is written")
def export(
    terminal: Terminal,
    build: BuildFolder,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER|FILE.tar", help="A folder; .tar for Model Library Format."),
    ],
    portable: Annotated[
        bool, typer.Option("--portable", help="Plain C for any core, instead of the build's kernels in assembly.")
    ] = False,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="FILE", help="Names of the output's values, one a line.")
    ] = None,
    spec: Annotated[
        bool, typer.Option("--spec", help="Instead: each PE's memory, and a spec.json of what is sent and read.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a library that npukit wrote there before.")] = False,
) -> None:
    """Write the network of a build as C sources to drop into one's own firmware, with the drivers of its accelerators.

    A driver's hooks, compiled with -DACCELERATOR_HOOKS, are three functions of that firmware: accelerator_wait, where
    an RTOS blocks, accelerator_before and accelerator_after for a data cache. -DBOARD_NAME_BASE=ADDRESS moves it.
    """
    from npukit import api

    if spec:
        files = api.export_spec(build, output, force=force)
        terminal.result({"output": str(output), "kind": "spec", "files": files})
        terminal.print(f"spec.json and {len(files) - 1} memory images: {output}")
        return
    exported = api.export(build, output, portable=portable, labels=labels, force=force, progress=terminal)
    terminal.result(exported.to_json())
    terminal.print(
        f"{exported.name} ({exported.kind}): {exported.arena_bytes:,} bytes of RAM,"
        f" {exported.constant_bytes:,} of constants: {output}"
    )
