"""What a build has of plug-ins, so that it runs where they are not: the emulator's models."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from npukit.accel.interface import Plugin
from npukit.codegen.sources import Sources
from npukit.errors import NpukitError
from npukit.project.compile import MissingFunction
from npukit.project.manifest import AcceleratorRecord

MODELS = "models"


def keep_models(plugins: Iterable[Plugin], folder: Path) -> tuple[AcceleratorRecord, ...]:
    """Copy each plug-in's model into the build folder, and say what it was."""
    return tuple(AcceleratorRecord(name=p.name, version=p.version, model=_kept(p, folder)) for p in plugins)


def _kept(plugin: Plugin, folder: Path) -> str | None:
    if plugin.model is None:
        return None
    home = folder / MODELS / plugin.name
    home.mkdir(parents=True)
    for path in (plugin.model, *sorted(plugin.model.parent.glob("*.h"))):
        shutil.copyfile(path, home / path.name)
    return (home / plugin.model.name).relative_to(folder).as_posix()


def explain_missing(error: MissingFunction, sources: Sequence[Sources]) -> NpukitError:
    """Whose function it is that no driver has."""
    callers = [each.wrappers[error.function] for each in sources if error.function in each.wrappers]
    if not callers:
        return error
    op, plugin = callers[0]
    return NpukitError(
        f"no driver of the plug-in {plugin} has the function {error.function}, which {op} calls",
        tries=[f"the files that the `sources` of {plugin} names", "--engine cpu"],
    )
