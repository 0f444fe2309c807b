"""Random commands for the MAC array: every kind and flag, strides, padding, shapes; most of them valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from oracles.mac_array_command import Command, Flag, Kind, weight_bytes

SRAM_BYTES = 0x2_0000
FIRST_FREE, FIRST_STACK = 0x2000, 0x1_F000
"""Free SRAM: program, results and command lie below, the stack above."""


class Shelf:
    """Allocator of consecutive places in the SRAM."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self._next = FIRST_FREE

    def take(self, size: int, align: int) -> int:
        place = -(-self._next // align) * align
        self._next = place + size + int(self._random.integers(0, 20))
        return place

    @property
    def full(self) -> bool:
        return self._next > FIRST_STACK


def random_command(random: np.random.Generator, sram: np.ndarray) -> Command:
    """A command with its operands in the SRAM. Writes sensible parameters to `sram`."""
    while True:
        shelf = Shelf(random)
        command = _COMMANDS[Kind(int(random.integers(1, 6)))](random, shelf, sram)
        if not shelf.full:
            return command


def spoilt(random: np.random.Generator, command: Command) -> Command:
    """The command with one field changed, mostly to an invalid value."""
    changes = [
        {"kind": int(random.choice([0, 6, 255]))},
        {"output": SRAM_BYTES - 1},
        {"input": SRAM_BYTES + 1},
        {"weights": command.weights + 1},
        {"parameters": command.parameters + 2},
        {"output_channels": 0},
        {"stride_y": 0},
        {"kernel_width": 0},
        {"input_row_stride": -(1 << 20)},
        {"flags": int(random.integers(0, 128)), **_added(command)},
        {"input_channels": command.input_channels + 1},
        {"output_pixel_stride": 1 << 30},
    ]
    return replace(command, **changes[int(random.integers(len(changes)))])


def _added(command: Command) -> dict[str, int]:
    """Operands to add, in free SRAM also where the command has none: below lies what the model does not know."""
    return {"extra": command.extra or command.input, "residual_parameters": command.residual_parameters or FIRST_FREE}


def overlaps(command: Command) -> bool:
    """True if the output overlaps itself, or an operand with which it does not coincide exactly. Compares bytes."""
    if command.kind not in list(Kind) or not (command.output_height and command.output_width):
        return False
    size = 4 if _flags(command) & Flag.RAW else 1
    form = (command.output_height, command.output_width, size * command.output_channels)
    output = _bytes(command.output, command.output_row_stride, command.output_pixel_stride, *form)
    if len(set(output.tolist())) < output.size:
        return True
    return any(
        not (elementwise and np.array_equal(operand, output)) and bool(np.isin(operand, output).any())
        for operand, elementwise in _operands(command)
    )


def _flags(command: Command) -> Flag:
    return command.effective if command.kind in list(Kind) else Flag.NONE


def _bytes(base: int, row: int, pixel: int, height: int, width: int, size: int) -> np.ndarray:
    y, x, c = np.ogrid[:height, :width, :size]
    return (base + y * row + x * pixel + c).reshape(-1)


def _operands(command: Command) -> Iterator[tuple[np.ndarray, bool]]:
    """The bytes of each operand, and True if a result needs only the operand's element at the same position."""
    add, flags = command.kind == Kind.ADD, _flags(command)
    output = (command.output_height, command.output_width, command.output_channels)
    form = output if add else (command.input_height, command.input_width, command.input_channels)
    yield _bytes(command.input, command.input_row_stride, command.input_pixel_stride, *form), add
    if add:
        yield _bytes(command.weights, command.second_row_stride, command.second_pixel_stride, *output), True
        yield np.arange(command.parameters, command.parameters + 32), False
    if flags & (Flag.RESIDUAL | Flag.ACCUMULATE):
        size = (4 if flags & Flag.ACCUMULATE else 1) * command.output_channels
        place = (command.extra, command.extra_row_stride, command.extra_pixel_stride)
        yield _bytes(*place, command.output_height, command.output_width, size), True
    if flags & Flag.RESIDUAL:
        yield np.arange(command.residual_parameters, command.residual_parameters + 32), False
    if Flag.SECOND in flags:
        rows, size = command.second_rows
        yield _bytes(command.weights, command.second_row_stride, 0, rows, 1, size), False
    if command.kind in (Kind.CONVOLUTION, Kind.DEPTHWISE):
        yield from ((constants, False) for constants in _constants(command, 4 if flags & Flag.PIXELS else 16))


def _constants(command: Command, block: int) -> Iterator[np.ndarray]:
    channels = -(-command.output_channels // block) * block
    if Flag.SECOND not in _flags(command):
        yield np.arange(command.weights, command.weights + weight_bytes(command, block))
    yield np.arange(command.parameters, command.parameters + channels * 9)


def _between(random: np.random.Generator, low: int, high: int) -> int:
    return int(random.integers(low, high + 1))


def _window(random: np.random.Generator, channels: int, shelf: Shelf) -> Command:
    """Input, kernel and output sizes that roughly match: overhang is padding."""
    kernel_height, kernel_width = _between(random, 1, 4), _between(random, 1, 4)
    height, width = _between(random, 1, 9), _between(random, 1, 9)
    command = Command(
        input_height=height,
        input_width=width,
        input_channels=channels,
        output_height=_between(random, 1, 7),
        output_width=_between(random, 1, 7),
        kernel_height=kernel_height,
        kernel_width=kernel_width,
        stride_y=_between(random, 1, 3),
        stride_x=_between(random, 1, 3),
        dilation_y=_between(random, 1, 2),
        dilation_x=_between(random, 1, 2),
        pad_top=_between(random, 0, kernel_height),
        pad_left=_between(random, 0, kernel_width),
    )
    return replace(command, **_tensor(random, shelf, "input", height, width, channels))


def _vectors(random: np.random.Generator, shelf: Shelf) -> Command:
    """One to three vectors, long enough for many accesses to their weights."""
    count, channels = _between(random, 1, 3), _between(random, 1, 700)
    sizes = {"input_width": count, "output_width": count, "input_channels": channels}
    ones = ("input_height", "output_height", "kernel_height", "kernel_width")
    steps = ("stride_y", "stride_x", "dilation_y", "dilation_x")
    command = Command(**sizes, **dict.fromkeys((*ones, *steps), 1))
    return replace(command, **_tensor(random, shelf, "input", 1, count, channels))


def _tensor(random: np.random.Generator, shelf: Shelf, name: str, height: int, width: int, size: int) -> dict[str, int]:
    """Base and strides of a tensor with gaps between pixels and rows, sometimes upside down."""
    pixel = size + _between(random, 0, 3)
    row = width * pixel + _between(random, 0, 9)
    base = shelf.take(height * row, 1)
    strides = {f"{name}_row_stride": row, f"{name}_pixel_stride": pixel}
    if random.random() < 0.1:
        base, strides[f"{name}_row_stride"] = base + (height - 1) * row, -row
    return {"weights" if name == "second" else name: base, **strides}


def _output(random: np.random.Generator, shelf: Shelf, command: Command, size: int) -> dict[str, int]:
    place = _tensor(
        random, shelf, "output", command.output_height, command.output_width, size * command.output_channels
    )
    low, high = sorted(int(value) for value in random.integers(-128, 128, 2))
    return {**place, "output_zero": _between(random, -128, 127), "clamp_min": low, "clamp_max": high}


def _convolution(random: np.random.Generator, shelf: Shelf, sram: np.ndarray) -> Command:
    dense = random.random() < 0.15
    command = _vectors(random, shelf) if dense else _window(random, _between(random, 1, 40), shelf)
    flags = Flag(int(random.choice([0, 2, 4, 6, 8]))) | Flag(int(random.choice([0, 1, 0, 1, 16, 17, 32, 33, 48])))
    channels = _between(random, 1, 100 if dense else 40)
    command = replace(command, kind=Kind.CONVOLUTION, flags=flags, output_channels=channels)
    return _with_filter(random, shelf, sram, command, 4 if Flag.PIXELS in flags else 16)


def _depthwise(random: np.random.Generator, shelf: Shelf, sram: np.ndarray) -> Command:
    channels = _between(random, 1, 40)
    command = replace(_window(random, channels, shelf), kind=Kind.DEPTHWISE, output_channels=channels)
    # PIXELS, RAW, ACCUMULATE and SECOND do not apply, and must not matter.
    flags = Flag(int(random.choice([0, 8, 16, 24, 32, 40]))) | Flag(_between(random, 0, 7))
    return _with_filter(random, shelf, sram, replace(command, flags=flags), 16)


def _with_filter(random: np.random.Generator, shelf: Shelf, sram: np.ndarray, command: Command, block: int) -> Command:
    channels = -(-command.output_channels // block) * block
    effective = command.effective
    command = replace(
        command,
        **_weights(random, shelf, command, channels),
        parameters=shelf.take(channels * 9, 4),
        input_zero=_between(random, -128, 127),
        **_output(random, shelf, command, 4 if Flag.RAW in effective else 1),
    )
    _fill_parameters(random, sram, command.parameters, channels // block, block)
    return _with_extra(random, shelf, sram, command)


def _weights(random: np.random.Generator, shelf: Shelf, command: Command, channels: int) -> dict[str, int]:
    if Flag.SECOND not in command.effective:
        return {"weights": shelf.take(channels * command.depth, 16)}
    second = _tensor(random, shelf, "second", command.second_rows[0], 1, command.second_rows[1])
    return {**second, "second_zero": _between(random, -128, 127)}


def _with_extra(random: np.random.Generator, shelf: Shelf, sram: np.ndarray, command: Command) -> Command:
    effective = command.effective
    if not effective & (Flag.ACCUMULATE | Flag.RESIDUAL):
        return command
    size = command.output_channels * (4 if Flag.ACCUMULATE in effective else 1)
    command = replace(command, **_tensor(random, shelf, "extra", command.output_height, command.output_width, size))
    if Flag.RESIDUAL in effective:
        low, high = sorted(int(value) for value in random.integers(-128, 128, 2))
        constants = {"residual_zero": _between(random, -128, 127), "residual_min": low, "residual_max": high}
        command = replace(command, residual_parameters=_addition(random, shelf, sram), **constants)
    return command


def _fill_parameters(random: np.random.Generator, sram: np.ndarray, place: int, blocks: int, block: int) -> None:
    stored = np.dtype([("bias", "<i4", block), ("multiplier", "<i4", block), ("shift", "i1", block)])
    records = np.zeros(blocks, stored)
    # Covers sums that overflow 29 bits, and multipliers at the limits.
    records["bias"] = random.integers(-(1 << 31), 1 << 31, records["bias"].shape) >> random.choice([0, 3, 16])
    records["multiplier"] = random.integers(1 << 30, 1 << 31, records["multiplier"].shape)
    records["shift"] = random.integers(-12, 3, records["shift"].shape)
    if random.random() < 0.1:
        records["multiplier"], records["shift"] = -(1 << 31), random.integers(-128, 128, records["shift"].shape)
    raw = records.view(np.uint8)
    sram[place : place + raw.size] = raw


def _addition(random: np.random.Generator, shelf: Shelf, sram: np.ndarray) -> int:
    place = shelf.take(32, 4)
    zeros, multipliers = random.integers(-128, 128, 2), random.integers(1 << 30, 1 << 31, 3)
    shifts = random.integers(-4, 2), random.integers(-4, 2), random.integers(-22, -14)
    values = [zeros[0], multipliers[0], shifts[0], zeros[1], multipliers[1], shifts[1], multipliers[2], shifts[2]]
    sram[place : place + 32] = np.array(values, "<i4").view(np.uint8)
    return place


def _add(random: np.random.Generator, shelf: Shelf, sram: np.ndarray) -> Command:
    shape = [_between(random, 1, 7), _between(random, 1, 7), _between(random, 1, 40)]
    command = Command(kind=Kind.ADD, output_height=shape[0], output_width=shape[1], output_channels=shape[2])
    command = replace(command, **_tensor(random, shelf, "input", *shape), **_tensor(random, shelf, "second", *shape))
    command = replace(command, parameters=_addition(random, shelf, sram), **_output(random, shelf, command, 1))
    if random.random() < 0.5:
        command = replace(command, flags=Flag.PRODUCT)
        sram[command.parameters :][:32].view("<i4")[[2, 5]] = random.integers(-12, -6), random.integers(-2, 3)
        sram[command.parameters :][:32].view("<i4")[7] = random.integers(-12, 0)
    in_place = {name.replace("input", "output"): getattr(command, name) for name in _INPUT_PLACE}
    strides = (f"{operand}_{axis}_stride" for operand in ("input", "second") for axis in ("row", "pixel"))
    broadcast = {stride: 0 for stride in strides if random.random() < 0.2}
    return replace(command, **(in_place if random.random() < 0.3 else broadcast))


def _pool(random: np.random.Generator, shelf: Shelf, sram: np.ndarray) -> Command:
    del sram
    channels = _between(random, 1, 40)
    kind = Kind.MAXIMUM_POOL if random.random() < 0.5 else Kind.AVERAGE_POOL
    command = replace(_window(random, channels, shelf), kind=kind, output_channels=channels)
    return replace(command, **_output(random, shelf, command, 1))


_INPUT_PLACE = ("input", "input_row_stride", "input_pixel_stride")
_COMMANDS = {
    Kind.CONVOLUTION: _convolution,
    Kind.DEPTHWISE: _depthwise,
    Kind.ADD: _add,
    Kind.MAXIMUM_POOL: _pool,
    Kind.AVERAGE_POOL: _pool,
}
