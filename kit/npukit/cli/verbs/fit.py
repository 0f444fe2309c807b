"""`npukit fit`: whether and how a network fits a board, before compilation."""

from __future__ import annotations

from npukit.cli.networks import networks_of, one_of, show_networks
from npukit.cli.options import Explain, Models, PlanOptions, verb
from npukit.cli.summary import show_summary, show_tried
from npukit.cli.terminal import Terminal
from npukit.errors import DoesNotFit


@verb(tables=True)
def fit(terminal: Terminal, models: Models, given: PlanOptions, explain: Explain = False) -> None:
    """Predict whether a model fits a board, with latency, memory, energy and each layer; or why not."""
    from npukit import api

    networks, board = networks_of(models, given.pes), given.board
    options = given.options(networks[0].pes if one_of(models) else None)
    try:
        if one_of(models):
            told, show = api.fit(models[0], board=board, options=options, progress=terminal), show_summary
        else:
            told = api.fit_networks(networks, board=board, options=options, progress=terminal)
            show = show_networks
    except DoesNotFit as error:
        model = ", ".join(network.name for network in networks)
        refusal = {"model": model, "board": board, "fits": False, "fault": error.message}
        terminal.result({**refusal, "remedies": list(error.tries), "tried": list(error.tried)})
        if explain:
            show_tried(terminal, error.tried)
        raise
    terminal.result(told)
    others = "" if given == PlanOptions(board=board) else ", with the other options of this fit"
    show(terminal, told, f"npukit build {' '.join(map(str, models))} --board {board} -o FOLDER{others}")
    for each in (told, *told.get("networks", ())) if explain else ():
        show_tried(terminal, each.get("tried", ()))
