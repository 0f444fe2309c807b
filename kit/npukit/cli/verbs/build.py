"""`npukit build`: a model file becomes firmware."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from npukit.cli.networks import networks_of, one_of, refuse_dump_of_several, show_networks
from npukit.cli.next_step import next_step
from npukit.cli.options import Models, PlanOptions, advanced, verb
from npukit.cli.options import output as output_option
from npukit.cli.summary import show_summary
from npukit.cli.terminal import Terminal


class Compiler(StrEnum):
    GCC = "gcc"
    ZIG = "zig"


@verb(tables=True, left="no folder is written; an existing one is unchanged")
def build(
    terminal: Terminal,
    models: Models,
    output: Annotated[Path, output_option("-o", "--output", metavar="FOLDER", help="Build folder to write.")],
    given: PlanOptions,
    toolchain: Annotated[
        Compiler | None,
        advanced("--toolchain", metavar="|".join(Compiler), help="Compiler. Default: gcc if installed, else zig."),
    ] = None,
    sign: Annotated[
        Path | None, output_option("--sign", metavar="KEY.pem", help="Sign the build as its maker (npukit new key).")
    ] = None,
    dump: Annotated[
        Path | None,
        advanced(
            "--dump",
            metavar="FOLDER",
            help="Write every step from model to plan: the Relax module, the net after each pass, the plans compared.",
        ),
    ] = None,
    check: Annotated[
        bool | None,
        advanced(
            "--check/--no-check",
            help="Run a round on the emulator, and keep no build with a wrong output. Default: if it takes seconds.",
        ),
    ] = None,
) -> None:
    """Compile a model, or several side by side, for a board: plan, C project, images, report."""
    from npukit import api
    from npukit.board.board import load_board
    from npukit.cli.passphrase import asked_passphrase

    networks, board = networks_of(models, given.pes), given.board
    options = given.options(networks[0].pes if one_of(models) else None, toolchain)
    if one_of(models):
        built = api.build(
            models[0], board=board, output=output, options=options, dump=dump, check=check, progress=terminal
        )
        told, show, hardware = built.manifest.summary, show_summary, built.only_on_hardware
    else:
        refuse_dump_of_several(dump)
        api.build_networks(networks, board=board, output=output, options=options, check=check, progress=terminal)
        told, show, hardware = api.networks_summary(output), show_networks, None
    if sign:
        api.sign(output, sign, asked_passphrase)
    terminal.result(told)
    terminal.made(output, f"built: {output}; {_checked(told['networks'][0] if 'networks' in told else told)}")
    show(terminal, told, next_step(output, load_board(board), hardware))


def _checked(summary: dict[str, Any]) -> str:
    """Line about the build's own check: the frames and tiles compared, or why there was no check."""
    checked = summary["checked"]
    if not checked["on"]:
        return f"not checked: {checked['why']}"
    frames = "1 frame" if checked["cases"] == 1 else f"{checked['cases']} frames"
    return f"checked on {checked['on']}: {frames} in {checked['tiles']} tiles, equal bit for bit"
