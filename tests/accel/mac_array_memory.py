"""A tile lowered by the MAC array's plug-in, run on the numpy model of the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod

import numpy as np

from npukit.accel.interface import Address, Commands, Field, Lowered, Operand
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.tensor import Tensor
from oracles.mac_array_command import Command, Error, Flag, Kind
from oracles.mac_array_model import Array

SRAM_BYTES = 0x2_0000
_SLOT = load_board("pe-mesh").accelerator_named("mac_array")
assert _SLOT is not None
FIGURES = _SLOT.figures
NAMES: Mapping[str, int] = {f"MAC_ARRAY_{each.name}": int(each) for each in (*Kind, *Flag)}


@dataclass
class Memory:
    """The SRAM of a PE, filled from the bottom with tensors and constants."""

    sram: np.ndarray = field(default_factory=lambda: np.full(SRAM_BYTES, 0x5A, np.uint8))
    places: dict[str, int] = field(default_factory=dict)
    free: int = 256

    def take(self, symbol: str, size: int, align: int) -> int:
        self.places[symbol] = -(-self.free // align) * align
        self.free = self.places[symbol] + size
        assert self.free <= SRAM_BYTES, "the test's tensors are too large"
        return self.places[symbol]

    def operand(self, symbol: str, tensor: Tensor, box: Box, held: Box) -> Operand:
        """An operand for `box` of a tensor, inside a dense buffer of the box `held`."""
        item = np.dtype(tensor.dtype).itemsize
        strides = [item * prod(held.shape[axis + 1 :]) for axis in range(len(held.shape))]
        self.take(symbol, item * held.elements, item)
        begin = sum(map(int.__mul__, box.offset_in(held), strides))
        image = len(held.shape) == 4
        pixel = item * held.shape[-1]
        row = held.shape[2] * pixel if image else pixel * prod(held.shape[:-1])
        return Operand(tensor, box, Address(symbol, begin), row, pixel)

    def bytes_of(self, operand: Operand) -> np.ndarray:
        """Addresses of the operand's bytes, in the shape of its box."""
        *rest, channels = operand.box.shape
        item = np.dtype(operand.tensor.dtype).itemsize
        positions = np.ogrid[tuple(slice(size) for size in (*rest, channels * item))]
        first = self.places[operand.address.symbol] + operand.address.offset
        steps = zip(positions, (*operand.strides[:-1], 1), strict=True)
        return first + sum((at * stride for at, stride in steps), start=np.zeros((), np.int64))

    def run(self, lowered: Lowered) -> int:
        """Load the constants and run the commands in order. Returns the cycles."""
        for constant in lowered.constants:
            place = self.take(constant.symbol, constant.values.nbytes, constant.align)
            self.sram[place : place + constant.values.nbytes] = np.frombuffer(constant.values.tobytes(), np.uint8)
        assert isinstance(lowered.code, Commands)
        return sum(self._run(each.fields, first=index == 0) for index, each in enumerate(lowered.code.structs))

    def _run(self, values: Sequence[tuple[str, Field]], *, first: bool) -> int:
        command = Command(**{name: self._number(value) for name, value in values})
        self.sram[:96] = np.frombuffer(command.pack(), np.uint8)
        error, cycles = Array(self.sram, FIGURES).execute(0, first=first)
        assert error is Error.NONE
        return cycles

    def _number(self, value: Field) -> int:
        if isinstance(value, Address):
            return self.places[value.symbol] + value.offset
        return sum(NAMES[name] for name in value.split(" | ")) if isinstance(value, str) else value


assert {"input_row_stride", "residual_zero"} <= {each.name for each in fields(Command)}
