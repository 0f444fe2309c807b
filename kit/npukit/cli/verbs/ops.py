"""`npukit ops`: the kinds of op, their engines, and their names in the model formats."""

from __future__ import annotations

from npukit.cli.options import BoardName, verb
from npukit.cli.terminal import Terminal


@verb(tables=True)
def ops(terminal: Terminal, board: BoardName = "pe-mesh") -> None:
    """List the kinds of op, the engines of a board that run each, and their names in TFLite and ONNX."""
    from npukit import api

    known = api.ops(board=board)
    terminal.result(known)
    headings, rows = ("op", "engines", "types", "from TFLite", "from ONNX"), []
    for kind in known:
        lists = (kind["engines"], kind["types"], kind["formats"]["tflite"], kind["formats"]["onnx"])
        rows.append((kind["name"], *map(", ".join, lists)))
    terminal.table(headings, rows, [each for each in headings if each != "types"])
