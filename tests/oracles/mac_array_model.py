"""The MAC array's command in numpy: an independent reading of the hardware manual, section 3, to check the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.mac_array_command import (
    COMMAND_BYTES,
    Command,
    Error,
    Flag,
    Kind,
    ceil_div,
    columns,
    extents,
    fields_are_right,
    is_aligned,
    output_places,
    places_of,
    weight_bytes,
    weight_rows,
)
from oracles.mac_array_cycles import Cycles

_LARGEST_SHIFT = 31
_LEFT_SHIFT = 20
"""Bits by which an addition first shifts its operands up."""


class Array:
    """A MAC array and its SRAM, a writable array of bytes."""

    def __init__(self, sram: np.ndarray, figures: Mapping[str, int]) -> None:
        self._sram = sram
        self._signed = sram.view(np.int8)
        self._figures = figures
        self.cycles = Cycles(figures)

    def execute(self, address: int, *, first: bool = True) -> tuple[Error, int]:
        """Execute the command at `address`. Returns an error, or no error and the cycles.

        `first`: the command is the first of its chain.
        """
        if address % 16 or address + COMMAND_BYTES > len(self._sram):
            return Error.PLACE, self.cycles.of_check(first=first)
        command = Command.unpack(self._sram[address : address + COMMAND_BYTES].tobytes())
        error = self.check(command)
        if error is not Error.NONE:
            return error, self.cycles.of_check(first=first)
        self._store(command, self._compute(command))
        return Error.NONE, self.cycles.of(command, first=first)

    # --- checks

    def check(self, command: Command) -> Error:
        if command.kind not in list(Kind):
            return Error.KIND
        if not fields_are_right(command):
            return Error.FIELD
        if not is_aligned(command):
            return Error.ALIGNMENT
        return Error.NONE if all(map(self._inside, extents(command, self._block(command)))) else Error.OPERAND

    def _inside(self, extent: tuple[int, int]) -> bool:
        return extent[0] >= 0 and extent[1] <= len(self._sram)

    # --- computation

    def _compute(self, command: Command) -> np.ndarray:
        """The output [height, width, channels]."""
        if command.kind == Kind.ADD:
            return self._add(command)
        if not command.filters:
            return self._pool(command)
        sums = self._sums(command)
        if Flag.RAW in command.effective:
            return sums.astype(np.int32)
        _, multipliers, shifts = self._parameters(command)
        scaled = requantize(sums, multipliers, shifts) + command.output_zero
        return self._residual(command, _clamp(scaled, command.clamp_min, command.clamp_max))

    def _sums(self, command: Command) -> np.ndarray:
        window, _ = self._window(command, command.input_zero)
        if Flag.SECOND in command.effective:
            window = window - command.input_zero
        if command.kind == Kind.CONVOLUTION:
            products = window.reshape(*window.shape[:2], -1) @ self._weights(command).T
        else:
            taps = window.reshape(*window.shape[:2], command.taps, -1)
            products = np.einsum("yxtc,ct->yxc", taps, self._weights(command))
        bits = self._figures["accumulator_bits"]
        return _wrap(products + self._start(command), bits)

    def _start(self, command: Command) -> np.ndarray:
        if Flag.ACCUMULATE not in command.effective:
            return self._parameters(command)[0]
        places = places_of(command, "extra", command.output_height, command.output_width, command.output_channels, 4)
        return self._words(places)

    def _weights(self, command: Command) -> np.ndarray:
        """Weights [channel, depth]."""
        if Flag.SECOND in command.effective:
            rows, size = command.second_rows
            found = self._values(
                command.weights + command.second_row_stride * np.arange(rows)[:, None] + np.arange(size)
            )
            return (found if Flag.PIXELS in command.effective else found.T) - command.second_zero
        block, depth = self._block(command), weight_rows(command)
        stored, place, rows = self._stored_weights(command), 0, []
        for first in range(0, command.output_channels, block):
            row = (
                columns(command, block, command.output_channels - first)
                if first + block > command.output_channels
                else block
            )
            packed = stored[place : place + depth * row].astype(np.int64)
            rows.append(packed.reshape(depth, row)[: command.depth].T)
            place += depth * row
        return np.concatenate(rows)[: command.output_channels]

    def _stored_weights(self, command: Command) -> np.ndarray:
        """The weights in the order of memory."""
        raw = self._signed[command.weights :][: weight_bytes(command, self._block(command))]
        return np.stack([raw << 4 >> 4, raw >> 4], 1).ravel() if Flag.NIBBLES in command.effective else raw

    def _parameters(self, command: Command) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Biases, multipliers and shifts of the channels."""
        block = self._block(command)
        blocks = ceil_div(command.output_channels, block)
        stored = np.dtype([("bias", "<i4", block), ("multiplier", "<i4", block), ("shift", "i1", block)])
        raw = self._sram[command.parameters : command.parameters + blocks * stored.itemsize].tobytes()
        records = np.frombuffer(raw, stored)
        bias, multiplier, shift = (
            records[name].ravel()[: command.output_channels].astype(np.int64)
            for name in ("bias", "multiplier", "shift")
        )
        return bias, multiplier, shift

    def _residual(self, command: Command, values: np.ndarray) -> np.ndarray:
        if Flag.RESIDUAL not in command.effective:
            return values
        extra = self._values(output_places(command, "extra"))
        sums = self._added(values, extra, command.residual_parameters) + command.residual_zero
        return _clamp(sums, command.residual_min, command.residual_max)

    def _add(self, command: Command) -> np.ndarray:
        first, second = (self._values(output_places(command, name)) for name in ("input", "second"))
        product = Flag.PRODUCT in command.effective
        sums = self._added(first, second, command.parameters, product=product) + command.output_zero
        return _clamp(sums, command.clamp_min, command.clamp_max)

    def _added(self, a: np.ndarray, b: np.ndarray, address: int, *, product: bool = False) -> np.ndarray:
        words = self._sram[address : address + 32].view("<i4").astype(np.int64)
        zero1, multiplier1, shift1, zero2, multiplier2, shift2, multiplier, shift = words
        first = requantize(_wrap(a - zero1 << _LEFT_SHIFT, 32), multiplier1, shift1)
        second = requantize(_wrap(b - zero2 << _LEFT_SHIFT, 32), first if product else multiplier2, shift2)
        return requantize(second if product else _wrap(first + second, 32), multiplier, shift)

    def _pool(self, command: Command) -> np.ndarray:
        window, inside = self._window(command, 0)
        if command.kind == Kind.MAXIMUM_POOL:
            result = np.where(inside, window, -128).max((2, 3))
        else:
            number = np.maximum(inside.sum((2, 3)), 1)
            total = window.sum((2, 3))
            result = np.sign(total) * ((np.abs(total) + number // 2) // number)
        return _clamp(result, command.clamp_min, command.clamp_max)

    def _window(self, command: Command, outside: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs under the kernel [y, x, ky, kx, channel], with `outside` in the padding; and a mask of the positions
        inside the input."""
        c = command
        y = _positions(c.output_height, c.stride_y, c.kernel_height, c.dilation_y, c.pad_top)[:, None, :, None]
        x = _positions(c.output_width, c.stride_x, c.kernel_width, c.dilation_x, c.pad_left)[None, :, None, :]
        inside = (y >= 0) & (y < c.input_height) & (x >= 0) & (x < c.input_width)
        pixels = c.input + y * c.input_row_stride + x * c.input_pixel_stride
        places = np.where(inside, pixels, 0)[..., None] + np.arange(c.input_channels)
        return np.where(inside[..., None], self._values(places), outside), inside[..., None]

    # --- memory

    def _block(self, command: Command) -> int:
        """Channels per block of weights or parameters."""
        along_pixels = command.kind == Kind.CONVOLUTION and Flag.PIXELS in command.effective
        return self._figures["lanes" if along_pixels else "width"]

    def _values(self, places: np.ndarray) -> np.ndarray:
        return self._signed[places].astype(np.int64)

    def _words(self, places: np.ndarray) -> np.ndarray:
        raw = self._sram[places[..., None] + np.arange(4)]
        return np.ascontiguousarray(raw).view("<i4")[..., 0].astype(np.int64)

    def _store(self, command: Command, result: np.ndarray) -> None:
        size = result.itemsize if result.dtype == np.int32 else 1
        shape = command.output_height, command.output_width, command.output_channels
        raw = np.ascontiguousarray(result.astype("<i4" if size == 4 else np.int8)).view(np.uint8).reshape(*shape, size)
        places = places_of(command, "output", *shape, size)[..., None] + np.arange(size)
        self._sram[places.reshape(-1)] = raw.reshape(-1)


def requantize(values: np.ndarray, multiplier: Any, shift: Any) -> np.ndarray:
    """TFLite's requantisation: a saturating, rounding, doubling high multiplication, then a rounding division by a
    power of two."""
    shift = np.clip(shift, -_LARGEST_SHIFT, _LARGEST_SHIFT)
    raised = _wrap(values << np.maximum(shift, 0), 32)
    product = raised * multiplier
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    high = np.sign(nudged) * (np.abs(nudged) >> 31)  # towards zero
    high = np.where((raised == multiplier) & (raised == -(1 << 31)), (1 << 31) - 1, high)
    exponent = np.maximum(-shift, 0)
    mask = (np.int64(1) << exponent) - 1
    threshold = (mask >> 1) + (high < 0)
    return (high >> exponent) + ((high & mask) > threshold)


def _wrap(values: np.ndarray, bits: int) -> np.ndarray:
    return ((values + (1 << bits - 1)) & ((1 << bits) - 1)) - (1 << bits - 1)


def _clamp(values: np.ndarray, low: int, high: int) -> np.ndarray:
    return np.minimum(np.maximum(values, low), high)


def _positions(outputs: int, stride: int, kernel: int, dilation: int, padding: int) -> np.ndarray:
    """Input positions [output, tap]."""
    return np.arange(outputs)[:, None] * stride + np.arange(kernel)[None, :] * dilation - padding
