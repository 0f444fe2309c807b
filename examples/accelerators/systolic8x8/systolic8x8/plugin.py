"""The systolic array as a plug-in: supported ops, costs, sizes of passes, and the call of the driver."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.accel.filters import tile_filter
from npukit.accel.geometry import Plane, depth_of, window_of
from npukit.accel.interface import Address, Call, Choice, CommandFormat, ConstantArray, Cost, Lowered, Tile
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense
from npukit.net.requantize import quantization

from .cycles import Figures

HERE = Path(__file__).resolve().parent
SIDE = 8
CHANNEL_WORDS = 3
LAYER = (
    "input_height", "input_width", "input_channels", "input_row_stride", "input_pixel_stride",
    "output_height", "output_width", "output_channels", "output_row_stride", "output_pixel_stride",
    "kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "pad_top", "pad_left",
    "input_zero", "output_zero", "clamp_min", "clamp_max", "rows_at_once",
)  # fmt: skip
"""The words of the constant `layer`: `enum systolic8x8_layer` of the driver."""


class Systolic8x8:
    """Convolutions with a single group, and dense layers. The core requantises."""

    name = "systolic8x8"
    version = "1.0"
    commands: CommandFormat | None = None
    model: Path | None = HERE / "model" / "systolic8x8_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.figures = Figures(**slot.figures)

    def refusal(self, net: Net, op: Op) -> str | None:
        if not isinstance(op.attributes, Conv2d | Dense):
            return f"the systolic array multiplies matrices, and {op.kind} is none"
        if op.inputs[1] not in net.constants:
            return "the weights are not constant"
        if any(net.tensor(name).dtype != "int8" for name in (*op.inputs[:2], op.output)):
            return "the systolic array takes int8 and the driver gives int8"
        if isinstance(op.attributes, Conv2d):
            return self._refusal_of_convolution(net, op)
        return self._too_deep(net, op)

    def _refusal_of_convolution(self, net: Net, op: Op) -> str | None:
        batch, channels = net.tensor(op.output).shape[0], net.tensor(op.inputs[0]).shape[-1]
        if batch != 1:
            return f"a batch of {batch}: the driver takes one"
        groups = channels // net.tensor(op.inputs[1]).shape[-1]
        return f"{groups} groups: the systolic array has one" if groups != 1 else self._too_deep(net, op)

    def _too_deep(self, net: Net, op: Op) -> str | None:
        depth = padded(depth_of(net, op))
        room = self.figures.scratchpad_bytes
        return f"a sum of {depth} products, the scratchpad holds {room}" if depth > room else None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        plane, depth = Plane.of(output), padded(depth_of(net, op))
        weights = padded(plane.channels) * depth
        constants = weights + 4 * CHANNEL_WORDS * plane.channels + 4 * len(LAYER)
        rows, channels = self._rows_at_once(op, plane.width, depth), net.tensor(op.inputs[0]).shape[-1]
        cycles = self.figures.cycles(plane, depth, window_of(net, op).taps, channels, rows)
        return Cost(cycles, constants, scratch_bytes=4 * SIDE * rows)

    def choices(self, net: Net, op: Op) -> list[Choice]:
        """Pixels of a pass: as many as fit, or half or a quarter, for shorter waits of the core."""
        most = self._most_at_once(net, op)
        return [Choice(f"{rows} pixels") for rows in (most, most // 2, most // 4) if rows]

    def _most_at_once(self, net: Net, op: Op) -> int:
        plane = Plane.of(Box.whole(net.tensor(op.output).shape))
        return self.figures.rows_at_once(plane.width, padded(depth_of(net, op)))

    def _rows_at_once(self, op: Op, width: int, depth: int) -> int:
        fitting = self.figures.rows_at_once(width, depth)
        return min(fitting, int(op.choice.split()[0])) if op.choice else fitting

    def lower(self, tile: Tile) -> Lowered:
        assert tile.scratch is not None
        weights, channels = tile_filter(tile)
        constants = (
            ConstantArray(f"{tile.name}_weights", _blocks(weights), 16, "weights [channel / 8][product][8 channels]"),
            ConstantArray(f"{tile.name}_channels", channels, 4, "of each channel: bias, multiplier, shift"),
            ConstantArray(f"{tile.name}_layer", self._layer(tile), 4, "sizes, strides and limits"),
        )
        places = (tile.inputs[0].address, *(Address(c.symbol) for c in constants), tile.scratch, tile.output.address)
        return Lowered(constants, Call("systolic8x8_layer", places))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        return (HERE / "firmware" / ("systolic8x8.c" if slot and slot.base is not None else "systolic8x8_on_core.c"),)

    def _layer(self, tile: Tile) -> np.ndarray:
        values = _sizes(tile) | _window(tile) | _limits(tile)
        rows = self._rows_at_once(tile.op, values["output_width"], padded(depth_of(tile.net, tile.op)))
        return np.array([(values | {"rows_at_once": rows})[word] for word in LAYER], np.int32)


def padded(count: int) -> int:
    """The count, rounded up to a multiple of the array's side."""
    return -(-count // SIDE) * SIDE


def _blocks(weights: np.ndarray) -> np.ndarray:
    room = np.zeros((padded(weights.shape[0]), padded(weights.shape[1])), np.int8)
    room[: weights.shape[0], : weights.shape[1]] = weights
    return np.ascontiguousarray(room.reshape(-1, SIDE, room.shape[1]).transpose(0, 2, 1))


def _sizes(tile: Tile) -> dict[str, int]:
    values: dict[str, int] = {}
    for which, operand in (("input", tile.inputs[0]), ("output", tile.output)):
        plane = Plane.of(operand.box)
        values |= {f"{which}_height": plane.height, f"{which}_width": plane.width, f"{which}_channels": plane.channels}
        values |= {f"{which}_row_stride": operand.row_stride, f"{which}_pixel_stride": operand.pixel_stride}
    return values


def _window(tile: Tile) -> dict[str, int]:
    window = window_of(tile.net, tile.op)
    top, left = window.padding_of(tile.output.box, tile.inputs[0].box)
    names = ("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x", "pad_top", "pad_left")
    return dict(zip(names, (*window.kernel, *window.strides, *window.dilation, top, left), strict=True))


def _limits(tile: Tile) -> dict[str, int]:
    attributes = tile.op.attributes
    assert isinstance(attributes, Conv2d | Dense)
    zeros = (quantization(tile.net, name).zero_point for name in (tile.op.inputs[0], tile.op.output))
    return dict(zip(("input_zero", "output_zero", "clamp_min", "clamp_max"), (*zeros, *attributes.clamp), strict=True))
