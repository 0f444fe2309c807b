"""Data folders: npukit's, beside the package in a wheel or at the top of a checkout, and those of plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

PLUGINS = "npukit.accelerators"
"""The entry point group of plug-ins. An entry has the accelerator's name, and its object makes the plug-in."""

_APART = {"mla": "npukit_mla", "spinnaker2": "npukit_mla", "spinnaker2-48": "npukit_mla"}
"""Accelerators and boards in packages of npukit's sources that are installed by themselves."""


def ways_to_install(name: str) -> list[str]:
    """The installation of an accelerator or board of npukit's sources, or none."""
    return [f"pip install ./kit/{_APART[name]}, in the folder of npukit's sources"] if name in _APART else []


def data_folder(name: str) -> Path:
    """The folder `templates`, `firmware`, `boards` or `rtl`."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parents[1] / name


def board_folders() -> Iterator[Path]:
    """The folders of board files: npukit's, then the folder `boards` of each installed plug-in."""
    yield data_folder("boards")
    packages = {point.module.partition(".")[0] for point in entry_points(group=PLUGINS)}
    for spec in filter(None, map(find_spec, sorted(packages))):
        yield from (Path(folder) / "boards" for folder in spec.submodule_search_locations or ())
