"""`npukit ops`: the kinds of op, their engines, and their names in the model formats."""

from __future__ import annotations

from typing import Any

from npukit.cli.options import BoardName, verb
from npukit.cli.terminal import Terminal


@verb()
def ops(terminal: Terminal, board: BoardName = "pe-mesh") -> None:
    """List the kinds of op npukit computes, the engines of a board that run them, and their names in the formats."""
    from npukit import api

    known = api.ops(board=board)
    terminal.result(known)
    terminal.table(("op", "engines", "types", "from TFLite", "from ONNX"), [_row(kind) for kind in known])


def _row(kind: dict[str, Any]) -> tuple[str, ...]:
    tflite, onnx = (", ".join(kind["formats"][name]) for name in ("tflite", "onnx"))
    return kind["name"], ", ".join(kind["engines"]), ", ".join(kind["types"]), tflite, onnx
