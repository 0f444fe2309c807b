"""Builds that several end-to-end tests use."""

from __future__ import annotations

from pathlib import Path

from helpers import CHECKOUT
from npukit import api
from npukit.project.build_folder import Build

DIGITS = CHECKOUT / "examples/digits"


def build(model: Path, folder: Path, board: str = "pe-mesh", **options: object) -> Build:
    """The model built into `folder`."""
    return api.build(model, board=board, output=folder, options=api.Options(**options))  # pyright: ignore[reportArgumentType]
