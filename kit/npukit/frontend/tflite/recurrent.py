"""TFLite's layers with state: LSTM and SVDF.

An LSTM with integer states is computed in integers. Other LSTMs are computed in float and unrolled. An LSTM of a single
step keeps its state from frame to frame. SVDF is a dense layer and, for each unit, a filter over the dense results of
the last frames. Its state is laid out as an image with one row per frame, so that the filter is a grouped convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tflite
from tvm import relax, tirx

from npukit.errors import NpukitError
from npukit.frontend.given import made_by
from npukit.frontend.qdq import dequantize, quantize
from npukit.frontend.recurrent import State, Weights, Writer, joined, lstm, unrolled
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.graphs import SVDF_STATE
from npukit.frontend.tflite.linear import bias_of, dequantized_as
from npukit.frontend.tflite.model import TfliteOp, TfliteTensor
from npukit.frontend.tflite.wide import SIGMOID, clamped, multipliers, requantized, tanh_of, te
from npukit.frontend.tflite.windows import activated
from npukit.net.c_code.rows import Steps
from npukit.net.requantize import quantize_multiplier
from npukit.net.tensor import Quantization

LSTM_TYPES = ("int8", "int8", "int16")
"""Types of data, hidden state and cell in an integer LSTM."""
GATE_SCALE, OPEN_SCALE = 2.0**-12, 2.0**-15
"""Scales of a gate's sum and of its activation."""
INPUT, INPUT_TO_GATES, STATE_TO_GATES, PEEPHOLES, BIASES, PROJECTION, STATES, NORMS = 0, 1, 5, 9, 12, 16, 18, 20
"""Index of the first input of each kind in an LSTM. The gates' order is input, forget, cell, output."""
ORDER = (0, 1, 3, 2)
"""TFLite's gates in the order of `Weights`."""


def lstm_layer(emitter: Emitter, op: TfliteOp) -> None:
    _check(emitter, op)
    if [emitter.tensor(index).dtype for index in (op.inputs[INPUT], *op.inputs[STATES:NORMS])] == list(LSTM_TYPES):
        _in_integers(emitter, op)
        return
    data, swapped = emitter.real(op.inputs[INPUT]), [1, 0, 2]
    if not op.options["TimeMajor"]:
        data = emitter.emit(operators.permute_dims(data, swapped))
    held, kept = [emitter.tensor(index) for index in op.inputs[STATES:NORMS]], op.outputs[1:]
    begins = tuple(emitter.real(index) for index in op.inputs[STATES:NORMS]) if kept else (None, None)
    step = partial(_step, held, float(op.options["CellClip"]))
    steps, ends = unrolled(emitter.builder, step, data, _weights(emitter, op), begins)
    for index, value in zip(kept, ends, strict=False):
        emitter.define_real(index, value)
    whole = emitter.emit(operators.squeeze(joined(emitter.builder, steps), [1]))
    emitter.define_real(op.outputs[0], whole if op.options["TimeMajor"] else operators.permute_dims(whole, swapped))


def _in_integers(emitter: Emitter, op: TfliteOp) -> None:
    """Emits the layer as computed by TFLite Micro's kernel.

    Each step computes the gates, the cell and the hidden state. All elements of each are independent.
    """
    data, time = emitter.value(op.inputs[INPUT]), 0 if op.options["TimeMajor"] else 1
    shape, states = emitter.shape(data), op.inputs[STATES:NORMS]
    hidden, cell = (emitter.value(at) if op.outputs[1:] else _begun(emitter, at, data) for at in states)
    gates, products, made = _Gates.of(emitter, op), _Products.of(emitter, op), list[relax.Expr]()
    for step in range(shape[time]):
        row = emitter.emit(operators.strided_slice(data, [time], [step], [step + 1])) if shape[time] > 1 else data
        opened = gates.of_step(emitter, row, hidden)
        cell = emitter.loops(products.to_cell, opened, "lstm_cell", cell)
        hidden = emitter.loops(products.to_hidden, opened, "lstm_hidden", cell, relax.const(SIGMOID))
        real = emitter.emit(dequantize(hidden, emitter.scale(op.outputs[0]), "int8"))
        made.append(emitter.emit(operators.expand_dims(real, time)))
    emitter.define_real(op.outputs[0], operators.concat(made, time) if made[1:] else made[0])
    for index, value in zip(op.outputs[1:], (hidden, cell), strict=False):
        emitter.define(index, value)


