"""Sums, differences and products of two tensors on the array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.accel.geometry import Plane
from npukit.accel.interface import Address, ConstantArray, Operand, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Multiply
from npukit.net.requantize import (
    ADD_LEFT_SHIFT,
    AddRescaling,
    Multiplier,
    add_rescaling,
    product_rescaling,
    quantization,
    rescale,
    subtract_rescaling,
)

_OF_A_FACTOR = Multiplier(1 << 30, -4)
"""The factor of both operands of a product. With the doubling high product they lose the bits of their left shifts."""
LARGEST_PRODUCT_SHIFT = 14
"""The largest left shift of a product in 32 bits."""


def broadcasts(net: Net, op: Op) -> bool:
    """True if strides of 0 spread each operand over the result. A constant may lack leading axes, but is no scalar."""
    made = net.tensor(op.output).shape
    return all(
        _fits(_padded(each.shape, len(made)), made)
        and (each.elements > 1 if each.name in net.constants else len(each.shape) == len(made))
        for each in map(net.tensor, op.inputs)
    )


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


def _fits(shape: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """True if all channels are there, and strides of 0 reach the other pixels."""
    image = len(shape) == 4 and shape[0] == made[0]
    return shape == made or (shape[-1:] == made[-1:] and (image or shape[:-1] == (1,) * (len(shape) - 1)))


def held_bytes(net: Net, op: Op, plane: Plane) -> int:
    """Bytes of an addition's constant operand for a plane of the output."""
    name = next((each for each in op.inputs if each in net.constants), None)
    if name is None:
        return 0
    own = plane_of(net, op, name)
    return (plane.height if own.height > 1 else 1) * (plane.width if own.width > 1 else 1) * plane.channels


def plane_of(net: Net, op: Op, name: str) -> Plane:
    """The plane of an addition's operand, before it broadcasts."""
    return Plane.of(Box.whole(_padded(net.tensor(name).shape, len(net.tensor(op.output).shape))))


def operands(tile: Tile) -> tuple[tuple[Operand, ...], tuple[ConstantArray, ...]]:
    """Both operands of an addition; of a constant operand only the part for the tile, behind the activation."""
    plane = Plane.of(tile.output.box)
    other, held = ((), ()) if len(tile.inputs) > 1 else _held(tile)
    return tuple(_once_for_all(each, plane) for each in (*tile.inputs, *other)), held


def _held(tile: Tile) -> tuple[tuple[Operand], tuple[ConstantArray]]:
    """The part of the constant operand for the tile, and the array of it."""
    box = tile.output.box
    symbol = f"{tile.name}_operand"
    name = next(each for each in tile.op.inputs if each in tile.net.constants)
    shape = _padded(tile.net.tensor(name).shape, len(box.shape))
    spans = zip(shape, box.start, box.stop, strict=True)
    taken = Box(*zip(*((0, 1) if size == 1 else span for size, *span in spans), strict=True))
    part = tile.net.constants[name].reshape(shape)[taken.slices]
    own = Plane.of(taken)
    held = ConstantArray(symbol, np.ascontiguousarray(part), 1, "a constant operand")
    return (Operand(tile.net.tensor(name), taken, Address(symbol), own.width * own.channels, own.channels),), (held,)


def _once_for_all(operand: Operand, made: Plane) -> Operand:
    """The operand with stride 0 along each axis of size 1 that broadcasts to the output."""
    own = Plane.of(operand.box)
    return replace(
        operand,
        row_stride=operand.row_stride if own.height == made.height else 0,
        pixel_stride=operand.pixel_stride if own.width == made.width else 0,
    )


def addition_block(net: Net, op: Op, first: str) -> np.ndarray:
    """The eight words of `struct mac_array_addition`: the operand `first`, then the other. Both commute."""
    scaling = _scaling(net, op)
    factors = zip(op.inputs, (scaling.first, scaling.second), strict=True)
    operands = [(net.tensor(name).zero_point, factor.multiplier, factor.shift) for name, factor in factors]
    if op.inputs[0] != first:
        operands.reverse()
    return np.array([*operands[0], *operands[1], scaling.output.multiplier, scaling.output.shift], np.int32)


def _scaling(net: Net, op: Op) -> AddRescaling:
    """The factors of a sum. A difference is the sum with the second factor negative. A product has the first rescaled
    operand in place of the second's multiplier."""
    if isinstance(op.attributes, Multiply):
        return AddRescaling(_OF_A_FACTOR, _OF_A_FACTOR, product_rescaling(net, op))
    if isinstance(op.attributes, Add):
        return add_rescaling(net, op)
    scaling = subtract_rescaling(net, op)
    return replace(scaling, second=replace(scaling.second, multiplier=-scaling.second.multiplier))


def adds_exactly(net: Net, op: Op) -> bool:
    """True if a sum with a negative factor equals the difference for all values of both operands. Halves round up, so
    the factor's sign can change a result."""
    factors, zero = subtract_rescaling(net, op), quantization(net, op.output).zero_point
    first, second = (np.arange(-128, 128) - quantization(net, name).zero_point << ADD_LEFT_SHIFT for name in op.inputs)
    negative = Multiplier(-factors.second.multiplier, factors.second.shift)
    scaled, subtracted, added = (
        rescale(first, factors.first)[:, None],
        -rescale(second, factors.second),
        rescale(second, negative),
    )
    wanted, got = (np.clip(rescale(scaled + each, factors.output) + zero, -128, 127) for each in (subtracted, added))
    return np.array_equal(wanted, got)
