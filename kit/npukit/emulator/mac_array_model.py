"""The MAC array's command in numpy: a second reading of the hardware manual, section 3, to check the emulator by."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np

COMMAND_BYTES = 96
_LAYOUT = struct.Struct("<I BBH 4I 2H 2i 2H 2i 2H 4B 4B 4b I 2i I bBbb 2i I")
_LARGEST_SHIFT = 31
_LEFT_SHIFT = 20
"""By which the operands of an addition are shifted up first."""


class Kind(IntEnum):
    CONVOLUTION = 1
    DEPTHWISE = 2
    ADD = 3
    MAXIMUM_POOL = 4
    AVERAGE_POOL = 5


class Flag(IntFlag):
    NONE = 0
    PIXELS = 1
    RAW = 2
    ACCUMULATE = 4
    RESIDUAL = 8


class Error(IntEnum):
    NONE = 0
    BUSY = 1
    PLACE = 2
    KIND = 3
    OPERAND = 4
    ALIGNMENT = 5
    FIELD = 6


@dataclass(frozen=True)
class Command:
    """The fields of a command, in the order of its words."""

    next: int = 0
    kind: int = 0
    flags: int = 0
    tag: int = 0
    input: int = 0
    weights: int = 0
    parameters: int = 0
    output: int = 0
    input_height: int = 0
    input_width: int = 0
    input_row_stride: int = 0
    input_pixel_stride: int = 0
    output_height: int = 0
    output_width: int = 0
    output_row_stride: int = 0
    output_pixel_stride: int = 0
    input_channels: int = 0
    output_channels: int = 0
    kernel_height: int = 0
    kernel_width: int = 0
    stride_y: int = 0
    stride_x: int = 0
    dilation_y: int = 0
    dilation_x: int = 0
    pad_top: int = 0
    pad_left: int = 0
    input_zero: int = 0
    output_zero: int = 0
    clamp_min: int = 0
    clamp_max: int = 0
    extra: int = 0
    extra_row_stride: int = 0
    extra_pixel_stride: int = 0
    residual_parameters: int = 0
    residual_zero: int = 0
    reserved_0: int = field(default=0, repr=False)
    residual_min: int = 0
    residual_max: int = 0
    second_row_stride: int = 0
    second_pixel_stride: int = 0
    reserved_1: int = field(default=0, repr=False)

    @classmethod
    def unpack(cls, data: bytes) -> Command:
        return cls(*_LAYOUT.unpack(data))

    def pack(self) -> bytes:
        return _LAYOUT.pack(*(getattr(self, each.name) for each in fields(self)))

    @property
    def effective(self) -> Flag:
        """The flags that apply to this kind."""
        applicable = {Kind.CONVOLUTION: Flag(15), Kind.DEPTHWISE: Flag.RESIDUAL}
        return Flag(self.flags & 15) & applicable.get(Kind(self.kind), Flag.NONE)

    @property
    def taps(self) -> int:
        return self.kernel_height * self.kernel_width

    @property
    def depth(self) -> int:
        """Products in one sum."""
        return self.taps * (self.input_channels if self.kind == Kind.CONVOLUTION else 1)

    @property
    def pixels(self) -> int:
        return self.output_height * self.output_width

    @property
    def filters(self) -> bool:
        return self.kind in (Kind.CONVOLUTION, Kind.DEPTHWISE)


class Array:
    """A MAC array and the SRAM it works on, a writable array of bytes."""

    def __init__(self, sram: np.ndarray, figures: Mapping[str, int]) -> None:
        self._sram = sram
        self._signed = sram.view(np.int8)
        self._figures = figures

    def execute(self, address: int) -> tuple[Error, int]:
        """Carry out the command at `address`: an error, or the cycles it takes."""
        if address % 16 or address + COMMAND_BYTES > len(self._sram):
            return Error.PLACE, 0
        command = Command.unpack(self._sram[address : address + COMMAND_BYTES].tobytes())
        error = self.check(command)
        if error is not Error.NONE:
            return error, 0
        self._store(command, self._compute(command))
        return Error.NONE, self.cycles(command)

    # --- what is refused

    def check(self, command: Command) -> Error:
        if command.kind not in list(Kind):
            return Error.KIND
        if not _fields_are_right(command):
            return Error.FIELD
        if not _aligned(command):
            return Error.ALIGNMENT
        return Error.NONE if all(map(self._inside, _extents(command, self._block(command)))) else Error.OPERAND

    def _inside(self, extent: tuple[int, int]) -> bool:
        return extent[0] >= 0 and extent[1] <= len(self._sram)

    # --- what is computed

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
        places = _places(command, "extra", command.output_height, command.output_width, command.output_channels, 4)
        return self._words(places)

    def _weights(self, command: Command) -> np.ndarray:
        """[channel, depth]"""
        block = self._block(command)
        blocks = _ceil_div(command.output_channels, block)
        size = blocks * command.depth * block
        packed = self._signed[command.weights : command.weights + size].astype(np.int64)
        ordered = packed.reshape(blocks, command.depth, block).transpose(0, 2, 1)
        return ordered.reshape(-1, command.depth)[: command.output_channels]

    def _parameters(self, command: Command) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Biases, multipliers and shifts of the channels."""
        block = self._block(command)
        blocks = _ceil_div(command.output_channels, block)
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
        extra = self._values(_output_places(command, "extra"))
        sums = self._added(values, extra, command.residual_parameters) + command.residual_zero
        return _clamp(sums, command.residual_min, command.residual_max)

    def _add(self, command: Command) -> np.ndarray:
        first, second = (self._values(_output_places(command, name)) for name in ("input", "second"))
        sums = self._added(first, second, command.parameters) + command.output_zero
        return _clamp(sums, command.clamp_min, command.clamp_max)

    def _added(self, a: np.ndarray, b: np.ndarray, address: int) -> np.ndarray:
        words = self._sram[address : address + 32].view("<i4").astype(np.int64)
        zero1, multiplier1, shift1, zero2, multiplier2, shift2, multiplier, shift = words
        first = requantize(_wrap(a - zero1 << _LEFT_SHIFT, 32), multiplier1, shift1)
        second = requantize(_wrap(b - zero2 << _LEFT_SHIFT, 32), multiplier2, shift2)
        return requantize(_wrap(first + second, 32), multiplier, shift)

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
        """Inputs under the kernel [y, x, ky, kx, channel], `outside` where there are none, and where there are."""
        c = command
        y = _positions(c.output_height, c.stride_y, c.kernel_height, c.dilation_y, c.pad_top)[:, None, :, None]
        x = _positions(c.output_width, c.stride_x, c.kernel_width, c.dilation_x, c.pad_left)[None, :, None, :]
        inside = (y >= 0) & (y < c.input_height) & (x >= 0) & (x < c.input_width)
        pixels = c.input + y * c.input_row_stride + x * c.input_pixel_stride
        places = np.where(inside, pixels, 0)[..., None] + np.arange(c.input_channels)
        return np.where(inside[..., None], self._values(places), outside), inside[..., None]

    # --- memory

    def _block(self, command: Command) -> int:
        """Channels of a block of weights or parameters."""
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
        places = _places(command, "output", *shape, size)[..., None] + np.arange(size)
        self._sram[places.reshape(-1)] = raw.reshape(-1)

    # --- cycles

    def cycles(self, command: Command) -> int:
        """Manual, section 3.5."""
        figures = self._figures
        width, blocks = figures["width"], _ceil_div(command.output_channels, figures["width"])
        steps = command.pixels * blocks
        match command.kind:
            case Kind.CONVOLUTION:
                work = self._convolution_cycles(command)
            case Kind.DEPTHWISE:
                residual = steps if Flag.RESIDUAL in command.effective else 0
                work = blocks * (self._parameter_cycles(width) + command.taps) + steps * (command.taps + 1) + residual
            case Kind.ADD:
                work = 3 * _ceil_div(command.pixels * command.output_channels, width)
            case _:
                work = steps * (command.taps + 1)
        return figures["setup_cycles"] + work

    def _convolution_cycles(self, command: Command) -> int:
        figures, flags = self._figures, command.effective
        channels_by, pixels_by = figures["width"], figures["lanes"]
        if Flag.PIXELS in flags:
            channels_by, pixels_by = pixels_by, channels_by
        blocks, groups = _ceil_div(command.output_channels, channels_by), _ceil_div(command.pixels, pixels_by)
        held, streamed = (blocks, groups) if Flag.PIXELS in flags else (groups, blocks)
        load = _ceil_div(figures["lanes"] * command.depth, figures["port_bytes"])
        loads = 1 if command.depth <= figures["operand_bytes_per_lane"] else streamed
        write_back = self._write_back_cycles(flags)
        return (
            blocks * self._parameter_cycles(channels_by)
            + load * held * loads
            + groups * blocks * (command.depth + write_back)
        )

    def _write_back_cycles(self, flags: Flag) -> int:
        results = self._figures["width"] * self._figures["lanes"] // self._figures["port_bytes"]
        output = 4 * results if Flag.RAW in flags else results
        extra = 4 * results if Flag.ACCUMULATE in flags else results if Flag.RESIDUAL in flags else 0
        return output + extra

    def _parameter_cycles(self, channels: int) -> int:
        return _ceil_div(channels * self._figures["parameter_bytes_per_channel"], self._figures["port_bytes"])


