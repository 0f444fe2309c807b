"""`npukit fit`: whether and how a network fits a board, before anything is compiled."""

from __future__ import annotations

from pathlib import Path

from npukit.cli.options import (
    ActivationRanges,
    Aim,
    AsJson,
    BoardName,
    Calibration,
    InFloat,
    InputShapes,
    KeepFloat,
    Model,
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
from npukit.errors import DoesNotFit


def fit(
    model: Model,
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
    as_json: AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Say whether a model fits a board: engines, PEs, memory, predicted cycles; or what is missing and what helps."""
    with open_terminal(as_json, verbose, quiet) as terminal:
        from npukit import api

        options = api.Options(
            pes=pes,
            engine=engine,
            objective=objective,
            plan=plan,
            strict=strict,
            input_shapes=parsed_shapes(shapes),
            calibration=calibration,
            ranges=ranges,
            preprocess=tuple(preprocess or ()),
            postprocess=tuple(postprocess or ()),
            in_float=in_float,
            keep_float=tuple(keep_float or ()),
        )
        try:
            summary = api.fit(model, board=board, options=options, progress=terminal)
        except DoesNotFit as error:
            terminal.result(_refusal(model, board, error))
            raise
        terminal.result(summary)
        show_summary(terminal, summary)


def _refusal(model: Path, board: str, error: DoesNotFit) -> dict[str, object]:
    return {"model": model.stem, "board": board, "fits": False, "fault": error.message, "remedies": list(error.tries)}
