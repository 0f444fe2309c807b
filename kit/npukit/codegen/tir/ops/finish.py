"""The finish of every filter's sums: start from the bias, requantise, clamp, store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Array, Expr, Local, cast
from npukit.codegen.tir.ops.fixed_point import clamp, requantize, scale_down
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, TransposeConv2d
from npukit.net.requantize import quantization, requantization


class Sink(Protocol):
    """The destination of a filter's sums."""

    def start(self, channels: Sequence[Expr]) -> list[Local]: ...

    def store(self, output: Array, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None: ...


class Kept:
    """They are the result."""

    def start(self, channels: Sequence[Expr]) -> list[Local]:
        return [Local("sum", "int32", 0) for _ in channels]

    def store(self, output: Array, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None:
        for channel, total in zip(channels, sums, strict=True):
            output[place + channel] = total.value


class Finish:
    """The last two or three constants of a filter kernel, and what it does with them."""

    def __init__(self, tile: Tile, constants: tuple[Array, ...]) -> None:
        attributes = tile.op.attributes
        assert isinstance(attributes, Conv2d | DepthwiseConv2d | Dense | TransposeConv2d)
        self._bias = constants[0] if len(constants) == 3 else None
        self._multipliers, self._shifts = constants[-2:]
        self._zero = quantization(tile.net, tile.op.output).zero_point
        self._clamp = attributes.clamp
        chosen = slice(tile.output.box.start[-1], tile.output.box.stop[-1])
        self._only_right = bool((requantization(tile.net, tile.op).shifts[chosen] <= 0).all())

    def start(self, channels: Sequence[Expr]) -> list[Local]:
        return [Local("sum", "int32", 0 if self._bias is None else self._bias[channel]) for channel in channels]

    def store(self, output: Array, place: Expr, channels: Sequence[Expr], sums: Sequence[Local]) -> None:
        """The finished sums, from `place` on, where the pixel's first channel lies."""
        for channel, total in zip(channels, sums, strict=True):
            shifted = self._scaled(total.value, channel) + self._zero
            output[place + channel] = cast("int8", clamp(shifted, self._clamp))

    def _scaled(self, total: Expr, channel: Expr) -> Expr:
        shift = cast("int32", self._shifts[channel])
        if self._only_right:
            return scale_down(total, self._multipliers[channel], 0 - shift)
        return requantize(total, self._multipliers[channel], shift)


def wide(value: Expr, zero: int = 0) -> Expr:
    """An int8 as an int32 without its zero point."""
    return cast("int32", value) - zero