def requantize(values: np.ndarray, multiplier: Any, shift: Any) -> np.ndarray:
    """TFLite's: a saturating, rounding, doubling high multiplication, then a rounding division by a power of two."""
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
    return np.where(values < low, low, np.minimum(values, high))


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _positions(outputs: int, stride: int, kernel: int, dilation: int, padding: int) -> np.ndarray:
    """[output, tap]"""
    return np.arange(outputs)[:, None] * stride + np.arange(kernel)[None, :] * dilation - padding


def _stride(command: Command, name: str) -> tuple[int, int]:
    return getattr(command, f"{name}_row_stride"), getattr(command, f"{name}_pixel_stride")


def _base(command: Command, name: str) -> int:
    return command.weights if name == "second" else getattr(command, name)


def _places(command: Command, name: str, height: int, width: int, channels: int, size: int) -> np.ndarray:
    """Address of each element [height, width, channels]."""
    rows, pixels = _stride(command, name)
    y, x, c = np.arange(height)[:, None, None], np.arange(width)[None, :, None], np.arange(channels)
    return _base(command, name) + y * rows + x * pixels + c * size


def _output_places(command: Command, name: str) -> np.ndarray:
    """Addresses of an int8 tensor of the output's shape."""
    return _places(command, name, command.output_height, command.output_width, command.output_channels, 1)


