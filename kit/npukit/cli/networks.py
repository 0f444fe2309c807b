"""Several networks side by side: their names on the command line, and their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from npukit.cli.summary import show_summary
from npukit.cli.terminal import Terminal
from npukit.errors import NpukitError
from npukit.options import Network


def networks_of(models: Sequence[Path], pes: Sequence[int] | None) -> list[Network]:
    """Each model with a name (of the file, or NAME of NAME=MODEL) and a number of PEs."""
    counts: list[int | None] = list(pes or ()) or [None]
    if len(counts) not in (1, len(models)):
        raise NpukitError(
            f"{len(models)} models and {len(counts)} times --pes", tries=["--pes once for all, or once for each model"]
        )
    counts = counts if len(counts) > 1 else counts * len(models)
    return [Network(*_named(model), pes=count) for model, count in zip(models, counts, strict=True)]


def one_of(models: Sequence[Path]) -> bool:
    """True for a single network, which has the board alone."""
    return len(models) == 1 and _named(models[0])[1] == models[0]


def show_networks(terminal: Terminal, told: Mapping[str, Any], next_step: str) -> None:
    """Print the summary of each network."""
    terminal.print(f"fits: {len(told['networks'])} networks on {told['pes_used']} PEs of {told['board']}")
    terminal.print(f"next: {next_step}")
    for network in told["networks"]:
        terminal.print()
        terminal.print(f"network {network['name']}")
        show_summary(terminal, network)


def chosen_network(build: Path, network: str | None) -> Path:
    """Folder of the chosen network."""
    from npukit.api import load_networks

    if network is None:
        return build
    known = load_networks(build, modified=True)
    if network not in known:
        raise NpukitError(
            f"{build} has no network {network}",
            tries=[f"--network {name}" for name in known] or ["without --network: it is the build of one network"],
        )
    return build / network


def refuse_for_several(build: Path, options: str, *given: object) -> None:
    """NpukitError if any of the options is given: they apply to a single network."""
    if any(given):
        raise NpukitError(f"{build} has several networks, and {options} are about one", tries=["--network NAME"])


def refuse_dump_of_several(dump: Path | None) -> None:
    """NpukitError if a dump of several models is requested."""
    if dump is not None:
        raise NpukitError("--dump is about one model", tries=["npukit build with --dump for each model"])


def _named(model: Path) -> tuple[str, Path]:
    name, equals, file = str(model).partition("=")
    return (name, Path(file)) if equals and not model.exists() else (model.stem, model)
