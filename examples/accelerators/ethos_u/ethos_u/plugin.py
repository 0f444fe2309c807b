"""The Ethos-U as a plug-in: a subgraph goes to Vela as a TFLite file, and a command stream comes back."""

from __future__ import annotations

import sys
from pathlib import Path

from npukit.accel.subgraphs.compiler import NetworkCompiler
from npukit.accel.subgraphs.plugin import NetworkPlugin
from npukit.accel.subgraphs.tflite_file import TFLITE_KINDS
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.net import Net, Op

HERE = Path(__file__).resolve().parent
KINDS = TFLITE_KINDS - {"transpose"}

SYSTEMS = {55: "Ethos_U55_High_End_Embedded", 65: "Ethos_U65_High_End", 85: "Ethos_U85_SYS_DRAM_Mid"}
"""Vela's names for the clocks and memories assumed in its estimates, by generation."""


class EthosU(NetworkPlugin):
    """Connected ops, as many at once as Vela takes."""

    name, version = "ethos_u", "1.0"

    def __init__(self, slot: AcceleratorSlot) -> None:
        generation, macs = slot.figures["generation"], slot.figures["macs_per_cycle"]
        options = ["--accelerator-config", f"ethos-u{generation}-{macs}", "--config", "Arm/vela.ini"]
        options += ["--system-config", SYSTEMS[generation], "--memory-mode", "Sram_Only"]
        command = (sys.executable, HERE / "velac.py", *options)
        super().__init__(NetworkCompiler(self.name, command, slot.figures, form="tflite"))

    def refusal_of_one(self, net: Net, op: Op) -> str | None:
        if op.kind not in KINDS:
            return f"the Ethos-U has no {op.kind}"
        names = (*net.activations(op), op.output)
        if any(net.tensor(name).dtype != "int8" for name in names):
            return "the Ethos-U takes int8"
        if any(len(net.tensor(name).shape) > 1 and net.tensor(name).shape[0] != 1 for name in names):
            return "the Ethos-U takes one batch"
        has_weights = op.kind in ("conv2d", "dense", "depthwise_conv2d")
        return "the weights are not constant" if has_weights and op.inputs[1] not in net.constants else None

    def sources(self, board: Board) -> tuple[Path, ...]:
        return (HERE / "firmware" / "ethos_u.c",)
