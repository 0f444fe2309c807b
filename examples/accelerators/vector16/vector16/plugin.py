"""The vector unit as a plug-in: supported ops, costs, and the call that loads and runs a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.accel.geometry import Plane
from npukit.accel.interface import Abilities, Address, Call, CommandFormat, ConstantArray, Cost, Lowered, Operand, Tile
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.box import Box
from npukit.net.net import Net, Op

from .compiler import KINDS, program
from .instructions import LANES, assemble

HERE = Path(__file__).resolve().parent
SHAPE_WORDS = 9
CORE_CYCLES_PER_WORD = 8
"""Cycles of the core to load a word of the program."""

CORE_CYCLES_PER_RUN = 70


class Vector16:
    """Elementwise ops of equal shapes."""

    name = "vector16"
    version = "1.0"
    commands: CommandFormat | None = None
    abilities = Abilities(wait="vector16_wait")
    model: Path | None = HERE / "model" / "vector16_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.program_words = slot.figures["program_words"]
        self.setup_cycles = slot.figures["setup_cycles"]

    def refusal(self, net: Net, op: Op) -> str | None:
        if not isinstance(op.attributes, KINDS):
            return f"the vector unit has no program for {op.kind}"
        if any(name in net.constants for name in op.inputs):
            return "one operand is constant"
        tensors = [net.tensor(name) for name in (*op.inputs, op.output)]
        if any(tensor.dtype != "int8" for tensor in tensors):
            return "the vector unit takes int8"
        if len({tensor.shape for tensor in tensors}) > 1:
            return "the operands' shapes differ"
        if len(tensors[0].shape) == 4 and tensors[0].shape[0] != 1:
            return "the driver takes one batch"
        words = len(assemble(program(net, op)))
        return (
            f"a program of {words} words, there is room for {self.program_words}"
            if words > self.program_words
            else None
        )

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        """The cost with a run for each row of pixels. Pixels that are not dense are a run each, and take longer."""
        instructions, plane = program(net, op), Plane.of(output)
        words = len(assemble(instructions))
        vectors = -(-plane.width * plane.channels // LANES)
        run = CORE_CYCLES_PER_RUN + self.setup_cycles + vectors * len(instructions)
        return Cost(CORE_CYCLES_PER_WORD * words + plane.height * run, 4 * (words + SHAPE_WORDS))

    def lower(self, tile: Tile) -> Lowered:
        words = assemble(program(tile.net, tile.op))
        constants = (
            ConstantArray(f"{tile.name}_program", words, 4, "instructions of the vector unit"),
            ConstantArray(f"{tile.name}_shape", _shape(tile), 4, "runs, elements of a run, strides"),
        )
        operands = [operand.address for operand in tile.inputs]
        places = (operands[0], operands[-1], tile.output.address)
        program_and_shape = (Address(constants[0].symbol), len(words), Address(constants[1].symbol))
        return Lowered(constants, Call("vector16_start", (*places, *program_and_shape)))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        return (HERE / "firmware" / ("vector16.c" if slot and slot.base is not None else "vector16_on_core.c"),)


def _shape(tile: Tile) -> np.ndarray:
    """The words of `enum vector16_shape`. A row is a single run if the pixels of every operand are contiguous."""
    plane = Plane.of(tile.output.box)
    operands = (tile.inputs[0], tile.inputs[-1], tile.output)
    dense = all(operand.pixel_stride == plane.channels for operand in operands)
    runs = (1, plane.width * plane.channels) if dense else (plane.width, plane.channels)
    return np.array([plane.height, *runs, *(s for operand in operands for s in _strides(operand))], np.int32)


def _strides(operand: Operand) -> tuple[int, int]:
    return operand.row_stride, operand.pixel_stride
