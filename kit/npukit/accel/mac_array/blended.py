"""Bilinear resizes: depthwise convolutions of rows and columns that are blended alike, each with its own command.

An output pixel is the sum of up to four pixels with whole-number weights, divided by a power of two. The array doubles
the weights: its first rounding then halves the sum exactly, and the second rounds halves away from zero, like the op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

import numpy as np

from npukit.accel.geometry import Plane, Window
from npukit.accel.interface import Address, ConstantArray, Field, Operand, Tile
from npukit.accel.mac_array.cycles import Figures
from npukit.accel.mac_array.packing import WeightLayout, pack_parameters, parameter_bytes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import ResizeBilinear
from npukit.net.places import PLACE_UNIT
from npukit.net.receptive import needs
from npukit.net.requantize import quantize_multiplier

Entry = tuple[int, int, int]
"""The lower and the upper input position of an output position, and the distance from the lower in 1/1024."""
_MOST_COMMANDS = 64
"""Limit of commands of an output: further commands take more memory than they save time."""
_MOST_STEPS = 8
"""The largest factor tried."""
_LARGEST = 127


@dataclass(frozen=True)
class BlendedRun:
    """Output positions from `target` on, `apart` apart, of windows of the input from `source` on, `step` apart."""

    target: int
    apart: int
    source: int
    step: int
    count: int
    taps: tuple[int, ...]

    @property
    def reach(self) -> int:
        """Input positions under all windows."""
        return (self.count - 1) * self.step + len(self.taps)


def runs(entries: Sequence[Entry]) -> list[BlendedRun]:
    """The fewest runs of an axis."""
    found = [list(_apart(entries, apart)) for apart in range(1, _MOST_STEPS + 1)]
    return min(found, key=len)


def _apart(entries: Sequence[Entry], apart: int) -> Iterator[BlendedRun]:
    for phase in range(min(apart, len(entries))):
        places = list(range(phase, len(entries), apart))
        windows = [_window(entries[place]) for place in places]
        at = 0
        while at < len(places):
            source, taps = windows[at]
            step, count = windows[at + 1][0] - source if at + 1 < len(places) else 1, 1
            while step > 0 and at + count < len(places) and windows[at + count] == (source + count * step, taps):
                count += 1
            yield BlendedRun(places[at], apart, source, step if count > 1 else 1, count, taps)
            at += count


def _window(entry: Entry) -> tuple[int, tuple[int, ...]]:
    """The first position of a window, and the whole weights of one or two positions."""
    low, high, share = entry
    if low == high or share == 0:
        return low, (1,)
    if share == PLACE_UNIT:
        return high, (1,)
    common = gcd(PLACE_UNIT, share)
    weights = (PLACE_UNIT - share) // common, share // common
    return (low, weights) if low < high else (high, weights[::-1])


def refusal_of_resize(net: Net, op: Op) -> str | None:
    """The reason why the array cannot resize, or None."""
    attributes = op.of(ResizeBilinear)
    if any(abs(high - low) > 1 for low, high, _ in (*attributes.rows, *attributes.columns)):
        return "it blends pixels that are not neighbours"
    rows, columns = runs(attributes.rows), runs(attributes.columns)
    if len(rows) * len(columns) > _MOST_COMMANDS:
        return f"it blends in {len(rows) * len(columns)} ways, the MAC array takes {_MOST_COMMANDS}"
    largest = 2 * max(max(run.taps) for run in rows) * max(max(run.taps) for run in columns)
    return f"its weights are up to {largest}" if largest > _LARGEST else None


@dataclass(frozen=True)
class Blended:
    """The commands of a box of the output. `held`: the box of the input."""

    rows: tuple[BlendedRun, ...]
    columns: tuple[BlendedRun, ...]
    channels: int
    held: Box
    figures: Figures

    @classmethod
    def of(cls, net: Net, op: Op, output: Box, figures: Figures) -> Blended:
        attributes = op.of(ResizeBilinear)
        rows, columns = (
            tuple(runs(places[output.start[axis] : output.stop[axis]]))
            for axis, places in ((1, attributes.rows), (2, attributes.columns))
        )
        return cls(rows, columns, output.shape[-1], needs(net, op, output)[0], figures)

    @property
    def pairs(self) -> tuple[tuple[BlendedRun, BlendedRun], ...]:
        return tuple(product(self.rows, self.columns))

    @property
    def _weights(self) -> dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray]:
        """The doubled weights of each window, by the weights of rows and of columns."""
        windows = dict.fromkeys((row.taps, column.taps) for row, column in self.pairs)
        return {taps: 2 * np.outer(*taps).ravel() for taps in windows}

    @property
    def cycles(self) -> int:
        figures = self.figures
        each = (
            figures.depthwise(
                Plane(row.count, column.count, self.channels),
                Window((len(row.taps), len(column.taps)), (row.step, column.step)),
            )
            for row, column in self.pairs
        )
        return sum(each) - (len(self.pairs) - 1) * (figures.setup_cycles - figures.chain_cycles)

    def constant_bytes(self, command: int) -> int:
        """Bytes of weights, parameters and commands of `command` bytes."""
        weights, width = self._weights.values(), self.figures.width
        parameters = parameter_bytes(self.channels, width, self.figures.parameter_bytes_per_channel)
        scales = {int(each.sum()) for each in weights}
        held = sum(WeightLayout(width).bytes(self.channels, each.size) for each in weights)
        return held + len(scales) * parameters + len(self.pairs) * command

    def constants(self, tile: Tile) -> Iterator[ConstantArray]:
        """The weights of each window, and the parameters of each sum of weights."""
        for number, weights in enumerate(self._weights.values()):
            packed = WeightLayout(self.figures.width).packed(np.tile(weights, (self.channels, 1)))
            yield ConstantArray(f"{tile.name}_weights_{number}", packed, 16, "weights of neighbours")
        ones = np.ones(self.channels, np.int64)
        for total in sorted({int(each.sum()) for each in self._weights.values()}):
            multiplier, shift = quantize_multiplier(1 / total)
            packed = pack_parameters(0 * ones, multiplier * ones, shift * ones, self.figures.width)
            yield ConstantArray(f"{tile.name}_parameters_{total}", packed, 4, "biases, multipliers, shifts")

    def commands(self, tile: Tile) -> Iterator[tuple[Operand, Operand, dict[str, Field]]]:
        """The places of input and output of each command, with the fields of weights and steps."""
        weights = self._weights
        for row, column in self.pairs:
            taps = row.taps, column.taps
            yield (
                self._source(tile.inputs[0], row, column),
                self._target(tile.output, row, column),
                {
                    "weights": Address(f"{tile.name}_weights_{list(weights).index(taps)}"),
                    "parameters": Address(f"{tile.name}_parameters_{int(weights[taps].sum())}"),
                    "kernel_height": len(row.taps),
                    "kernel_width": len(column.taps),
                    "stride_y": row.step,
                    "stride_x": column.step,
                },
            )

    def _source(self, operand: Operand, row: BlendedRun, column: BlendedRun) -> Operand:
        """The input under the windows of two runs."""
        first = row.source - self.held.start[1], column.source - self.held.start[2]
        return _moved(operand, first, (1, 1), (row.reach, column.reach))

    def _target(self, operand: Operand, row: BlendedRun, column: BlendedRun) -> Operand:
        return _moved(operand, (row.target, column.target), (row.apart, column.apart), (row.count, column.count))


def _moved(operand: Operand, first: tuple[int, int], apart: tuple[int, int], size: tuple[int, int]) -> Operand:
    """Some rows and columns of an operand, `apart` apart."""
    offset = first[0] * operand.row_stride + first[1] * operand.pixel_stride
    address = Address(operand.address.symbol, operand.address.offset + offset)
    box = Box.whole((1, *size, operand.box.shape[-1]))
    return Operand(operand.tensor, box, address, apart[0] * operand.row_stride, apart[1] * operand.pixel_stride)
