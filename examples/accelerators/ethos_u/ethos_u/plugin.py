"""What an Ethos-U takes, and how Vela is asked: a subgraph goes out as a TFLite file, a command stream comes back."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from npukit.accel.interface import Abilities, Address, Call, CommandFormat, ConstantArray, Cost, Lowered, Tile
from npukit.accel.network_compiler import Compiled, NetworkCompiler, Refused
from npukit.accel.tflite_file import TFLITE_KINDS
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.box import Box
from npukit.net.net import Net, Op

HERE = Path(__file__).resolve().parent
KINDS = TFLITE_KINDS - {"transpose"}
INPUTS = 4
"""Addresses of inputs that the driver takes."""

SYSTEMS = {55: "Ethos_U55_High_End_Embedded", 65: "Ethos_U65_High_End", 85: "Ethos_U85_SYS_DRAM_Mid"}
"""Vela's names of the clocks and memories that its estimates are for."""


class EthosU:
    """Connected ops, as many at once as Vela takes."""

    name = "ethos_u"
    version = "1.0"
    commands: CommandFormat | None = None
    abilities = Abilities(subgraphs=True, wait="ethos_u_wait")
    model: Path | None = None

    def __init__(self, slot: AcceleratorSlot) -> None:
        generation, macs = slot.figures["generation"], slot.figures["macs_per_cycle"]
        options = ["--accelerator-config", f"ethos-u{generation}-{macs}", "--config", "Arm/vela.ini"]
        options += ["--system-config", SYSTEMS[generation], "--memory-mode", "Sram_Only"]
        command = (sys.executable, HERE / "velac.py", *options)
        self.compiler = NetworkCompiler(self.name, command, slot.figures, form="tflite")

    def refusal(self, net: Net, op: Op) -> str | None:
        """What can be said of an op without Vela; of a subgraph, Vela's own reason."""
        if op.parts == (op,):
            return _refusal_of_one(net, op)
        if len(set(net.activations(op))) > INPUTS:
            return f"{len(set(net.activations(op)))} inputs, the driver takes {INPUTS}"
        answer = self.compiler.compiled(net, op)
        return answer.refusal if isinstance(answer, Refused) else None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        compiled = self._compiled(net, op)
        return Cost(compiled.cycles, len(compiled.blob), compiled.scratch_bytes)

    def lower(self, tile: Tile) -> Lowered:
        blob = np.frombuffer(self._compiled(tile.net, tile.op).blob, np.uint8)
        constant = ConstantArray(f"{tile.name}_blob", blob, 16, "Vela's command stream and weights")
        inputs = dict(zip(tile.net.activations(tile.op), (each.address for each in tile.inputs), strict=True))
        sources = [inputs[name] for name in tile.net.alone(tile.op).inputs]
        spare = [tile.output.address] * (INPUTS - len(sources))
        places = (Address(constant.symbol), tile.scratch or tile.output.address, tile.output.address, *sources, *spare)
        return Lowered((constant,), Call("ethos_u_start", places))

    def sources(self, board: Board) -> tuple[Path, ...]:
        return (HERE / "firmware" / "ethos_u.c",)

    def _compiled(self, net: Net, op: Op) -> Compiled:
        answer = self.compiler.compiled(net, op)
        assert isinstance(answer, Compiled), "it was refused"
        return answer


def _refusal_of_one(net: Net, op: Op) -> str | None:
    if op.kind not in KINDS:
        return f"the Ethos-U has no {op.kind}"
    names = (*net.activations(op), op.output)
    if any(net.tensor(name).dtype != "int8" for name in names):
        return "the Ethos-U takes int8"
    if any(len(net.tensor(name).shape) > 1 and net.tensor(name).shape[0] != 1 for name in names):
        return "the Ethos-U takes one batch"
    has_weights = op.kind in ("conv2d", "dense", "depthwise_conv2d")
    return "the weights are not constant" if has_weights and op.inputs[1] not in net.constants else None
