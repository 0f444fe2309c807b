"""`npukit emulate`: an emulated board behind a port."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from npukit.cli.options import BuildFolder, target, verb
from npukit.cli.terminal import Terminal


@verb(plugins=True)
def emulate(
    terminal: Terminal,
    build: BuildFolder,
    port: Annotated[
        int | None,
        target("--port", min=0, max=65535, metavar="N", help="A TCP port, 0 for any free one. Default: a pty."),
    ] = None,
    flash: Annotated[
        Path | None, target("--flash", metavar="FILE", help="Keep the board's flash in this file.")
    ] = None,
    new: Annotated[
        bool,
        target("--new", help="A new board: empty flash, and no key whose images it accepts."),
    ] = False,
) -> None:
    """Run a build on an emulated board behind a serial port, until Ctrl-C.

    Other programs open the port like that of a board: flash, validate --on, monitor, serve, or your own.
    """
    try:
        from npukit import api

        built = api.load_linked(build)
        with api.emulate(built, port=port, flash=flash, new=new, progress=terminal) as line:
            terminal.result({"port": line.port, "board": built.board.name, "build_id": built.manifest.build_id})
            terminal.made(line.port, f"{built.board.name} at {line.port}, until Ctrl-C")
            verb = f"flash {build} --provision --port" if new else f"validate {build} --on"
            terminal.note(f"next, in another terminal: npukit {verb} {line.port}")
            line.wait()
    except KeyboardInterrupt:
        terminal.finish()
        terminal.note(f"stopped; the board's flash is {f'kept in {flash}' if flash else 'lost: --flash FILE keeps it'}")
