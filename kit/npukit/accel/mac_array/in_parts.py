"""Filters whose sums can exceed an accumulator: the array computes partial sums, the core adds and requantises them.

`firmware/mac_array/mac_array_parts.c` runs one command per partial sum, each over some of the input channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from npukit.accel.geometry import Plane, window_of
from npukit.accel.interface import Address, Call, ConstantArray, Field, Lowered, Tile
from npukit.accel.mac_array.cycles import Figures, Flags, Patch, ceil_div
from npukit.accel.mac_array.filters import Filter, accumulator_bounds, bits_needed, filter_of
from npukit.accel.mac_array.packing import WeightLayout, pack_parameters, parameter_bytes
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d

FUNCTION = "mac_array_in_parts"
_SUM_BITS = 32
WEIGHT_ALIGNMENT = 16
CHANNEL_BYTES = 12
LAYER = (
    "flags", "parts", "part_channels",
    "input_height", "input_width", "input_row_stride", "input_pixel_stride", "input_channels",
    "output_height", "output_width", "output_row_stride", "output_pixel_stride", "output_channels",
    "kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "pad_top", "pad_left",
    "input_zero", "output_zero", "clamp_min", "clamp_max",
)  # fmt: skip
"""The words of `enum mac_array_parts_word`."""
MAC_ARRAY_PIXELS = 1
CYCLES_OF_CALL, CYCLES_OF_COMMAND, CYCLES_OF_ADDITION, CYCLES_OF_RESULT = 240, 310, 14, 57
"""Cycles of the core, measured on the emulator: per call, per command, per sum added to another, per result."""


def parts_for(net: Net, op: Op, figures: Figures) -> int | str:
    """The number of partial sums of a convolution or dense layer, 0 if one sum is enough; or the reason to refuse."""
    wide = filter_of(net, op, figures.accumulator_bits)
    if wide.bits <= figures.accumulator_bits:
        return 0
    if wide.bits > _SUM_BITS:
        return f"its sums can need {wide.bits} bits, the core has {_SUM_BITS}"
    if _rows_of_padding(net, op):
        return f"its sums can need {wide.bits} bits, and it has rows of nothing but padding"
    depth = net.tensor(op.inputs[0]).shape[-1]
    weights = wide.weights.reshape(len(wide.weights), -1, depth).astype(np.int64)
    for parts in range(1, depth + 1):
        size = ceil_div(depth, parts)
        if all(_bits(weights[:, :, at : at + size]) <= figures.accumulator_bits for at in range(0, depth, size)):
            return ceil_div(depth, size)
    return f"its sums can need {wide.bits} bits, those over one input channel more than {figures.accumulator_bits}"


def _bits(weights: np.ndarray) -> int:
    return bits_needed(*accumulator_bounds(weights.reshape(len(weights), -1), np.zeros(len(weights), np.int64)))


def _rows_of_padding(net: Net, op: Op) -> bool:
    """True if the window of the last output row covers no row of the input."""
    if not isinstance(op.attributes, Conv2d):
        return False
    rows, top, stride = net.tensor(op.output).shape[1], op.attributes.padding[0], op.attributes.strides[0]
    return (rows - 1) * stride - top >= net.tensor(op.inputs[0]).shape[1]


class InParts:
    """A tile computed in `parts` partial sums: cost and call."""

    def __init__(self, net: Net, op: Op, plane: Plane, parts: int, figures: Figures) -> None:
        self._plane, self._figures = plane, figures
        self._window, self._depth = window_of(net, op), net.tensor(op.inputs[0]).shape[-1]
        self._part = ceil_div(self._depth, parts)
        self._sizes = [min(self._part, self._depth - at) for at in range(0, self._depth, self._part)]
        self._pixels = self._row_cycles(along_pixels=True) < self._row_cycles(along_pixels=False)

    @property
    def cycles(self) -> int:
        results, parts = self._plane.width * self._plane.channels, len(self._sizes)
        core = parts * CYCLES_OF_COMMAND + results * ((parts - 1) * CYCLES_OF_ADDITION + CYCLES_OF_RESULT)
        return CYCLES_OF_CALL + self._plane.height * (core + self._row_cycles(along_pixels=self._pixels))

    @property
    def constant_bytes(self) -> int:
        channels = self._plane.channels
        parameters = parameter_bytes(channels, self._block, self._figures.parameter_bytes_per_channel)
        return sum(map(self._weight_bytes, self._sizes)) + parameters + CHANNEL_BYTES * channels + 4 * len(LAYER)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of two rows of sums, or of a single row for a single part."""
        return 4 * self._plane.width * self._plane.channels * min(len(self._sizes), 2)

    def lower(self, tile: Tile, chosen: Filter, fields: Mapping[str, Field]) -> Lowered:
        """The call for the tile. `fields`: the members of a command for the whole tile."""
        assert tile.scratch is not None
        own = {"flags": MAC_ARRAY_PIXELS * self._pixels, "parts": len(self._sizes), "part_channels": self._part}
        layer = np.array([{**fields, **own}[word] for word in LAYER], np.int32)
        zeros = np.zeros(len(chosen.weights), np.int64)
        columns = np.stack([chosen.bias, chosen.multipliers, chosen.shifts], axis=1)
        constants = (
            ConstantArray(f"{tile.name}_weights", self._packed(chosen.weights), 16, "weights, part after part"),
            ConstantArray(f"{tile.name}_parameters", pack_parameters(zeros, zeros, zeros, self._block), 4, "none"),
            ConstantArray(f"{tile.name}_channels", columns.astype(np.int32), 4, "biases, multipliers, shifts"),
            ConstantArray(f"{tile.name}_layer", layer, 4, "sizes, strides and limits"),
        )
        places = (tile.inputs[0].address, *(Address(c.symbol) for c in constants), tile.scratch, tile.output.address)
        return Lowered(constants, Call(FUNCTION, places))

    @property
    def _block(self) -> int:
        return self._figures.lanes if self._pixels else self._figures.width

    @property
    def _layout(self) -> WeightLayout:
        return WeightLayout(self._block, narrow=not self._pixels)

    def _row_cycles(self, *, along_pixels: bool) -> int:
        cycles = partial(self._figures.convolution, self._plane.width, self._plane.channels)
        patches = (Patch.of(self._window, size, dense=len(self._sizes) == 1) for size in self._sizes)
        return sum(cycles(patch, along_pixels=along_pixels, flags=Flags(raw=True)) for patch in patches)

    def _weight_bytes(self, size: int) -> int:
        exact = self._layout.bytes(self._plane.channels, self._window.taps * size)
        return ceil_div(exact, WEIGHT_ALIGNMENT) * WEIGHT_ALIGNMENT

    def _packed(self, weights: np.ndarray) -> np.ndarray:
        by_tap = weights.reshape(len(weights), -1, self._depth)
        room = np.zeros(sum(map(self._weight_bytes, self._sizes)), np.int8)
        place = 0
        for index, size in enumerate(self._sizes):
            part = by_tap[:, :, index * self._part : index * self._part + size]
            packed = self._layout.packed(part.reshape(len(weights), -1))
            room[place : place + len(packed)] = packed
            place += self._weight_bytes(size)
        return room
