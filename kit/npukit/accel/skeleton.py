"""A new accelerator that works as it is, from `templates/accelerator/`, for a chip maker to go on from."""

from __future__ import annotations

import keyword
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment

from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.net.net import CORE
from npukit.templates import templates_in

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACEHOLDER = "NAME"
_TAKEN = (CORE, "mac_array", "npukit")


def new_accelerator(name: str, folder: Path) -> list[Path]:
    """Write the skeleton of the accelerator `name` into `folder`, which must not be there or be empty."""
    _check(name, folder)
    environment = _environment()
    return [_write(environment, path, name, folder) for path in environment.list_templates(["j2"])]


def _check(name: str, folder: Path) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in _TAKEN:
        raise NpukitError(
            f"{name} cannot be the name of an accelerator",
            tries=[
                "small letters, digits and _, a letter first",
                "a name that Python and npukit do not use themselves",
            ],
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NpukitError(f"{folder} is there already", tries=["another folder with -o", f"remove {folder}"])


def _write(environment: Environment, template: str, name: str, folder: Path) -> Path:
    path = folder / template.replace(_PLACEHOLDER, name).removesuffix(".j2")
    text = environment.get_template(template).render(name=name, board=_board(name))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise NpukitError(f"cannot write {path}: {error.strerror}", tries=["another folder with -o"]) from error
    return path


def _board(name: str) -> str:
    """The reference board's file without its accelerator, under the new name."""
    text = (data_folder("boards") / "pe-mesh.toml").read_text(encoding="utf-8")
    text = text[text.index("name = ") : text.index("[[accelerator]]")]
    for field, value in (("name", f'"{name}"'), ("summary", f'"pe-mesh with {name}"'), ("runs_on", '["emulator"]')):
        text = re.sub(rf"(?m)^{field} = .*$", f"{field} = {value}", text, count=1)
    return f"# npukit's board pe-mesh, with {name} in place of its MAC array.\n{text}"


@cache
def _environment() -> Environment:
    environment = templates_in("accelerator")
    environment.filters["pascal"] = lambda name: "".join(part.capitalize() for part in name.split("_"))
    return environment
