"""`npukit validate`: proves a build bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from npukit.cli.networks import chosen_network, refuse_for_several
from npukit.cli.options import BuildFolder, Faults, Inputs, Modified, Network, On, Stream, verb
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.measure.validate import Validation
    from npukit.project.build_folder import Build


@verb(plugins=True, left="nothing is written")
def validate(
    terminal: Terminal,
    build: BuildFolder,
    network: Network = None,
    on: On = None,
    inputs: Inputs = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="ARRAY", help="Compare with this array of the inputs' file.")
    ] = None,
    cases: Annotated[int | None, typer.Option("--cases", min=1, metavar="N", help="Only the first N cases.")] = None,
    stream: Stream = False,
    faults: Faults = None,
    schedule: Annotated[
        int | None,
        typer.Option("--schedule", min=1, metavar="SEED", help="Only under the schedule of a seed: messages are late."),
    ] = None,
    modified: Modified = False,
) -> None:
    """Run a build as deployed and observed, and compare every output and layer with the reference, bit for bit.

    Of several networks side by side, each is compared while the others run too.
    """
    from npukit import api

    build = chosen_network(build, network)
    if networks := api.load_networks(build, modified=modified):
        refuse_for_several(build, "--inputs, --expect, --stream and --faults", inputs, expect, stream, faults)
        show_modified(terminal, *networks.values())
        _validate_networks(networks, on, cases, schedule, terminal)
        return
    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    found = api.validate(
        built,
        on=on,
        inputs=inputs,
        expect=expect,
        cases=cases,
        stream=stream,
        faults=faults,
        schedule=schedule,
        progress=terminal,
    )
    terminal.result({**found.to_json(), **told_of(built)})
    _show(terminal, found)
    if found.accuracy is not None:
        terminal.print(f"{found.accuracy:.1%} of the labels are right")


def _validate_networks(
    builds: Mapping[str, Build], on: str | None, cases: int | None, schedule: int | None, terminal: Terminal
) -> None:
    from npukit import api

    found = api.validate_networks(builds, on=on, cases=cases, schedule=schedule, progress=terminal)
    told = {name: {"name": name, **each.to_json()} for name, each in found.items()}
    terminal.result({"networks": [{**told[name], **told_of(builds[name])} for name in told]})
    for name, each in found.items():
        _show(terminal, each, f"network {name}: ")


def _show(terminal: Terminal, found: Validation, of: str = "") -> None:
    """Print the result, or raise an error if outputs differ."""
    from npukit.errors import DoesNotFit

    if not found.passed:
        raise DoesNotFit(f"{of}{_differs(found)}", tries=_WAYS)
    if found.layers_checked:
        terminal.print(
            f"{of}{found.cases} cases on {found.engine}, deployed and observed: equal bit for bit"
            f" ({found.layers_checked} layers in {found.tiles_checked} tiles checked)"
        )
    if told := _of_schedules(found):
        terminal.print(f"{of}{told}")


def _of_schedules(found: Validation) -> str:
    """Schedules of deployed frames in words; empty where nothing runs at the same time."""
    if not found.schedules:
        return "" if found.engine == "emulator" else "under one schedule: only the built-in emulator has others"
    first, last = found.schedules[0], found.schedules[-1]
    named = f"schedule {first}" if first == last else f"schedules {first} to {last}"
    return f"deployed under {named}, with messages and PEs late: equal bit for bit"


_WAYS = (
    "npukit validate BUILD --json lists the mismatches",
    "npukit build MODEL --engine cpu, to see if it lies there",
)


def _differs(found: Validation) -> str:
    first = f"{found.mismatches[0]}"
    return first if found.paths_equal else f"the deployed and the observed path of this build differ: {first}"
