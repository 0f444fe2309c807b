"""`npukit build`: a model file becomes firmware."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from npukit.cli.networks import networks_of, one_of, show_networks
from npukit.cli.options import (
    ActivationRanges,
    Aim,
    AsJson,
    BoardName,
    Calibration,
    InFloat,
    InputShapes,
    KeepFloat,
    Models,
    Objective,
    OnlyEngine,
    OwnPlan,
    Pes,
    Postprocess,
    Preprocess,
    Quiet,
    Ranges,
    Strict,
    Verbose,
    open_terminal,
    parsed_shapes,
)
from npukit.cli.summary import show_summary


class Compiler(StrEnum):
    GCC = "gcc"
    ZIG = "zig"


def build(
    models: Models,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FOLDER", help="The build folder to leave.")],
    board: BoardName = "pe-mesh",
    pes: Pes = None,
    engine: OnlyEngine = None,
    objective: Aim = Objective.LATENCY,
    plan: OwnPlan = None,
    strict: Strict = False,
    shapes: InputShapes = None,
    calibration: Calibration = None,
    ranges: ActivationRanges = Ranges.MINMAX,
    preprocess: Preprocess = None,
    postprocess: Postprocess = None,
    in_float: InFloat = False,
    keep_float: KeepFloat = None,
    toolchain: Annotated[
        Compiler | None, typer.Option("--toolchain", help="By default gcc if it is on the PATH, else zig.")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Compile a model for a board, or several side by side: plan, C project, images, report."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api

        networks = networks_of(models, pes)
        options = api.Options(
            pes=networks[0].pes if one_of(models) else None,
            engine=engine,
            objective=objective,
            plan=plan,
            strict=strict,
            toolchain=toolchain,
            input_shapes=parsed_shapes(shapes),
            calibration=calibration,
            ranges=ranges,
            preprocess=tuple(preprocess or ()),
            postprocess=tuple(postprocess or ()),
            in_float=in_float,
            keep_float=tuple(keep_float or ()),
        )
        if one_of(models):
            told = api.build(models[0], board=board, output=output, options=options, progress=terminal).manifest.summary
            show = show_summary
        else:
            api.build_networks(networks, board=board, output=output, options=options, progress=terminal)
            told, show = api.networks_summary(output), show_networks
        terminal.result(told)
        show(terminal, told)
        terminal.note(f"built {output}; next: npukit validate {output}")
