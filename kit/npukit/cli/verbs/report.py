"""`npukit report`: the page about a build, or about two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.options import BuildFolder, verb
from npukit.cli.terminal import Terminal


@verb()
def report(
    terminal: Terminal,
    build: BuildFolder,
    compare: Annotated[
        Path | None, typer.Option("--compare", metavar="BUILD", help="Another build, to stand beside this one.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Where the page of two builds goes.")
    ] = None,
) -> None:
    """Write the report of a build again, with all that is known of it; or a page that compares two builds."""
    from npukit import api

    page = api.write_report(build, compare=compare, output=output)
    terminal.result({"report": str(page)})
    terminal.print(str(page))
