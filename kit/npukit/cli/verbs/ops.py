"""`npukit ops`: the kinds of op, their engines, and their names in the model formats."""

from __future__ import annotations

from typing import Any

from npukit.cli.options import BoardName, verb
from npukit.cli.terminal import Terminal


@verb(tables=True)
def ops(terminal: Terminal, board: BoardName = "pe-mesh") -> None:
    """List the kinds of op, the engines of a board that run each, and their names in TFLite and ONNX."""
    from npukit import api

    known = api.ops(board=board)
    terminal.result(known)
    headings = ("op", "engines", "types", "from TFLite", "from ONNX")
    terminal.table(headings, [_row(kind) for kind in known], [each for each in headings if each != "types"])


def _row(kind: dict[str, Any]) -> tuple[str, ...]:
    tflite, onnx = (", ".join(kind["formats"][name]) for name in ("tflite", "onnx"))
    return kind["name"], ", ".join(kind["engines"]), ", ".join(kind["types"]), tflite, onnx
