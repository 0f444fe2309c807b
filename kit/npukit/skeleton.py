"""Working skeletons to extend: an accelerator, a board."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Literal

from jinja2 import Environment

from npukit.board.board import board_names
from npukit.errors import NpukitError
from npukit.net.net import CORE
from npukit.templates import templates_in

Kind = Literal["accelerator", "board"]

_NAMES = {"accelerator": re.compile(r"[a-z][a-z0-9_]*"), "board": re.compile(r"[a-z][a-z0-9_-]*")}
_PLACEHOLDER = "NAME"
_RTL = "rtl"
"""A part of the names of templates for Verilog only."""
MODEL = "small.tflite"
"""The file of a small model to try a new accelerator with."""


def new_accelerator(name: str, folder: Path, *, rtl: bool = False) -> list[Path]:
    """Write the skeleton of the accelerator `name` into `folder`, a missing or empty folder. `rtl`: also the device in
    Verilog."""
    from npukit.small_net import small_tflite

    written = _new("accelerator", name, folder, {CORE, "mac_array", "npukit"}, rtl=rtl)
    (folder / MODEL).write_bytes(small_tflite())
    return [*written, folder / MODEL]


def new_board(name: str, folder: Path) -> list[Path]:
    """Write the skeleton of the board `name` into `folder`, a missing or empty folder."""
    return _new("board", name, folder, {*board_names()})


def _new(kind: Kind, name: str, folder: Path, taken: set[str], *, rtl: bool = False) -> list[Path]:
    if not _NAMES[kind].fullmatch(name) or keyword.iskeyword(name) or name in taken:
        raise NpukitError(
            f"{name} cannot be the name of {'an' if kind == 'accelerator' else 'a'} {kind}",
            tries=["small letters, digits and _, a letter first", f"a name of its own, not {', '.join(sorted(taken))}"],
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NpukitError(f"{folder} is there already", tries=["another folder with -o"])
    environment = templates_in(kind)
    environment.filters["pascal"] = lambda name: "".join(part.capitalize() for part in name.split("_"))
    files = [path for path in environment.list_templates(["j2"]) if rtl or _RTL not in path]
    return [_write(environment, path, name, folder, rtl=rtl) for path in files]


def _write(environment: Environment, template: str, name: str, folder: Path, *, rtl: bool) -> Path:
    path = folder / template.replace(_PLACEHOLDER, name).removesuffix(".j2")
    text = environment.get_template(template).render(name=name, rtl=rtl)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise NpukitError(f"cannot write {path}: {error.strerror}", tries=["another folder with -o"]) from error
    return path
