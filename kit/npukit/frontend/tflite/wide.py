"""TFLite's ops on 16-bit activations, as tensor expressions exact to TFLite's integer kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tflite
from tvm import relax, tirx
from tvm import te as tensor_expressions

from npukit.errors import NpukitError
from npukit.frontend.tflite.emit import AsStored, Converter, Emitter
from npukit.frontend.tflite.model import TfliteOp
from npukit.net.requantize import quantize_multiplier

select: Any = tirx.Select
te: Any = tensor_expressions
"""TVM's functions without their type annotations, which exclude valid arguments."""


def multipliers(scales: Sequence[float]) -> tuple[relax.Expr, relax.Expr]:
    """The multipliers and the shifts of scales, as Relax constants."""
    pairs = np.array([quantize_multiplier(scale) for scale in scales], np.int32)
    multiplier, shift = np.ascontiguousarray(pairs.T)
    return relax.const(multiplier), relax.const(shift)


def factors(scales: Sequence[float]) -> list[tuple[Any, Any]]:
    """The multiplier and the shift of each scale, as numbers in the code."""
    pairs = (quantize_multiplier(scale) for scale in scales)
    return [tuple(tirx.const(number, "int32") for number in pair) for pair in pairs]  # type: ignore[misc]


def requantized(value: Any, multiplier: Any, shift: Any) -> Any:
    """value * multiplier * 2^(shift - 31) in 32 bits, rounded twice."""
    left, right = te.max(shift, 0), te.max(-shift, 0)
    product = (value << left).astype("int64") * multiplier.astype("int64")
    high = ((product + tirx.const(1 << 30, "int64")) >> tirx.const(31, "int64")).astype("int32")
    return rounded_shift(high, right)


def rounded_shift(value: Any, bits: Any) -> Any:
    """value / 2^bits, halves away from zero."""
    half = (tirx.const(1, "int32") << bits) >> 1
    return (value + half - select(tirx.all(bits > 0, value < 0), 1, 0)) >> bits


def clamped(value: Any, dtype: str, low: int | None = None, high: int | None = None) -> Any:
    """The value as `dtype`, limited to the range from `low` to `high`, by default the type's own."""
    limits = np.iinfo(dtype)
    low, high = int(limits.min) if low is None else low, int(limits.max) if high is None else high
    return te.max(te.min(value, high), low).astype(dtype)


SUM_BITS = 15
"""Left shift of the operands before a sum, in bits."""
SIGMOID_STEPS = 24
"""Entries of the logistic function's table between inputs 0 and 1."""
TABLE_STEPS = 512
"""Intervals in a table of a 16-bit function. Values between its entries are interpolated."""


def by_width(wide: Converter, usual: Converter) -> Converter:
    """Selects `wide` if first input and first output are int16, else `usual`. A 16-bit input and its 16-bit result must
    have zero point 0, as in TFLite. A 16-bit result of an 8-bit input may have another zero point, as from softmax."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        ends = op.inputs[0], op.outputs[0]
        widths = [emitter.tensor(index).dtype for index in ends]
        if widths[0] == "int16":
            for index in (index for index, width in zip(ends, widths, strict=True) if width == "int16"):
                scale(emitter, index)
        (wide if widths == ["int16", "int16"] else usual)(emitter, op)

    return convert


def moving(usual: Converter) -> Converter:
    """The converter of an op that only moves numbers. 16-bit tensors with a common scale are moved as stored."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        moved = [emitter.tensor(index) for index in (*op.inputs, *op.outputs) if index >= 0]
        scales = {tensor.quantization for tensor in moved if tensor.dtype == "int16"}
        one = {emitter.tensor(index).dtype for index in op.outputs} == {"int16"} and len(scales) == 1
        usual(AsStored(emitter.model, emitter.builder, emitter.values) if one else emitter, op)

    return convert


def scale(emitter: Emitter, index: int) -> float:
    """The scale of a 16-bit activation. Raises an error unless the zero point is 0."""
    if (given := emitter.scale(index)).zero_point:
        raise NpukitError(f"{emitter.tensor(index).name!r} has 16 bits and a zero point other than 0")
    return given.scale


def limits(emitter: Emitter, op: TfliteOp) -> tuple[int, int]:
    """The range of the result's integers after the fused activation."""
    kind, given = op.options.get("FusedActivationFunction", 0), scale(emitter, op.outputs[0])
    whole = np.iinfo(np.int16)
    reals = {
        tflite.ActivationFunctionType.NONE: (-np.inf, np.inf),
        tflite.ActivationFunctionType.RELU: (0, np.inf),
        tflite.ActivationFunctionType.RELU6: (0, 6),
        tflite.ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    }
    if kind not in reals:
        raise NpukitError(f"its fused activation (number {kind}) has no form of integers")
    ends = (np.rint(np.float32(real) / np.float32(given)) for real in reals[kind])
    low, high = (int(np.clip(end, whole.min, whole.max)) for end in ends)
    return low, high


