"""The graph NPU as a plug-in: a subgraph goes to the maker's compiler as a file, and a blob comes back."""

from __future__ import annotations

import sys
from pathlib import Path

from npukit.accel.subgraphs.compiler import NetworkCompiler
from npukit.accel.subgraphs.plugin import NetworkPlugin
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.net import Net, Op

HERE = Path(__file__).resolve().parent
COMPILER = (sys.executable, HERE / "graphnpuc.py")
"""A finished program. npukit sees only its two files. A binary on the PATH would do as well."""

KINDS = ("add", "average_pool", "conv2d", "dense", "depthwise_conv2d", "max_pool", "reshape")


class GraphNpu(NetworkPlugin):
    """Connected ops, as many at once as possible."""

    name, version, alignment = "graphnpu", "1.0", 4
    model = HERE / "device" / "graphnpu_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        super().__init__(NetworkCompiler(self.name, COMPILER, slot.figures))

    def refusal_of_one(self, net: Net, op: Op) -> str | None:
        if op.kind not in KINDS:
            return f"the graph NPU has no {op.kind}"
        names = (*net.activations(op), op.output)
        if any(net.tensor(name).dtype != "int8" for name in names):
            return "the graph NPU takes int8"
        if any(len(net.tensor(name).shape) == 4 and net.tensor(name).shape[0] != 1 for name in names):
            return "the graph NPU takes one batch"
        constants = [name in net.constants for name in op.inputs[1:]]
        if op.kind == "add":
            shapes = {net.tensor(name).shape for name in op.inputs}
            return "operands that differ in shape, or are constant" if any(constants) or len(shapes) > 1 else None
        return None if all(constants) else "the weights are not constant"

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        return (HERE / "device" / ("graphnpu.c" if slot and slot.base is not None else "graphnpu_on_core.c"),)
