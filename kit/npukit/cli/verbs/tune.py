"""`npukit tune`: search by measurement for faster kernels, loops and layouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from npukit.cli.options import BoardKey, BuildFolder, On, Tracker, advanced, output, verb
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.tuner.session import Tuned


@verb(plugins=True, tables=True, left="the trials are kept, the build is unchanged: the next tune continues from there")
def tune(
    terminal: Terminal,
    build: BuildFolder,
    on: On = None,
    budget: Annotated[
        int, advanced("--budget", min=0, metavar="SECONDS", help="Time after which no trial begins.")
    ] = 300,
    database: Annotated[
        Path | None,
        output("--database", metavar="FILE", help="Records. Default: $NPUKIT_TUNED, or a file in the user's cache."),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        advanced("--merge", metavar="FILE", help="First add the records of this file. Repeatable."),
    ] = None,
    tracker: Tracker = None,
    key: BoardKey = None,
) -> None:
    """Measure alternative kernels, loops and layouts, keep the best for future builds, and build again."""
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
    terminal.table(("kind", "layers", ">before", ">now", "choice"), rows)
    gain = f"{tuned.before / tuned.after:.2f} times as fast" if tuned.after < tuned.before else "nothing faster found"
    terminal.made(
        tuned.database,
        f"{tuned.before:,} -> {tuned.after:,} {tuned.unit} a frame, {gain}; {tuned.trials} trials in"
        f" {tuned.seconds:g} s; kept in {tuned.database}",
    )
