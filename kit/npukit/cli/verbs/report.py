"""`npukit report`: the page about a build, or about two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from npukit.cli.options import BuildFolder, model, verb
from npukit.cli.options import output as output_option
from npukit.cli.terminal import Terminal


@verb()
def report(
    terminal: Terminal,
    build: BuildFolder,
    compare: Annotated[Path | None, model("--compare", metavar="BUILD", help="Another build to compare with.")] = None,
    output: Annotated[
        Path | None, output_option("-o", "--output", metavar="FILE.html", help="File for the page of two builds.")
    ] = None,
) -> None:
    """Write the report of a build again, with all its results; or a page that compares two builds."""
    from npukit import api

    page = api.write_report(build, compare=compare, output=output)
    terminal.result({"report": str(page)})
    terminal.made(page)
