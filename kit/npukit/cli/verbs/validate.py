"""`npukit validate`: proves a build bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

from npukit.cli.networks import chosen_network, refuse_for_several
from npukit.cli.options import BuildFolder, Faults, Inputs, Modified, Network, On, Stream, advanced, model, verb
from npukit.cli.summary import show_modified, told_of
from npukit.cli.terminal import Terminal

if TYPE_CHECKING:
    from npukit.measure.validate import Validation
    from npukit.project.build_folder import Build


TileOf = Annotated[
    str | None,
    advanced(
        "--waves",
        metavar="TILE",
        help="With --on rtl: write waveforms. PE:LAYER or PE:LAYER@CASE; or cycles of this run, PE:FIRST-LAST.",
    ),
]


@verb(plugins=True, left="nothing is written")
def validate(
    terminal: Terminal,
    build: BuildFolder,
    network: Network = None,
    on: On = None,
    inputs: Inputs = None,
    expect: Annotated[
        str | None, model("--expect", metavar="ARRAY", help="Compare with this array of the inputs' file.")
    ] = None,
    cases: Annotated[int | None, model("--cases", min=1, metavar="N", help="Only the first N cases.")] = None,
    stream: Stream = False,
    faults: Faults = None,
    schedule: Annotated[
        int | None,
        advanced("--schedule", min=1, metavar="SEED", help="Only one schedule of delayed messages, by its seed."),
    ] = None,
    waves: TileOf = None,
    modified: Modified = False,
) -> None:
    """Run a build, and compare every output and layer with the integer reference, bit for bit.

    Each frame runs as deployed, and again with its layers observed. Networks side by side are compared while all run.
    """
    from npukit import api

    build = chosen_network(build, network)
    if networks := api.load_networks(build, modified=modified):
        options = "--inputs, --expect, --stream, --faults and --waves"
        refuse_for_several(build, options, inputs, expect, stream, faults, waves)
        show_modified(terminal, *networks.values())
        _validate_networks(networks, on, cases, schedule, terminal)
        return
    built = api.load(build, modified=modified)
    show_modified(terminal, built)
    given = {"inputs": inputs, "expect": expect, "cases": cases, "stream": stream, "schedule": schedule}
    again = _command(build, {"board": terminal.plugins_of, "on": on, **given, "modified": modified})
    with _naming_waves(again):
        found = api.validate(built, on=on, faults=faults, waves=waves, progress=terminal, **given)
    terminal.result({**found.to_json(), **told_of(built)})
    _show(terminal, found, again=again)
    for file in found.waves or ():
        terminal.print(f"waveform: {file}")
    if found.accuracy is not None:
        terminal.print(f"accuracy: {found.accuracy:.1%} of the labels")


def _validate_networks(
    builds: Mapping[str, Build], on: str | None, cases: int | None, schedule: int | None, terminal: Terminal
) -> None:
    from npukit import api

    found = api.validate_networks(builds, on=on, cases=cases, schedule=schedule, progress=terminal)
    told = {name: {"name": name, **each.to_json()} for name, each in found.items()}
    terminal.result({"networks": [{**told[name], **told_of(builds[name])} for name in told]})
    for name, each in found.items():
        _show(terminal, each, f"network {name}: ")


def _command(build: Path, given: Mapping[str, object]) -> str:
    """The command of this run."""
    words = ((f"--{name}",) if value is True else (f"--{name}", str(value)) for name, value in given.items() if value)
    return join(["npukit", "validate", str(build), *chain(*words)])


@contextmanager
def _naming_waves(again: str) -> Iterator[None]:
    """Name the command for waveforms of the work in which RTL and model differ."""
    from npukit.emulator.faults import CoreFault

    try:
        yield
    except CoreFault as error:
        if error.cycles:
            first, last = error.cycles
            error.tries = (f"{again} --waves {error.pe}:{first}-{last}",)
        raise


def _show(terminal: Terminal, found: Validation, of: str = "", again: str = "npukit validate BUILD") -> None:
    """Print the result, or raise an error if outputs differ."""
    from npukit.errors import Differs
    from npukit.measure.target import RTL
    from npukit.measure.validate import CASES

    if not found.passed:
        differs = "" if found.paths_equal else "the deployed and the observed path of this build differ: "
        right = "npukit build MODEL --engine cpu: right without the accelerator?"
        if (first := found.mismatches[0]).by == CASES:
            right = f"--expect ARRAY: another array of the file; case {first.case} equals the integer reference"
        ways = ["npukit validate BUILD --json lists the mismatches", right]
        if found.engine == RTL and first.box:
            ways.append(f"{again} --waves {first.pe}:{first.tensor}{f'@{first.case}' if first.case else ''}")
        raise Differs(f"{of}{differs}{first}", tries=ways)
    if found.layers_checked:
        terminal.print(
            f"{of}equal bit for bit: {found.cases} case{'s' * (found.cases != 1)} on {found.engine}"
            f" ({found.layers_checked:,} layers in {found.tiles_checked:,} tiles)"
        )
    if told := _of_schedules(found):
        terminal.print(f"{of}{told}")
    for told in _of_rtl(found):
        terminal.print(f"{of}{told}")


def _of_rtl(found: Validation) -> tuple[str, ...]:
    """The parts in RTL, and their work."""
    if found.rtl_parts is None:
        return ()
    if not found.rtl_works and not found.rtl_messages:
        return ("nothing ran in RTL: every layer runs on the core, and nothing was sent",)
    messages = "" if found.rtl_messages is None else f" and {found.rtl_messages:,} messages"
    told = f"{found.rtl_works:,} works{messages}: bytes and cycles equal to the manual's models"
    return f"in RTL: {', '.join(found.rtl_parts)}", told


def _of_schedules(found: Validation) -> str:
    """Schedules of deployed frames in words; empty where nothing runs at the same time."""
    from npukit.measure.target import C_MODELS, RTL

    if not found.schedules:
        return (
            "" if found.engine in (C_MODELS, RTL) else "one schedule only: other schedules need the built-in emulator"
        )
    first, last = found.schedules[0], found.schedules[-1]
    named = f"schedule {first}" if first == last else f"schedules {first} to {last}"
    late = "PEs" if found.rtl_messages is not None else "messages and PEs"
    return f"{named}, with late {late}: equal bit for bit"
