"""`npukit export`: the network as a C library for other firmware."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from npukit.cli.options import BuildFolder, advanced, verb
from npukit.cli.options import output as output_option
from npukit.cli.terminal import Terminal


@verb(plugins=True, left="no folder is written")
def export(
    terminal: Terminal,
    build: BuildFolder,
    output: Annotated[
        Path,
        output_option("-o", "--output", metavar="FOLDER|FILE.tar", help="Folder to write; .tar: Model Library Format."),
    ],
    portable: Annotated[bool, advanced("--portable", help="Plain C for any core, without assembly.")] = False,
    labels: Annotated[
        Path | None, output_option("--labels", metavar="FILE", help="Names of the output's values, one a line.")
    ] = None,
    spec: Annotated[
        bool, advanced("--spec", help="Write an image of each PE's memory, and the messages in spec.json, not C.")
    ] = False,
    force: Annotated[bool, output_option("--force", help="Replace an earlier library of npukit.")] = False,
) -> None:
    """Write the network of a build as C sources for other firmware, with the drivers of its accelerators.

    Compiled with -DACCELERATOR_HOOKS, a driver calls three functions of that firmware: accelerator_wait, where an RTOS
    blocks, and accelerator_before and accelerator_after for a data cache. -DBOARD_NAME_BASE=ADDRESS moves the driver's
    registers.
    """
    from npukit import api

    if spec:
        files = api.export_spec(build, output, force=force)
        terminal.result({"output": str(output), "kind": "spec", "files": files})
        terminal.made(output, f"spec.json and {len(files) - 1} memory images: {output}")
        return
    exported = api.export(build, output, portable=portable, labels=labels, force=force, progress=terminal)
    terminal.result(exported.to_json())
    terminal.made(
        output,
        f"{exported.name} ({exported.kind}): {exported.arena_bytes:,} bytes of RAM,"
        f" {exported.constant_bytes:,} of constants: {output}",
    )