def _fields_are_right(command: Command) -> bool:
    c, flags = command, command.effective
    sizes = [c.output_height, c.output_width, c.output_channels]
    if c.kind != Kind.ADD:
        sizes += [c.input_height, c.input_width, c.input_channels, c.kernel_height, c.kernel_width]
        sizes += [c.stride_y, c.stride_x, c.dilation_y, c.dilation_x]
    same = c.kind in (Kind.CONVOLUTION, Kind.ADD) or c.input_channels == c.output_channels
    return all(sizes) and same and not (Flag.RESIDUAL in flags and flags & (Flag.ACCUMULATE | Flag.RAW))


def _aligned(command: Command) -> bool:
    weights = command.weights % 16 == 0 or not command.filters
    parameters = command.parameters % 4 == 0 or command.kind in (Kind.MAXIMUM_POOL, Kind.AVERAGE_POOL)
    residual = command.residual_parameters % 4 == 0 or Flag.RESIDUAL not in command.effective
    return weights and parameters and residual


def _extents(command: Command, block: int) -> list[tuple[int, int]]:
    """First and last address of everything the command touches."""
    c, flags = command, command.effective
    channels = _ceil_div(c.output_channels, block) * block
    output = (c.output_height, c.output_width, c.output_channels)
    size = 4 if Flag.RAW in flags else 1
    found = [_extent(c, "output", *output, size), (0, size * c.pixels * c.output_channels)]
    if c.kind == Kind.ADD:
        found += [_extent(c, "input", *output, 1), _extent(c, "second", *output, 1), _run(c.parameters, 32)]
    else:
        found.append(_extent(c, "input", c.input_height, c.input_width, c.input_channels, 1))
    if c.filters:
        found += [_run(c.weights, channels * c.depth), _run(c.parameters, channels * 9)]
    if flags & (Flag.ACCUMULATE | Flag.RESIDUAL):
        found.append(_extent(c, "extra", *output, 4 if Flag.ACCUMULATE in flags else 1))
    if Flag.RESIDUAL in flags:
        found.append(_run(c.residual_parameters, 32))
    return found


def _run(base: int, size: int) -> tuple[int, int]:
    return base, base + size


def _extent(command: Command, name: str, height: int, width: int, channels: int, size: int) -> tuple[int, int]:
    rows, pixels = _stride(command, name)
    corners = [y * rows + x * pixels for y in (0, height - 1) for x in (0, width - 1)]
    base = _base(command, name)
    return base + min(corners), base + max(corners) + channels * size
