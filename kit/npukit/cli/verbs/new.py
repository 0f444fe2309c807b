"""`npukit new`: skeletons to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import verb
from npukit.cli.terminal import Terminal

Name = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits and _.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Where; a folder NAME by default.")
]

new = typer.Typer(help="Start something of your own from a working skeleton.", no_args_is_help=True)


@new.command(epilog="Example: npukit new accelerator my_npu")
@verb()
def accelerator(terminal: Terminal, name: Name, output: Output = None) -> None:
    """A plug-in for an accelerator: board file, C driver, stand-in, emulator model, tests. It works as it is."""
    from npukit.skeleton import MODEL, new_accelerator

    folder = output or Path(name)
    _tell(terminal, name, folder, new_accelerator(name, folder), str(folder / MODEL))


@new.command(epilog="Example: npukit new board my_board")
@verb()
def board(terminal: Terminal, name: Name, output: Output = None) -> None:
    """A board of your own: its file, and the C of its clock and link. It works as it is, as its twin in QEMU."""
    from npukit.skeleton import new_board

    folder = output or Path(name)
    _tell(terminal, name, folder, new_board(name, folder))


def _tell(terminal: Terminal, name: str, folder: Path, files: list[Path], model: str = "MODEL") -> None:
    terminal.result({"name": name, "folder": str(folder), "files": [str(path) for path in files]})
    terminal.note(f"wrote {folder}; next: npukit build {model} --board {folder / name}.toml -o out")
