"""`npukit fit`: whether and how a network fits a board, before compilation."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.cli.networks import networks_of, one_of, show_networks
from npukit.cli.options import Explain, Models, verb
from npukit.cli.summary import show_summary, show_tried
from npukit.cli.terminal import Terminal
from npukit.cli.wishes import Wishes
from npukit.errors import DoesNotFit
from npukit.options import Network


@verb(tables=True)
def fit(
    terminal: Terminal,
    models: Models,
    wishes: Wishes,
    explain: Explain = False,
) -> None:
    """Predict whether a model fits a board, with latency, memory, energy and each layer; or why not."""
    from npukit import api

    networks, board = networks_of(models, wishes.pes), wishes.board
    options = wishes.options(networks[0].pes if one_of(models) else None)
    try:
        if one_of(models):
            told, show = api.fit(models[0], board=board, options=options, progress=terminal), show_summary
        else:
            told = api.fit_networks(networks, board=board, options=options, progress=terminal)
            show = show_networks
    except DoesNotFit as error:
        terminal.result(_refusal(networks, board, error))
        if explain:
            show_tried(terminal, error.tried)
        raise
    terminal.result(told)
    others = "" if wishes == Wishes(board=board) else ", with the other options of this fit"
    show(terminal, told, f"npukit build {' '.join(map(str, models))} --board {board} -o FOLDER{others}")
    for each in (told, *told.get("networks", ())) if explain else ():
        show_tried(terminal, each.get("tried", ()))


def _refusal(networks: Sequence[Network], board: str, error: DoesNotFit) -> dict[str, object]:
    model = ", ".join(network.name for network in networks)
    fault = {"fault": error.message, "remedies": list(error.tries), "tried": list(error.tried)}
    return {"model": model, "board": board, "fits": False, **fault}
