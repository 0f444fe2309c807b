"""Layer norm and RMS norm in integers: integer root, one Newton step for its reciprocal, two high products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Pair
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.fields import (
    AxisRule,
    InputRule,
    broadcast_part,
    constant_operands,
    first_of_part,
    last_axis,
    same_axes,
    whole_rows,
)
from npukit.net.ops.kind import Constant, Example, OpSpec, Scales, names, read_of_an_output
from npukit.net.ops.shapes import Shape
from npukit.net.requantize import quantization
from npukit.net.tensor import Quantization

LONGEST_ROW = 4096
"""Maximum elements of a row, so that the core's registers hold its sums."""

LARGEST_EPSILON = 1 << 60

FRACTION_BITS = 10
"""Fraction bits of the root mean square."""

OFFSET_BITS, MULTIPLIER_BITS = 30, 31
LARGEST_SHIFT = 22


@dataclass(frozen=True)
class Norm(Attributes):
    """inputs: activation, then multipliers and offsets, an int32 for each of the n positions of the last axis. With
    `run`, each row has its own: int32[rows, n / run], one for `run` neighbours.

    Layer norm if `centred`: subtract the mean of the last axis, divide by the root of the mean square, multiply, add
    offsets. Otherwise RMS norm: subtract the zero point instead of the mean. `epsilon` / (1024 n)^2 is added to the
    mean square. Results are scaled down by 2^`shift` at the end.
    """

    centred: bool = True
    epsilon: int = 1
    shift: int = 1
    clamp: Pair = (-128, 127)
    run: int = 0


@dataclass(frozen=True)
class Squares(Attributes):
    """Int32 sums of squared distances from the zero point, over pieces of `piece` elements of the last axis. The
    output's last two axes are the number of pieces and 1."""

    piece: int = 1


@dataclass(frozen=True)
class NormBySquares(Attributes):
    """inputs: activation, sums of squares of all pieces, multipliers, offsets. An RMS norm of given squares."""

    epsilon: int = 1
    shift: int = 1
    clamp: Pair = (-128, 127)


