"""`npukit validate`: proves a build bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.options import AsJson, BuildFolder, Faults, Inputs, On, Quiet, Verbose, open_terminal
from npukit.cli.summary import keep_in_report

if TYPE_CHECKING:
    from npukit.measure.validate import Mismatch


def validate(
    build: BuildFolder,
    on: On = None,
    inputs: Inputs = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="ARRAY", help="Compare with this array of the inputs' file.")
    ] = None,
    cases: Annotated[int | None, typer.Option("--cases", min=1, metavar="N", help="Only the first N cases.")] = None,
    faults: Faults = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run a build and compare every output and layer with the reference, bit for bit."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api
        from npukit.errors import DoesNotFit

        found = api.validate(build, on=on, inputs=inputs, expect=expect, cases=cases, faults=faults, progress=terminal)
        terminal.result(found.to_json())
        keep_in_report(terminal, api.load(build), validation=found.to_json())
        if not found.passed:
            raise DoesNotFit(_first(found.mismatches), tries=_WAYS)
        terminal.print(
            f"{found.cases} cases on {found.engine}: equal bit for bit"
            f" ({found.layers_checked} layers in {found.tiles_checked} tiles checked)"
        )
        if found.accuracy is not None:
            terminal.print(f"{found.accuracy:.1%} of the labels are right")


_WAYS = (
    "npukit validate BUILD --json lists the mismatches",
    "npukit build MODEL --engine cpu, to see if it lies there",
)


def _first(mismatches: tuple[Mismatch, ...]) -> str:
    first = mismatches[0]
    where = f"{first.tensor}{list(first.index)}" if first.index else f"the CRC-32 of {first.tensor}{first.box}"
    return f"case {first.case}, PE {first.pe}: {where} is {first.got}, the reference says {first.want}"
