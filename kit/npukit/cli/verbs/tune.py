"""`npukit tune`: search by measurement for faster kernels, loops and mappings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.options import BoardKey, BuildFolder, On, Tracker, verb
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.tuner.session import Tuned


@verb(plugins=True, left="what was tried is kept, and the build is as it was: the next tune goes on from there")
def tune(
    terminal: Terminal,
    build: BuildFolder,
    on: On = None,
    budget: Annotated[
        int, typer.Option("--budget", min=0, metavar="SECONDS", help="Try nothing new after this.")
    ] = 300,
    database: Annotated[
        Path | None,
        typer.Option("--database", metavar="FILE", help="By default $NPUKIT_TUNED or a file in the user's cache."),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option("--merge", metavar="FILE", help="First take over what others have found; repeatable."),
    ] = None,
    tracker: Tracker = None,
    key: BoardKey = None,
) -> None:
    """Measure other kernels, loops and mappings, keep the best for all builds to come, and build again with them."""
    from npukit import api

    tuned = api.tune(
        build,
        on=on,
        budget_seconds=budget,
        database=database,
        merge=merge or (),
        tracker=tracker,
        key=key,
        progress=terminal,
    )
    terminal.result(tuned.to_json())
    _show(terminal, tuned)


def _show(terminal: Terminal, tuned: Tuned) -> None:
    rows = [
        (each.name, ", ".join(each.layers) or "all", f"{each.before:,}", f"{each.after:,}", each.choice)
        for each in tuned.kernels
    ]
    terminal.table(("what", "layers", ">before", ">now", "choice"), rows)
    gain = f"{tuned.before / tuned.after:.2f} times as fast" if tuned.after < tuned.before else "nothing faster found"
    terminal.print(
        f"{tuned.before:,} -> {tuned.after:,} {tuned.unit} a frame, {gain}; {tuned.trials} trials in"
        f" {tuned.seconds:g} s; kept in {tuned.database}"
    )
