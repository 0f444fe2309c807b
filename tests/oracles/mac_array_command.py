"""The MAC array's command: the fields and the hardware's checks. Hardware manual, sections 3.1 and 3.2."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, fields
from enum import IntEnum, IntFlag

import numpy as np

COMMAND_BYTES = 96
_LAYOUT = struct.Struct("<I BBH 4I 2H 2i 2H 2i 2H 4B 4B 4b I 2i I 4b 2i I")


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
    SECOND = 16
    NIBBLES = 32
    PRODUCT = 64


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
    """Fields of a command, in the order of its words."""

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
    second_zero: int = 0
    residual_min: int = 0
    residual_max: int = 0
    second_row_stride: int = 0
    second_pixel_stride: int = 0
    reserved_0: int = field(default=0, repr=False)

    @classmethod
    def unpack(cls, data: bytes) -> Command:
        return cls(*_LAYOUT.unpack(data))

    def pack(self) -> bytes:
        return _LAYOUT.pack(*(getattr(self, each.name) for each in fields(self)))

    @property
    def effective(self) -> Flag:
        """Flags with an effect in this kind of command."""
        applicable = {
            Kind.CONVOLUTION: ~Flag.NONE,
            Kind.DEPTHWISE: Flag.RESIDUAL | Flag.NIBBLES,
            Kind.ADD: Flag.PRODUCT,
        }
        flags = Flag(self.flags & 127) & applicable.get(Kind(self.kind), Flag.NONE)
        return flags & ~Flag.NIBBLES if Flag.SECOND in flags else flags

    @property
    def taps(self) -> int:
        return self.kernel_height * self.kernel_width

    @property
    def depth(self) -> int:
        """Products in one sum."""
        return self.taps * (self.input_channels if self.kind == Kind.CONVOLUTION else 1)

    @property
    def second_rows(self) -> tuple[int, int]:
        """Rows of a convolution's second input, and bytes per row."""
        products, channels = self.depth, self.output_channels
        return (channels, products) if Flag.PIXELS in self.effective else (products, channels)

    @property
    def pixels(self) -> int:
        return self.output_height * self.output_width

    @property
    def filters(self) -> bool:
        return self.kind in (Kind.CONVOLUTION, Kind.DEPTHWISE)


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _stride(command: Command, name: str) -> tuple[int, int]:
    return getattr(command, f"{name}_row_stride"), getattr(command, f"{name}_pixel_stride")


def _base(command: Command, name: str) -> int:
    return command.weights if name == "second" else getattr(command, name)


def places_of(command: Command, name: str, height: int, width: int, channels: int, size: int) -> np.ndarray:
    """Address of each element [height, width, channels]."""
    rows, pixels = _stride(command, name)
    y, x, c = np.arange(height)[:, None, None], np.arange(width)[None, :, None], np.arange(channels)
    return _base(command, name) + y * rows + x * pixels + c * size


def output_places(command: Command, name: str) -> np.ndarray:
    """Addresses of an int8 tensor of the output's shape."""
    return places_of(command, name, command.output_height, command.output_width, command.output_channels, 1)


def fields_are_right(command: Command) -> bool:
    c, flags = command, command.effective
    sizes = [c.output_height, c.output_width, c.output_channels]
    if c.kind != Kind.ADD:
        sizes += [c.input_height, c.input_width, c.input_channels, c.kernel_height, c.kernel_width]
        sizes += [c.stride_y, c.stride_x, c.dilation_y, c.dilation_x]
    same = c.kind in (Kind.CONVOLUTION, Kind.ADD) or c.input_channels == c.output_channels
    return all(sizes) and same and not (Flag.RESIDUAL in flags and flags & (Flag.ACCUMULATE | Flag.RAW))


def is_aligned(command: Command) -> bool:
    weights = command.weights % 16 == 0 or not command.filters or Flag.SECOND in command.effective
    parameters = command.parameters % 4 == 0 or command.kind in (Kind.MAXIMUM_POOL, Kind.AVERAGE_POOL)
    residual = command.residual_parameters % 4 == 0 or Flag.RESIDUAL not in command.effective
    return weights and parameters and residual


def columns(command: Command, block: int, left: int) -> int:
    """Weights of a product in a block of which `left` channels exist: of a convolution 4, 8 or all 16."""
    narrow = command.kind == Kind.CONVOLUTION and not command.effective & (Flag.PIXELS | Flag.SECOND)
    sizes = (block // 2, block) if Flag.NIBBLES in command.effective else (block // 4, block // 2, block)
    return next(each for each in sizes if each >= left) if narrow else block


def weight_rows(command: Command) -> int:
    """Rows of weights in a block, with unused rows."""
    return command.depth + command.depth % 2 * (Flag.NIBBLES | Flag.PIXELS in command.effective)


def weight_bytes(command: Command, block: int) -> int:
    full, left = divmod(command.output_channels, block)
    weights = weight_rows(command) * (full * block + (columns(command, block, left) if left else 0))
    return weights // 2 if Flag.NIBBLES in command.effective else weights


def extents(command: Command, block: int) -> list[tuple[int, int]]:
    """First and last address of each operand of the command."""
    c, flags = command, command.effective
    channels = ceil_div(c.output_channels, block) * block
    output = (c.output_height, c.output_width, c.output_channels)
    size = 4 if Flag.RAW in flags else 1
    found = [_extent(c, "output", *output, size), (0, size * c.pixels * c.output_channels)]
    if c.kind == Kind.ADD:
        found += [_extent(c, "input", *output, 1), _extent(c, "second", *output, 1), _run(c.parameters, 32)]
    else:
        found.append(_extent(c, "input", c.input_height, c.input_width, c.input_channels, 1))
    if c.filters:
        found += [_weights(c, block), _run(c.parameters, channels * 9)]
    if Flag.SECOND in flags:
        found.append((0, c.depth * c.output_channels))
    if flags & (Flag.ACCUMULATE | Flag.RESIDUAL):
        found.append(_extent(c, "extra", *output, 4 if Flag.ACCUMULATE in flags else 1))
    if Flag.RESIDUAL in flags:
        found.append(_run(c.residual_parameters, 32))
    return found


def _weights(command: Command, block: int) -> tuple[int, int]:
    if Flag.SECOND not in command.effective:
        return _run(command.weights, weight_bytes(command, block))
    rows, size = command.second_rows
    last = (rows - 1) * command.second_row_stride
    return command.weights + min(last, 0), command.weights + max(last, 0) + size


def _run(base: int, size: int) -> tuple[int, int]:
    return base, base + size


def _extent(command: Command, name: str, height: int, width: int, channels: int, size: int) -> tuple[int, int]:
    rows, pixels = _stride(command, name)
    corners = [y * rows + x * pixels for y in (0, height - 1) for x in (0, width - 1)]
    base = _base(command, name)
    return base + min(corners), base + max(corners) + channels * size
