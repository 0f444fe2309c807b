"""`npukit fit`: whether and how a network fits a board, before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
from npukit.errors import DoesNotFit

if TYPE_CHECKING:
    from npukit.api import Network


def fit(
    models: Models,
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

        networks = networks_of(models, pes)
        options = api.Options(
            pes=networks[0].pes if one_of(models) else None,
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
            if one_of(models):
                told, show = api.fit(models[0], board=board, options=options, progress=terminal), show_summary
            else:
                told = api.fit_networks(networks, board=board, options=options, progress=terminal)
                show = show_networks
        except DoesNotFit as error:
            terminal.result(_refusal(networks, board, error))
            raise
        terminal.result(told)
        show(terminal, told)


def _refusal(networks: Sequence[Network], board: str, error: DoesNotFit) -> dict[str, object]:
    model = ", ".join(network.name for network in networks)
    return {"model": model, "board": board, "fits": False, "fault": error.message, "remedies": list(error.tries)}
