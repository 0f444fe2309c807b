"""`npukit new`: skeletons to go on from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal

new = typer.Typer(help="Start something of your own from a working skeleton.", no_args_is_help=True)


@new.command(epilog="Example: npukit new accelerator my_npu")
@verb()
def accelerator(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits and _.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where; a folder NAME by default.")
    ] = None,
) -> None:
    """A plug-in for an accelerator: board file, C driver, stand-in, emulator model, tests. It works as it is."""
    from npukit.accel.skeleton import new_accelerator

    folder = output or Path(name)
    files = new_accelerator(name, folder)
    terminal.result({"name": name, "folder": str(folder), "files": [str(path) for path in files]})
    terminal.note(f"wrote {folder}; next: npukit build MODEL --board {folder / name}.toml -o out")
