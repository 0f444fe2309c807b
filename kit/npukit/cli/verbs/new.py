"""`npukit new`: skeletons to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.help import Verb, Verbs
from npukit.cli.options import output as output_option
from npukit.cli.options import verb
from npukit.cli.terminal import Terminal

Name = Annotated[str, typer.Argument(metavar="NAME", rich_help_panel="Model", help="Small letters, digits and _.")]
Output = Annotated[
    Path | None, output_option("-o", "--output", metavar="FOLDER", help="Folder to write. Default: NAME.")
]

new = typer.Typer(cls=Verbs, help="Start an accelerator, a board or a key of your own.", no_args_is_help=True)


@new.command(cls=Verb, epilog="Example: npukit new accelerator my_npu")
@verb()
def accelerator(
    terminal: Terminal,
    name: Name,
    output: Output = None,
    rtl: Annotated[bool, output_option("--rtl", help="Also write the device in Verilog, for --on rtl.")] = False,
) -> None:
    """Write a working plug-in for an accelerator: board file, C driver, stand-in, emulator model, tests."""
    from npukit.skeleton import MODEL, new_accelerator

    folder = output or Path(name)
    _tell(terminal, name, folder, new_accelerator(name, folder, rtl=rtl), str(folder / MODEL))


@new.command(cls=Verb, epilog="Example: npukit new board my_board")
@verb()
def board(terminal: Terminal, name: Name, output: Output = None) -> None:
    """Write a working board: its file, and the C of its clock and link. It runs as the same board of QEMU does."""
    from npukit.skeleton import new_board

    folder = output or Path(name)
    _tell(terminal, name, folder, new_board(name, folder))


def _tell(terminal: Terminal, name: str, folder: Path, files: list[Path], model: str = "MODEL") -> None:
    terminal.result({"name": name, "folder": str(folder), "files": [str(path) for path in files]})
    terminal.made(folder, f"wrote {folder}; next: npukit build {model} --board {folder / name}.toml -o out")