@dataclass(frozen=True)
class _Gates:
    """The gates of an integer LSTM.

    `weights`: for data and hidden state, a matrix of inputs by four outputs a unit. `zeros`: their zero points.
    `constants`: biases added to the data's sums, multipliers and shifts of all sums, samples of the logistic function.
    """

    weights: tuple[np.ndarray, ...]
    zeros: tuple[int, ...]
    constants: tuple[Any, ...]

    @classmethod
    def of(cls, emitter: Emitter, op: TfliteOp) -> _Gates:
        sides = (op.inputs[INPUT], INPUT_TO_GATES), (op.inputs[STATES], STATE_TO_GATES)
        weights = [_of_units(emitter, op.inputs[at : at + 4]) for _, at in sides]
        zeros = tuple(emitter.scale(given).zero_point for given, _ in sides)
        factors = [_gate_factor(emitter, given, op.inputs[at + gate]) for gate in range(4) for given, at in sides]
        tables = _of_units(emitter, op.inputs[BIASES : BIASES + 4]), np.array(factors, np.int32).ravel(), SIGMOID
        constants = tuple(relax.const(np.ascontiguousarray(each)) for each in tables)
        return cls(tuple(each.reshape(-1, each.shape[2]).T for each in weights), zeros, constants)

    def of_step(self, emitter: Emitter, data: relax.Expr, hidden: relax.Expr) -> relax.Var:
        """The activations of the gates in a step: four 16-bit numbers for each unit."""
        row = emitter.emit(operators.reshape(data, (-1, len(self.weights[0]))))
        sums = [self._sums(emitter, each, side) for side, each in enumerate((row, hidden))]
        batch, gates = emitter.shape(sums[0])
        result, words = ((batch, gates // 4, 4), "int16"), {"batch": batch, "units": gates // 4}
        row = gates if batch > 1 else 4
        taken = (row, row, 0)
        windows = taken, taken, taken if batch == 1 else None
        steps = Steps(row, windows, loop=int(batch == 1), cycles=490 * row // 4)
        return made_by(emitter.builder, "lstm.c", [*sums, *self.constants], result, words, steps=steps)

    def _sums(self, emitter: Emitter, rows: relax.Expr, side: int) -> relax.Expr:
        """The sums of a dense layer on integers minus their zero point."""
        centred = operators.subtract(operators.astype(rows, "int16"), relax.const(self.zeros[side], "int16"))
        weights = relax.const(np.ascontiguousarray(self.weights[side]))
        return emitter.emit(operators.matmul(emitter.emit(centred), weights, out_dtype="int32"))


def _of_units(emitter: Emitter, gates: Sequence[int]) -> np.ndarray:
    """The constants of an LSTM's gates, grouped by unit."""
    return np.stack([emitter.constant(index) for index in gates], axis=1)


def _gate_factor(emitter: Emitter, given: int, weights: int) -> tuple[int, int]:
    """Multiplier and shift for the sums of a gate."""
    product = np.float32(emitter.scale(given).scale) * np.float32(emitter.scale(weights).scale)
    return quantize_multiplier(float(product) / GATE_SCALE)


@dataclass(frozen=True)
class _Products:
    """The products of an integer LSTM's gates and states.

    `factors`: multipliers and shifts for the cell's new part, its kept part, and the hidden state. `to_tanh`: factor
    and right shift of the cell before its tanh. `zero`: the hidden state's zero point. `ends`: the cell's limits as
    integers, or empty.
    """

    factors: tuple[tuple[int, int], ...]
    to_tanh: tuple[int, int]
    zero: int
    ends: tuple[int, ...]

    @classmethod
    def of(cls, emitter: Emitter, op: TfliteOp) -> _Products:
        hidden, cell = (emitter.scale(index) for index in op.inputs[STATES:NORMS])
        power = round(np.log2(cell.scale))
        if cell.scale != 2.0**power:
            raise NpukitError("the scale of its cell is no power of two")
        scales = OPEN_SCALE**2 / cell.scale, OPEN_SCALE, OPEN_SCALE**2 / hidden.scale
        most = int(min(op.options["CellClip"] / cell.scale, (1 << 15) - 1))
        to_tanh = 3 << max(power + 12, 0), max(-power - 12, 0)
        return cls(tuple(map(quantize_multiplier, scales)), to_tanh, hidden.zero_point, (-most, most) if most else ())

    def to_cell(self, gates: Any, cell: Any) -> Any:
        """The next cell: the input gate times the new value plus the forget gate times the old cell."""

        def value(row: Any, unit: Any) -> Any:
            opened = [gates[row, unit, gate].astype("int32") for gate in range(4)]
            products = opened[0] * opened[2], opened[1] * cell[row, unit].astype("int32")
            fresh, kept = (
                clamped(_fixed(product, factor), "int16").astype("int32")
                for product, factor in zip(products, self.factors[:2], strict=True)
            )
            return clamped(fresh + kept, "int16", *self.ends)

        return te.compute(cell.shape, value, name="cell")

    def to_hidden(self, gates: Any, cell: Any, table: Any) -> Any:
        """The next hidden state: the output gate times the cell's tanh."""
        factor, bits = self.to_tanh

        def value(row: Any, unit: Any) -> Any:
            scaled = (cell[row, unit].astype("int32") * factor + ((1 << bits) >> 1)) >> bits
            product = tanh_of(scaled, table) * gates[row, unit, 3].astype("int32")
            return clamped(_fixed(product, self.factors[2]) + self.zero, "int8")

        return te.compute(cell.shape, value, name="hidden")


def _fixed(value: Any, factor: tuple[int, int]) -> Any:
    """A 32-bit number times a multiplier and a shift."""
    return requantized(value, *(tirx.const(each, "int32") for each in factor))


def _begun(emitter: Emitter, index: int, data: relax.Expr) -> relax.Var:
    """A zero state before the first step, computed in each frame to make the first step equal to the others."""
    tensor, begin = emitter.tensor(index), emitter.scale(index).zero_point
    result, steps = (tensor.shape, tensor.dtype), Steps(1, ((0, 1, 0),), cycles=4)
    return made_by(emitter.builder, "begun.c", [data], result, {"begin": begin}, steps=steps)


def _step(held: Sequence[TfliteTensor], clip: float, write: Writer, data: Any, weights: Weights, state: State) -> State:
    """A step in float. The states are rounded to the types of their tensors."""
    made = lstm(write, data, weights, state, clip=clip)
    return tuple(_as_held(write, each, tensor) for each, tensor in zip(made, held, strict=True))


def _as_held(write: Writer, value: Any, tensor: TfliteTensor) -> Any:
    given = tensor.quantization
    if given is None or tensor.dtype == "float32":
        return value
    return write(dequantize(write(quantize(value, given, tensor.dtype)), given, tensor.dtype))


def _weights(emitter: Emitter, op: TfliteOp) -> Weights:
    first, second, bias = (_gates(emitter, op.inputs[at : at + 4]) for at in (INPUT_TO_GATES, STATE_TO_GATES, BIASES))
    return Weights(first, second, bias, np.zeros_like(bias))


def _gates(emitter: Emitter, inputs: Sequence[int]) -> np.ndarray:
    return np.concatenate([_real(emitter, inputs[gate]) for gate in ORDER])


def _real(emitter: Emitter, index: int) -> np.ndarray:
    value, given = emitter.constant(index), emitter.tensor(index).quantization
    if given is None or value.dtype == np.float32:
        return value
    return (value.astype(np.float32) - given.zero_point) * np.float32(given.scale)


def _check(emitter: Emitter, op: TfliteOp) -> None:
    """Raises an error for a layer that npukit cannot unroll."""
    given = [index >= 0 for index in op.inputs]
    for what, begin, end in (("peepholes", PEEPHOLES, BIASES), ("a projection", PROJECTION, STATES)):
        if any(given[begin:end]):
            raise NpukitError(f"it has {what}, which npukit does not read yet")
    if any(given[NORMS:]):
        raise NpukitError("it normalises its gates, which npukit does not read yet")
    if not all(given[INPUT_TO_GATES:PEEPHOLES]) or not all(given[BIASES:PROJECTION]):
        raise NpukitError("its input and forget gates are one, which npukit does not read yet")
    if op.options["ProjClip"] or not 0 <= op.options["CellClip"] < np.inf:
        raise NpukitError("it clips a projection that it has not, or its cell at no number")
    if op.options["FusedActivationFunction"] != tflite.ActivationFunctionType.TANH:
        raise NpukitError("its activation is not tanh")
    if not op.outputs[1:] and any(np.any(emitter.constant(index)) for index in op.inputs[STATES:NORMS]):
        raise NpukitError("its state does not begin at zero")


def svdf(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, feature filters, frame filters, [bias], state. Outputs: result, new state."""
    if emitter.tensor(op.inputs[SVDF_STATE]).shape[0] != 1 or emitter.tensor(op.inputs[0]).shape[0] not in (0, 1):
        raise NpukitError("it has more than one frame at once")
    if emitter.tensor(op.inputs[SVDF_STATE]).dtype == "int16":
        _svdf_in_integers(emitter, op)
    else:
        _svdf_in_reals(emitter, op)


def _svdf_in_reals(emitter: Emitter, op: TfliteOp) -> None:
    """Emits a dense layer and a convolution, in float or with an 8-bit state."""
    data, features, frames, _, state = op.inputs
    fresh = emitter.emit(operators.matmul(emitter.real(data), operators.permute_dims(emitter.real(features), [1, 0])))
    row = emitter.emit(operators.reshape(fresh, (1, 1, 1, -1)))
    emitter.define_real(op.outputs[1], _moved_on(emitter, emitter.real(state), _as_kept(emitter, op, row)))
    kept, rank = emitter.real(op.outputs[1]), op.options["Rank"]
    filters, length = emitter.tensor(frames).shape
    weights = emitter.constant(frames).reshape(filters // rank, rank, length, 1).transpose(0, 2, 3, 1)
    product = operators.nn.conv2d(
        kept, dequantized_as(emitter, frames, weights), groups=filters // rank, data_layout="NHWC", kernel_layout="OHWI"
    )
    result = emitter.emit(product)
    if op.inputs[3] >= 0:
        result = emitter.emit(operators.add(result, bias_of(emitter, state, frames, op.inputs[3])))
    flat = emitter.emit(operators.reshape(result, (1, filters // rank)))
    emitter.define_real(op.outputs[0], activated(op, flat) if _is_float(emitter, op) else flat)
    _check_activation(emitter, op)


def _as_kept(emitter: Emitter, op: TfliteOp, row: relax.Expr) -> relax.Expr:
    """The new row, rounded to the state's integers."""
    tensor = emitter.tensor(op.outputs[1])
    if tensor.quantization is None or _is_float(emitter, op):
        return row
    stored = emitter.emit(quantize(row, tensor.quantization, tensor.dtype))
    return emitter.emit(dequantize(stored, tensor.quantization, tensor.dtype))


def _moved_on(emitter: Emitter, state: relax.Expr, row: relax.Expr) -> relax.Expr:
    """The state without its oldest frame, followed by the new row."""
    length = emitter.shape(state)[1]
    if length == 1:
        return row
    rest = emitter.emit(operators.strided_slice(state, [1], [1], [length]))
    return emitter.emit(operators.concat([rest, row], 1))


def _is_float(emitter: Emitter, op: TfliteOp) -> bool:
    return emitter.tensor(op.inputs[0]).dtype == "float32"


def _check_activation(emitter: Emitter, op: TfliteOp) -> None:
    """Raises an error for an integer op without ReLU. Integer kernels implement ReLU by the range of int8."""
    kind = op.options["FusedActivationFunction"]
    if not _is_float(emitter, op) and kind != tflite.ActivationFunctionType.RELU:
        raise NpukitError("its activation is not ReLU, which alone TFLite's kernels of integers have")


def _svdf_in_integers(emitter: Emitter, op: TfliteOp) -> None:
    """Emits loops over integers for a 16-bit state, because no other kernel computes the same."""
    _check_activation(emitter, op)
    into, weight, filter_, held = (emitter.scale(op.inputs[place]) for place in (0, 1, 2, SVDF_STATE))
    result, frames = emitter.scale(op.outputs[0]), emitter.tensor(op.inputs[2])
    row = emitter.loops(
        partial(_fresh_row, into.zero_point),
        emitter.value(op.inputs[0]),
        "svdf_features",
        emitter.value(op.inputs[1]),
        *multipliers([_factor(into, weight, held)]),
    )
    emitter.define(op.outputs[1], _moved_on(emitter, emitter.value(op.inputs[SVDF_STATE]), row))
    units = frames.shape[0] // op.options["Rank"]
    begin = emitter.value(op.inputs[3]) if op.inputs[3] >= 0 else relax.const(np.zeros(units, np.int32))
    filtered = emitter.loops(
        partial(_filtered, op.options["Rank"], result.zero_point),
        emitter.values[op.outputs[1]],
        "svdf_frames",
        emitter.value(op.inputs[2]),
        begin,
        *multipliers([_factor(held, filter_, result)]),
    )
    emitter.define(op.outputs[0], filtered)


def _factor(first: Quantization, second: Quantization, result: Quantization) -> float:
    """The factor of a sum of products, in single precision as in TFLite."""
    return float(np.float32(first.scale) * np.float32(second.scale) / np.float32(result.scale))


def _fresh_row(zero_point: int, data: Any, weights: Any, multiplier: Any, shift: Any) -> Any:
    feature = te.reduce_axis((0, weights.shape[1]), "feature")

    def product(filter_: Any) -> Any:
        return te.sum(
            (data[0, feature].astype("int32") - zero_point) * weights[filter_, feature].astype("int32"), axis=feature
        )

    sums = te.compute((weights.shape[0],), product, name="sums")

    def scaled(*place: Any) -> Any:
        return clamped(requantized(sums[place[3]], multiplier[0], shift[0]), "int16")

    return te.compute((1, 1, 1, weights.shape[0]), scaled, name="row")


def _filtered(rank: int, zero_point: int, state: Any, weights: Any, bias: Any, multiplier: Any, shift: Any) -> Any:
    filters, length = weights.shape
    part, frame = te.reduce_axis((0, rank), "part"), te.reduce_axis((0, length), "frame")

    def product(unit: Any) -> Any:
        filter_ = unit * rank + part
        kept, weight = state[0, frame, 0, filter_], weights[filter_, frame]
        return te.sum(kept.astype("int32") * weight.astype("int32"), axis=[part, frame])

    sums = te.compute((filters // rank,), product, name="sums")

    def scaled(_: Any, unit: Any) -> Any:
        return clamped(requantized(sums[unit] + bias[unit], multiplier[0], shift[0]) + zero_point, "int8")

    return te.compute((1, filters // rank), scaled, name="units")
