"""The base of plug-ins with a network compiler: whole subgraphs go out as files, a blob comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.accel.interface import Abilities, Address, Call, CommandFormat, ConstantArray, Cost, Lowered, Tile
from npukit.accel.subgraphs.compiler import CompiledBlob, NetworkCompiler, RefusedSubgraph
from npukit.net.box import Box
from npukit.net.net import Net, Op


class NetworkPlugin:
    """A plug-in that takes connected ops, as many at once as its compiler accepts.

    A subclass checks single ops without the compiler (`refusal_of_one`) and names the C driver. The driver has `int32_t
    NAME_start(const uint8_t *blob, void *scratch, void *output, void *input0, ...)` with `inputs` inputs, and `int32_t
    NAME_wait(void)`. Missing inputs get the output's address.
    """

    name: str
    version: str
    inputs = 4
    alignment = 16
    """Alignment of the blob in bytes."""
    commands: CommandFormat | None = None
    model: Path | None = None

    def __init__(self, compiler: NetworkCompiler) -> None:
        self.compiler = compiler
        self.abilities = Abilities(subgraphs=True, wait=f"{self.name}_wait", rounds_twice=compiler.rounds_twice)

    def refusal_of_one(self, net: Net, op: Op) -> str | None:
        """The reason why an op, alone, cannot be in a subgraph, or None."""
        raise NotImplementedError

    def refusal(self, net: Net, op: Op) -> str | None:
        """The reason against a single op, without the compiler; for a subgraph the compiler's reason."""
        if op.parts == (op,):
            return self.refusal_of_one(net, op)
        inputs = len(set(net.activations(op)))
        if inputs > self.inputs:
            return f"{inputs} inputs, the driver of {self.name} takes {self.inputs}"
        answer = self.compiler.compiled(net, op)
        return answer.refusal if isinstance(answer, RefusedSubgraph) else None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        compiled = self._compiled(net, op)
        ends = dict(zip((*net.alone(op).inputs, op.output), compiled.arena, strict=True)) if compiled.arena else {}
        arena = tuple(ends[name] for name in (*net.activations(op), op.output) if ends)
        return Cost(compiled.cycles, len(compiled.blob), compiled.scratch_bytes, arena=arena)

    def lower(self, tile: Tile) -> Lowered:
        blob = np.frombuffer(self._compiled(tile.net, tile.op).blob, np.uint8)
        constant = ConstantArray(f"{tile.name}_blob", blob, self.alignment, "output of the network's compiler")
        inputs = dict(zip(tile.net.activations(tile.op), (each.address for each in tile.inputs), strict=True))
        sources = [inputs[name] for name in tile.net.alone(tile.op).inputs]
        spare = [tile.output.address] * (self.inputs - len(sources))
        places = (Address(constant.symbol), tile.scratch or tile.output.address, tile.output.address, *sources, *spare)
        return Lowered((constant,), Call(f"{self.name}_start", places))

    def _compiled(self, net: Net, op: Op) -> CompiledBlob:
        answer = self.compiler.compiled(net, op)
        assert isinstance(answer, CompiledBlob), "it was refused"
        return answer
