"""The plug-ins of a build: their records in the build folder, and the search for them on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npukit.accel.interface import Plugin
from npukit.accel.mac_array.plugin import MacArray
from npukit.accel.plugins import plugin_for
from npukit.board.board import Board
from npukit.codegen.sources import Sources
from npukit.errors import NpukitError
from npukit.project.manifest import AcceleratorRecord

if TYPE_CHECKING:
    from npukit.project.compile import MissingFunction


def record_of(plugin: Plugin) -> AcceleratorRecord:
    """The accelerator's record in the build folder: name, version and digest, never code."""
    model = plugin.model
    return AcceleratorRecord(name=plugin.name, version=plugin.version, model=_digest(model) if model else None)


def without_model(records: Sequence[AcceleratorRecord], board: Board) -> str | None:
    """The name of an accelerator on the board without a model for emulators: only hardware runs the build."""
    here = {slot.name for slot in board.accelerator if slot.base is not None} - {MacArray.name}
    return next((each.name for each in records if each.model is None and each.name in here), None)


def model_for(record: AcceleratorRecord, board: Board) -> Path | None:
    """The emulator's model of an accelerator, from the user's plug-in. None for accelerators built into the emulator.
    Raises an error if the plug-in is missing, or differs from the build's."""
    slot = board.accelerator_named(record.name)
    if record.model is None or slot is None or slot.base is None:
        return None
    plugin = plugin_for(slot, board)
    if plugin.version != record.version:
        raise _other(record, f"it is version {plugin.version} here, and was {record.version}")
    if plugin.model is None or _digest(plugin.model) != record.model:
        raise _other(record, "its model for the emulator is another one here")
    return plugin.model


def rtl_of(record: AcceleratorRecord, board: Board) -> Path | None:
    """The folder of an accelerator in Verilog, from the user's plug-in, or None."""
    slot = board.accelerator_named(record.name)
    if record.model is None or slot is None or slot.base is None:
        return None
    return getattr(plugin_for(slot, board), "rtl", None)


def explain_missing(error: MissingFunction, sources: Sequence[Sources]) -> NpukitError:
    """The error for a function missing from all drivers, with the name of the responsible plug-in."""
    callers = [each.wrappers[error.function] for each in sources if error.function in each.wrappers]
    if not callers:
        return error
    op, plugin = callers[0]
    return NpukitError(
        f"no driver of the plug-in {plugin} has the function {error.function}, which {op} calls",
        tries=[f"the files that the `sources` of {plugin} names", "--engine cpu"],
    )


def _digest(model: Path) -> str:
    """SHA-256 of the model, and of the C files beside it, as the model may include them."""
    digest = hashlib.sha256()
    beside = (path for path in sorted(model.parent.iterdir()) if path.suffix in (".c", ".h") and path != model)
    for path in (model, *beside):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _other(record: AcceleratorRecord, why: str) -> NpukitError:
    return NpukitError(
        f"the plug-in {record.name} is not that of the build: {why}",
        tries=[f"{record.name} {record.version}, installed or by --board FILE", "build again"],
    )