def requantize(emitter: Emitter, op: TfliteOp) -> None:
    """The same numbers as integers of another scale or width."""
    source, result = (emitter.scale(index) for index in (op.inputs[0], op.outputs[0]))
    (factor,), dtype = factors([source.scale / result.scale]), emitter.tensor(op.outputs[0]).dtype

    def scaled(value: Any) -> Any:
        return clamped(requantized(value - source.zero_point, *factor) + result.zero_point, dtype)

    _each(emitter, op, scaled, "requantize")


def _each(emitter: Emitter, op: TfliteOp, function: Callable[..., Any], name: str, *tables: relax.Expr) -> None:
    """Defines the result by a function of each integer of the first input, and of constant tables."""

    def loops(data: Any, *tables: Any) -> Any:
        return te.compute(data.shape, lambda *place: function(data(*place).astype("int32"), *tables), name="each")

    emitter.define(op.outputs[0], emitter.loops(loops, emitter.value(op.inputs[0]), name, *tables))


def sum_of(sign: int) -> Converter:
    """The converter of a sum, or of a difference if the sign is -1."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        first, second, result = (scale(emitter, index) for index in (*op.inputs, op.outputs[0]))
        twice = 2 * max(first, second)
        *before, after = factors([first / twice, second / twice, twice / ((1 << SUM_BITS) * result)])

        def summed(*operands: Any) -> Any:
            a, b = (requantized(each << SUM_BITS, *factor) for each, factor in zip(operands, before, strict=True))
            return requantized(a + sign * b, *after)

        _binary(emitter, op, summed)

    return convert


def product(emitter: Emitter, op: TfliteOp) -> None:
    first, second, result = (scale(emitter, index) for index in (*op.inputs, op.outputs[0]))
    (factor,) = factors([first * second / result])
    _binary(emitter, op, lambda a, b: requantized(a * b, *factor))


def _binary(emitter: Emitter, op: TfliteOp, function: Callable[[Any, Any], Any]) -> None:
    """Emits a function of two integers, whose shapes may broadcast."""
    ends, operands = limits(emitter, op), [emitter.value(index) for index in op.inputs]
    shape = np.broadcast_shapes(*map(emitter.shape, operands))

    def element(data: Any, place: Sequence[Any]) -> Any:
        own = place[len(place) - len(data.shape) :]
        return data(*(0 if int(size) == 1 else at for size, at in zip(data.shape, own, strict=True))).astype("int32")

    def loops(first: Any, second: Any) -> Any:
        def combined(*place: Any) -> Any:
            return clamped(function(element(first, place), element(second, place)), "int16", *ends)

        return te.compute(shape, combined, name="combined")

    emitter.define(op.outputs[0], emitter.loops(loops, operands[0], op.kind.lower(), operands[1]))


def leaky_relu(emitter: Emitter, op: TfliteOp) -> None:
    ratio = scale(emitter, op.inputs[0]) / scale(emitter, op.outputs[0])
    up, down = factors([ratio, ratio * float(np.float32(op.options["Alpha"]))])

    def sloped(value: Any) -> Any:
        return clamped(select(value < 0, requantized(value, *down), requantized(value, *up)), "int16")

    _each(emitter, op, sloped, "leaky_relu")


def relu(low: float, high: float) -> Converter:
    """The converter of a requantisation with the real limits `low` and `high`."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        step = scale(emitter, op.outputs[0])
        ends = [int(np.rint(np.clip(end / step, -(1 << 15), (1 << 15) - 1))) for end in (low, high)]
        (factor,) = factors([scale(emitter, op.inputs[0]) / step])
        _each(emitter, op, lambda value: clamped(requantized(value, *factor), "int16", *ends), "relu")

    return convert


def by_sigmoid(opened: Callable[[Any, Any], Any]) -> Converter:
    """The converter of `logistic_of` or `tanh_of`."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        factor, shift = _table_factor(scale(emitter, op.inputs[0]), tanh=opened is tanh_of)

        def computed(value: Any, table: Any) -> Any:
            return opened((value * factor + ((1 << shift) >> 1)) >> shift, table).astype("int16")

        _each(emitter, op, computed, op.kind.lower(), relax.const(SIGMOID))

    return convert


def _sigmoid_table() -> np.ndarray:
    """Samples in 16 bits. Each is moved by half the interpolation error midway to the next; the last is 1."""
    begins, middles, ends = (65536 / (1 + np.exp(-(np.arange(256) + at) / SIGMOID_STEPS)) for at in (0, 0.5, 1))
    table = np.rint(begins - ((begins + ends) / 2 - middles) / 2).astype(np.int32)
    table[-1] = 65535
    return table


SIGMOID = _sigmoid_table()


def logistic_of(value: Any, table: Any) -> Any:
    """The logistic function in 15 bits. The value is in units of the table."""
    result = select(te.abs(value) >> 9 >= 255, tirx.const(0x7FFF << 10, "int32"), _between(value, table, 9))
    return select(value >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh_of(value: Any, table: Any) -> Any:
    """The hyperbolic tangent in 15 bits and a sign. The value is in units of the table."""
    result = select(te.abs(value) >> 8 >= 255, tirx.const(0xFFFF << 8, "int32"), _between(value, table, 8))
    return select(value >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1) >> 8


def _between(value: Any, table: Any, bits: int) -> Any:
    """An interpolated entry of the logistic function's table, times 2^bits. Entries are 2^bits units apart."""
    size = te.abs(value)
    index, rest = te.min(size >> bits, 254), size & ((1 << bits) - 1)
    return (table[index] << bits) + rest * (table[index + 1] - table[index])


