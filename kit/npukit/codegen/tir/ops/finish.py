"""The finish of sums: requantisation and clamp of an element; the bias, requantisation and clamp of a filter's sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from npukit.accel.core_filters import PRESCALED, in_one_step
from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, cast, do, select
from npukit.codegen.tir.ops.fixed_point import clamp, high_half, requantize, scale_down
from npukit.net.requantize import Multiplier, clamp_of, quantization, requantization

_MOST_SHIFT = 31


class Sink(Protocol):
    """The destination of a filter's sums."""

    def initial(self, channels: Sequence[Expr]) -> list[Expr]: ...

    def store(self, output: Pointed, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None: ...


class Kept:
    """Sums stored as the result, or added to it."""

    def __init__(self, *, adds: bool) -> None:
        self._adds = adds

    def initial(self, channels: Sequence[Expr]) -> list[Expr]:
        return [0 for _ in channels]

    def store(self, output: Pointed, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None:
        for channel, total in zip(channels, sums, strict=True):
            place_of = place + channel
            output[place_of] = output[place_of] + total.value if self._adds else total.value


class Finish:
    """The arithmetic from sums to outputs, with the last two or three constants of a filter kernel."""

    def __init__(self, tile: Tile, constants: tuple[Pointed, ...]) -> None:
        self._fast = in_one_step(tile.net, tile.op)
        own = 2 if self._fast is None else 3
        self._bias = constants[0] if len(constants) > own else None
        self._multipliers, *self._addends, self._shifts = constants[-own:]
        self._zero = quantization(tile.net, tile.op.output).zero_point
        self._clamp = clamp_of(tile.op)
        chosen = slice(tile.output.box.start[-1], tile.output.box.stop[-1])
        self._only_right = bool((requantization(tile.net, tile.op).shifts[chosen] <= 0).all())
        self._ties = () if self._fast is None else set(self._fast.ties[chosen].tolist())

    def initial(self, channels: Sequence[Expr]) -> list[Expr]:
        """The initial values of the sums."""
        return [0 if self._bias is None else self._bias[channel] for channel in channels]

    def store(self, output: Pointed, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None:
        """Store the finished sums. `place`: the index of the pixel's first channel."""
        for channel, total in zip(channels, sums, strict=True):
            output[place + channel] = cast("int8", clamp(self._scaled(total.value, channel), *self._clamp))

    def begin_vector(self, sums: Expr, first: Expr, lanes: int) -> None:
        """Set the sums of `lanes` channels to their initial values."""
        assert self._bias
        do(call("vector_begin", sums, self._bias.address(first), lanes))

    def store_vector(self, output: Pointed, place: Expr, sums: Expr, first: Expr, lanes: int) -> None:
        """Store the finished sums of `lanes` channels."""
        constants = (each.address(first) for each in (self._multipliers, *self._addends, self._shifts))
        never, from_two, always = _MOST_SHIFT + 1, 2, 0
        ties = always if self._ties == {1 << (PRESCALED - 1)} else from_two if any(self._ties) else never
        do(call("vector_finish", output.address(place), sums, *constants, ties, *self._clamp, lanes))

    def _scaled(self, total: Expr, channel: Expr) -> Expr:
        shift = cast("int32", self._shifts[channel])
        if self._fast is not None:
            return self._in_one_step(total, channel) >> shift
        if self._only_right:
            return scale_down(total, self._multipliers[channel], 0 - shift) + self._zero
        return requantize(total, self._multipliers[channel], shift) + self._zero

    def _in_one_step(self, total: Expr, channel: Expr) -> Expr:
        (addends,) = self._addends
        scaled = high_half(total * (1 << PRESCALED), self._multipliers[channel]) + addends[channel]
        if not any(self._ties):
            return scaled
        tie = 1 << (PRESCALED - 1)
        below = (total >> 31) & tie
        return scaled - (below if 0 not in self._ties else select(self._shifts[channel] > 1, below, 0))


def rescaled(value: Expr, factor: Multiplier) -> Expr:
    return requantize(value, factor.multiplier, factor.shift)


def finished(tile: Tile, scaled: Expr) -> Expr:
    """The scaled result with the output's zero point, the op's clamp and the output's type."""
    dtype = tile.output.tensor.dtype
    limits = np.iinfo(dtype)
    low, high = clamp_of(tile.op) if dtype == "int8" else (int(limits.min), int(limits.max))
    return cast(dtype, clamp(scaled + quantization(tile.net, tile.op.output).zero_point, low, high))


def wide(value: Expr, zero: int = 0) -> Expr:
    """An int8 as an int32, minus the zero point."""
    return cast("int32", value) - zero
