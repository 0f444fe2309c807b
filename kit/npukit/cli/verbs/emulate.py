"""`npukit emulate`: an emulated board behind a port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import BuildFolder, verb
from npukit.cli.terminal import Terminal


@verb(plugins=True)
def emulate(
    terminal: Terminal,
    build: BuildFolder,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="N", help="A TCP port here, 0 for any; else a pty."),
    ] = None,
    flash: Annotated[
        Path | None, typer.Option("--flash", metavar="FILE", help="Keep the board's flash in this file.")
    ] = None,
    new: Annotated[
        bool,
        typer.Option("--new", help="From the factory: nothing in its flash, and it takes no image yet."),
    ] = False,
) -> None:
    """Run a build on an emulated board behind a serial port, until Ctrl-C.

    Other programs open that port as they would a board's: `flash`, `validate --on`, `monitor`, `serve`, or your own.
    """
    try:
        from npukit import api

        built = api.load_linked(build)
        with api.emulate(built, port=port, flash=flash, new=new, progress=terminal) as line:
            terminal.result({"port": line.port, "board": built.board.name, "build_id": built.manifest.build_id})
            terminal.print(f"{built.board.name} at {line.port}, until Ctrl-C")
            verb = f"flash {build} --provision --port" if new else f"validate {build} --on"
            terminal.note(f"next, in another terminal: npukit {verb} {line.port}")
            line.wait()
    except KeyboardInterrupt:
        terminal.finish()
        terminal.note(f"stopped; the board's flash is {f'kept in {flash}' if flash else 'gone: --flash FILE keeps it'}")