def _table_factor(step: float, *, tanh: bool) -> tuple[int, int]:
    """Factor and right shift from a scale to the table's units. A scale that is a power of two needs no shift."""
    exponent = float(np.log2(step))
    whole = 12 + round(exponent)
    if abs(exponent - round(exponent)) < 1e-3 and (whole == 0 or (tanh and whole == 1)):
        return 3 << whole, 0
    factor, shift = step * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    return int(factor), shift


def table_of(function: Callable[[np.ndarray], np.ndarray], into: tuple[float, int], step: float) -> np.ndarray:
    """Samples of a 16-bit function. Each is moved by half the interpolation error midway to the next."""
    real = np.float32
    begin, end = (real(into[0]) * real(each - into[1]) for each in (-(1 << 15), (1 << 15) - 1))
    width = (end - begin) / real(TABLE_STEPS)
    ends = begin + np.arange(TABLE_STEPS + 1, dtype=real) * width
    scaling = real(1 << 16) / (real(step) * real((1 << 15) - 1) - real(step) * real(-(1 << 15)))
    samples, middles = _away(function(ends) * scaling), _away(function(ends[:-1] + width / 2) * scaling)
    interpolated = _away((function(ends[1:]) * scaling + samples[:-1]) / 2)
    samples[-1] = _away(function(np.array([end], real)) * scaling)[0]
    samples[:-1] -= _away((interpolated - middles) / 2)
    return np.clip(samples, -(1 << 15), (1 << 15) - 1).astype(np.int32)


def _away(values: np.ndarray) -> np.ndarray:
    """The nearest integers, halves away from zero."""
    return np.copysign(np.floor(np.abs(values) + np.float32(0.5)), values)


def looked_up(value: Any, table: Any) -> Any:
    """The interpolated value of a table at a 16-bit number."""
    index = (value >> 7) + 256
    return table[index] + (((table[index + 1] - table[index]) * (value & 127) + 64) >> 7)


RANGE = np.float32((1 << 16) - 1)
EXPONENTIAL = table_of(np.exp, (float(np.float32(10) / RANGE), (1 << 15) - 1), float(np.float32(2) / RANGE))
RECIPROCAL = table_of(lambda x: 1 / (1 + x), (float(1 / RANGE), -(1 << 15)), float(np.float32(2) / RANGE))
"""Tables of exp(x) from -10 to 0, and of 1 / (1 + x) from 0 to 1."""


def softmax(emitter: Emitter, op: TfliteOp) -> None:
    factor = scale(emitter, op.inputs[0]) * op.options["Beta"] / (10.0 / 65535)
    powers = partial(_powers, *quantize_multiplier(factor))
    made = emitter.loops(powers, emitter.value(op.inputs[0]), "exponentials", relax.const(EXPONENTIAL))
    emitter.define(op.outputs[0], emitter.loops(_shares, made, "softmax", relax.const(RECIPROCAL)))


def _powers(multiplier: int, shift: int, data: Any, table: Any) -> Any:
    other = te.reduce_axis((0, data.shape[-1]), "other")
    most = te.compute(data.shape[:-1], lambda *row: te.max(data(*row, other).astype("int32"), axis=other), name="most")
    factor = tirx.const(multiplier, "int32"), tirx.const(shift, "int32")

    def power(*place: Any) -> Any:
        below = requantized(data(*place).astype("int32") - most(*place[:-1]), *factor)
        return looked_up(te.max(below + 32767, -32768), table)

    return te.compute(data.shape, power, name="powers")


def _shares(powers: Any, table: Any) -> Any:
    other = te.reduce_axis((0, powers.shape[-1]), "other")
    rows = powers.shape[:-1]
    total = te.compute(rows, lambda *row: te.sum(powers(*row, other), axis=other), name="total")
    bit = te.reduce_axis((0, 32), "bit")
    zeros = te.compute(rows, lambda *row: te.sum(select(total(*row) >> bit == 0, 1, 0), axis=bit), name="zeros")

    def reciprocal(*row: Any) -> Any:
        wide = total(*row).astype("int64") << (zeros(*row) - 1).astype("int64")
        shifted = ((wide + tirx.const(1 << 13, "int64")) >> tirx.const(14, "int64")).astype("int32")
        return looked_up(te.min(te.max(shifted - (3 << 15), -32768), 32767), table)

    over = te.compute(rows, reciprocal, name="reciprocals")

    def share(*place: Any) -> Any:
        bits = 31 - zeros(*place[:-1])
        half = tirx.const(1, "int32") << (bits - 1)
        return clamped((powers(*place) * over(*place[:-1]) + half) >> bits, "int16", 0)

    return te.compute(powers.shape, share, name="shares")
