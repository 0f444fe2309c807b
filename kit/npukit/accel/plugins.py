"""Sources of plug-ins: npukit itself, installed packages, folders or files named in a board file.

A build folder contains only names and versions of accelerators. The plug-ins themselves are installed, or come from a
board file given to this process.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from npukit.accel.checked import Checked, code_of
from npukit.accel.interface import Plugin
from npukit.accel.mac_array.plugin import MacArray
from npukit.board.board import AcceleratorSlot, Board, place_of_figure
from npukit.data import PLUGINS, ways_to_install
from npukit.errors import NpukitError, raised

_ATTRIBUTE = "accelerator"
"""The name of the plug-in's maker in a folder's `__init__.py` or in a Python file."""

Maker = Callable[[AcceleratorSlot], Plugin]

_OWN: Mapping[str, Maker] = {MacArray.name: MacArray}

_NAMED: dict[str, Path] = {}
"""Paths of plug-ins by accelerator name, from the board files given to this process."""


def name_plugins(places: Mapping[str, Path]) -> None:
    """Register paths of plug-ins by accelerator name, also for boards without paths."""
    _NAMED.update(places)


def plugins_in(board: Board) -> dict[str, Path]:
    """The paths of plug-ins in a board file."""
    return {slot.name: slot.plugin for slot in board.accelerator if slot.plugin}


def plugin_for(slot: AcceleratorSlot, board: Board) -> Plugin:
    """The plug-in of an accelerator, made for one board, with every answer checked."""
    make = _maker(slot, board)
    try:
        plugin = make(slot)
    except NpukitError:
        raise
    except Exception as error:
        named = next((figure for figure in slot.figures if f"'{figure}'" in str(error)), "")
        raise NpukitError(
            f"the plug-in {slot.name} does not take its figures of board {board.name}: {raised(error, code_of(make))}",
            tries=[f"look at {place_of_figure(board, slot, named)}"],
        ) from error
    return Checked(plugin, slot.name)


def _maker(slot: AcceleratorSlot, board: Board) -> Maker:
    if slot.plugin is not None:
        return _load(slot.name, slot.plugin)
    if slot.name in _OWN:
        return _OWN[slot.name]
    if slot.name in _NAMED:
        return _load(slot.name, _NAMED[slot.name])
    installed = {point.name: point for point in entry_points(group=PLUGINS)}
    if slot.name not in installed:
        raise NpukitError(
            f"board {board.name} names the accelerator {slot.name}, which no plug-in provides",
            tries=[
                *ways_to_install(slot.name),
                f"one of: {', '.join([*_OWN, *installed])}",
                f"install the package that has the entry point {PLUGINS}: {slot.name}",
                'plugin = "FOLDER" in the board file, and --board FILE for a build of it',
            ],
        )
    point = installed[slot.name]
    try:
        return point.load()
    except Exception as error:
        raise _unloadable(point.name, point.value, error) from error


def _load(name: str, path: Path) -> Maker:
    file = path / "__init__.py" if path.is_dir() else path
    if not file.is_file():
        fact = f"the plug-in {name} should be at {path}, where there is none"
        raise NpukitError(fact, tries=["a path relative to the board file"])
    try:
        return getattr(_module(f"npukit_plugin_{name}", file), _ATTRIBUTE)
    except Exception as error:
        raise _unloadable(name, str(path), error) from error


def _module(name: str, file: Path) -> ModuleType:
    """The file as a module. If the file is a package's `__init__.py`, the modules of the folder are submodules."""
    folder = [str(file.parent)] if file.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folder)
    assert spec is not None
    assert spec.loader is not None
    for stale in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
        del sys.modules[stale]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _unloadable(name: str, where: str, error: Exception) -> NpukitError:
    return NpukitError(
        f"the plug-in {name} ({where}) cannot be loaded: {raised(error, Path(where))}",
        tries=[f"it must define `{_ATTRIBUTE}`, which takes the board's AcceleratorSlot and gives the plug-in"],
    )
