"""What the NPU takes, and how its maker's compiler is asked: a subgraph goes out as a file and a blob comes back."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from npukit.accel.interface import Abilities, Address, Call, CommandFormat, ConstantArray, Cost, Lowered, Tile
from npukit.accel.network_compiler import Compiled, NetworkCompiler, Refused
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.box import Box
from npukit.net.net import Net, Op

HERE = Path(__file__).resolve().parent
COMPILER = (sys.executable, HERE / "graphnpuc.py")
"""A finished program: npukit knows nothing of it but its two files. A binary on the PATH would do as well."""

KINDS = ("add", "average_pool", "conv2d", "dense", "depthwise_conv2d", "max_pool", "reshape")
INPUTS = 4
"""Registers for inputs."""


class GraphNpu:
    """Connected ops, as many at once as it can."""

    name = "graphnpu"
    version = "1.0"
    commands: CommandFormat | None = None
    abilities = Abilities(subgraphs=True, wait="graphnpu_wait")
    model: Path | None = HERE / "device" / "graphnpu_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.compiler = NetworkCompiler(self.name, COMPILER, slot.figures)

    def refusal(self, net: Net, op: Op) -> str | None:
        """What can be said of an op without the compiler; of a subgraph, the compiler's own reason."""
        if op.parts == (op,):
            return _refusal_of_one(net, op)
        if len(set(net.activations(op))) > INPUTS:
            return f"{len(set(net.activations(op)))} inputs, the NPU has registers for {INPUTS}"
        answer = self.compiler.compiled(net, op)
        return answer.refusal if isinstance(answer, Refused) else None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        compiled = self._compiled(net, op)
        return Cost(compiled.cycles, len(compiled.blob), compiled.scratch_bytes)

    def lower(self, tile: Tile) -> Lowered:
        blob = np.frombuffer(self._compiled(tile.net, tile.op).blob, np.uint8)
        constant = ConstantArray(f"{tile.name}_blob", blob, 4, "what the network compiler made of the subgraph")
        inputs = dict(zip(tile.net.activations(tile.op), (each.address for each in tile.inputs), strict=True))
        sources = [inputs[name] for name in tile.net.alone(tile.op).inputs]
        spare = [tile.output.address] * (INPUTS - len(sources))
        scratch = tile.scratch or tile.output.address
        places = (Address(constant.symbol), scratch, tile.output.address, *sources, *spare)
        return Lowered((constant,), Call("graphnpu_start", places))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        return (HERE / "device" / ("graphnpu.c" if slot and slot.base is not None else "graphnpu_on_core.c"),)

    def _compiled(self, net: Net, op: Op) -> Compiled:
        answer = self.compiler.compiled(net, op)
        assert isinstance(answer, Compiled), "it was refused"
        return answer


def _refusal_of_one(net: Net, op: Op) -> str | None:
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