def _norm(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Norm), net.tensor(op.inputs[0]).shape
    wanted = (*shape[-2:-1], shape[-1] // attributes.run) if attributes.run > 0 else shape[-1:]
    if any(net.constants[each].shape != wanted or net.constants[each].dtype != np.int32 for each in op.inputs[1:]):
        raise NpukitError(f"its multipliers and offsets are not int32{list(wanted)}")
    if attributes.run < 0 or (attributes.run and (len(shape) < 2 or shape[-1] % attributes.run)):
        raise NpukitError(f"rows of {list(shape)} have no runs of {attributes.run}")
    if shape[-1] > LONGEST_ROW or not (
        1 <= attributes.shift <= LARGEST_SHIFT and 1 <= attributes.epsilon <= LARGEST_EPSILON
    ):
        raise NpukitError(
            f"rows of {shape[-1]}, shift {attributes.shift} or epsilon {attributes.epsilon} are too large"
        )
    return shape


def _squares(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(Squares), net.tensor(op.inputs[0]).shape
    if not shape or shape[-1] > LONGEST_ROW or attributes.piece < 1 or shape[-1] % attributes.piece:
        raise NpukitError(f"rows of {list(shape)} have no pieces of {attributes.piece}")
    return (*shape[:-1], shape[-1] // attributes.piece, 1)


def _field_of_squares(net: Net, op: Op) -> list[InputRule]:
    rank, piece = len(net.tensor(op.inputs[0]).shape), op.of(Squares).piece
    return [(*same_axes(rank - 1), AxisRule(rank - 1, stride=piece, reach=piece))]


def _norm_by_squares(net: Net, op: Op) -> Shape:
    shape = net.tensor(op.inputs[0]).shape
    squares, *constants = (net.tensor(name) for name in op.inputs[1:])
    if squares.dtype != "int32" or squares.shape[:-2] != shape[:-1] or squares.shape[-1:] != (1,):
        raise NpukitError(f"{squares.name} are no squares of the pieces of {list(shape)}")
    if any(each.shape != shape[-1:] or each.dtype != "int32" or each.name not in net.constants for each in constants):
        raise NpukitError(f"its multipliers and offsets are not int32[{shape[-1]}]")
    return shape


def _field_of_norm_by_squares(net: Net, op: Op) -> list[InputRule]:
    rank = len(net.tensor(op.output).shape)
    return [same_axes(rank), (*same_axes(rank - 1), AxisRule(), AxisRule())]


def norm(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, (data, multipliers, offsets) = op.of(Norm), operands
    values, length = data.astype(np.int64), data.shape[-1]
    zero = length * quantization(net, op.inputs[0]).zero_point
    distances = length * values - (values.sum(-1, keepdims=True) if attributes.centred else zero)
    spread = (distances * distances).sum(-1, keepdims=True) // length << 2 * FRACTION_BITS
    constants = [np.repeat(each, max(attributes.run, 1), axis=-1) for each in (multipliers, offsets)]
    return _results(attributes, distances, spread, constants)


def _results(
    attributes: Norm | NormBySquares, distances: np.ndarray, spread: np.ndarray, constants: Sequence[np.ndarray]
) -> np.ndarray:
    """The distances divided by the root of the row's mean square, scaled, offset and clamped."""
    length, (multipliers, offsets) = distances.shape[-1], constants
    inverse, shift = inverse_root(spread + attributes.epsilon)
    left = np.minimum(shift + FRACTION_BITS - 1 - headroom(length), 31)
    inverse = inverse >> np.maximum(-left, 0)
    normalised = ((distances << np.maximum(left, 0)) * inverse + (1 << 31)) >> 32
    results = (normalised * multipliers + (offsets.astype(np.int64) << 32)) >> (32 + attributes.shift)
    return np.clip(results, *attributes.clamp).astype(np.int8)


def squares(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    distances = operands[0].astype(np.int64) - quantization(net, op.inputs[0]).zero_point
    pieces = distances.reshape(*distances.shape[:-1], -1, op.of(Squares).piece)
    return (pieces * pieces).sum(-1, keepdims=True).astype(np.int32)


def norm_by_squares(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The RMS norm with precomputed sums of squares."""
    attributes, (data, squared, *constants) = op.of(NormBySquares), operands
    length = data.shape[-1]
    distances = length * (data.astype(np.int64) - quantization(net, op.inputs[0]).zero_point)
    spread = length * squared.astype(np.int64).sum((-2, -1))[..., np.newaxis] << 2 * FRACTION_BITS
    return _results(attributes, distances, spread, constants)


def inverse_root(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / sqrt(value) of positive numbers below 2^62 as i * 2^(shift - 62), i just above 2^30 to 2^31 - 1."""
    shift = (64 - _bits(values)) // 2
    top = np.where(shift >= 16, values << np.maximum(2 * shift - 32, 0), values >> np.maximum(32 - 2 * shift, 0))
    root = np.floor(np.sqrt(top)).astype(np.int64)
    precise = (root << 15) + ((top - root * root) << 14) // root
    first = (1 << 31) // root << 15
    error = (1 << 61) - precise * first
    return np.minimum(first + ((error >> 30) * first >> 31), (1 << 31) - 1), shift


def _bits(values: np.ndarray) -> np.ndarray:
    """Bit lengths of positive numbers. Computed in halves, because float64 holds each half exactly."""
    high = values >> 31
    return np.where(high > 0, 31 + np.frexp(high)[1], np.frexp(values & ((1 << 31) - 1))[1]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class NormConstants:
    """The attributes, multipliers and offsets of a norm."""

    attributes: Norm
    multipliers: np.ndarray
    offsets: np.ndarray


def headroom(length: int) -> int:
    """Integer bits of a normalised number. Its magnitude is at most the square root of the row's length."""
    return ceil(log2(length) / 2)


def norm_constants(
    gains: np.ndarray,
    biases: np.ndarray,
    epsilon: float,
    source: Quantization,
    target: Quantization,
    *,
    centred: bool,
    run: int = 0,
) -> NormConstants:
    """The constants for `gains` * normalised + `biases`. `epsilon` is a real number, too. `run`: positions of a gain of
    each row."""
    length = gains.shape[-1] * max(run, 1)
    spread = max(round(epsilon * (2**FRACTION_BITS * length / source.scale) ** 2), 1)
    factors = gains.astype(np.float64) / target.scale * 2.0 ** (3 + headroom(length))
    added = biases.astype(np.float64) / target.scale + target.zero_point
    limits = [(factors, MULTIPLIER_BITS), (added, OFFSET_BITS)]
    shift = min(LARGEST_SHIFT, *(bits - 1 - ceil(log2(max(np.abs(values).max(), 1e-30))) for values, bits in limits))
    if shift < 1 or length > LONGEST_ROW or spread > LARGEST_EPSILON:
        raise NpukitError(f"a norm of {length} with such factors or epsilon {epsilon:g} does not fit its fixed point")
    multipliers, offsets = (np.rint(values * 2.0**shift).astype(np.int64) for values in (factors, added))
    attributes = Norm(centred=centred, epsilon=spread, shift=shift, run=run)
    return NormConstants(attributes, multipliers.astype(np.int32), (offsets + (1 << (shift - 1))).astype(np.int32))


def _part(net: Net, op: Op, name: str, output: Box) -> Box:
    """The constants of a box, whose rows are whole if they have their own."""
    if not op.of(Norm).run:
        return broadcast_part(net, op, name, output)
    return Box((output.start[-2], 0), (output.stop[-2], net.tensor(name).shape[-1]))


def _constants(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    yield from constant_operands(net, op, output, _part)
    yield from first_of_part(net, op, output)


_OF_EXAMPLES = "\n".join(f"constant {name}: int32[4] = {[1 << 16] * 4}" for name in "mo")

OPS = (
    OpSpec(
        Norm,
        _norm,
        norm,
        Example("norm(x, m, o) shift=12", constants=_OF_EXAMPLES),
        operands=(3, 3),
        field=whole_rows,
        names=names(
            "L2_NORMALIZATION", "GroupNormalization InstanceNormalization LayerNormalization MeanVarianceNormalization"
        ),
        core_cycles=(30, 7, 260),
        uncut=lambda net, op: last_axis(net, op) if op.of(Norm).run else (),
        operand=_part,
        constants=_constants,
        steps=lambda net, op, output: net.tensor(op.inputs[0]).shape[-1] / output.shape[-1],
    ),
    OpSpec(
        Squares,
        _squares,
        squares,
        Example("squares(x) piece=2", "int32[1,2,2,2,1]"),
        scales=Scales.FREE,
        field=_field_of_squares,
        core_cycles=(10, 5, 0),
        steps=read_of_an_output,
    ),
    OpSpec(
        NormBySquares,
        _norm_by_squares,
        norm_by_squares,
        Example(
            "norm_by_squares(x, s, m, o) shift=12",
            constants=_OF_EXAMPLES,
            before="op s: int32[1,2,2,2,1] = squares(x) piece=2",
        ),
        operands=(4, 4),
        scales=Scales.FREE,
        field=_field_of_norm_by_squares,
        core_cycles=(30, 7, 260),
        operand=broadcast_part,
        steps=lambda net, op, output: net.tensor(op.inputs[1]).elements / output.shape[-1],
    ),
)
