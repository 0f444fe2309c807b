"""Builds shared by several tests."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from helpers import CHECKOUT, SHARED, one_at_a_time
from npukit import api
from npukit.project.build_folder import Build

DIGITS = CHECKOUT / "examples/digits"


def build(model: Path, folder: Path, board: str = "pe-mesh", **options: object) -> Build:
    """The model built into `folder`, not shared with other tests."""
    return api.build(model, board=board, output=folder, options=api.Options(**options))  # pyright: ignore[reportArgumentType]


def shared_build(model: Path, folder: Path, board: str = "pe-mesh", **options: object) -> Build:
    """A copy in `folder` of the build that all tests of a run share. Only for builds by an unpatched npukit."""
    told = f"{model.name} {board} {api.Options(**options)}".encode()  # pyright: ignore[reportArgumentType]
    description = Path(board).read_bytes() if Path(board).is_file() else b""
    name = hashlib.sha256(b"\0".join((told, description, model.read_bytes()))).hexdigest()[:16]
    made = Path(os.environ[SHARED]) / name
    with one_at_a_time(made.with_suffix(".lock")):
        if not made.is_dir():
            build(model, made, board, **options)
    return api.load(shutil.copytree(made, folder))
