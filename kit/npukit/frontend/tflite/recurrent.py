"""TFLite's layers with state: LSTM, RNN and SVDF.

An LSTM with integer states is computed in integers. Other LSTMs and RNNs are computed in float and unrolled. A layer of
a single step keeps its state from frame to frame. SVDF is a dense layer and, for each unit, a filter over the dense
results of the last frames. Its state is laid out as an image with one row per frame, so that the filter is a grouped
convolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.expressions import dequantize, quantize
from npukit.frontend.given import made_by
from npukit.frontend.recurrent import State, Step, Weights, Writer, joined, lstm, plain, unrolled
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.fields import Operands
from npukit.frontend.tflite.graphs import SVDF_STATE
from npukit.frontend.tflite.linear import bias_of, dequantized_as
from npukit.frontend.tflite.model import TfliteOp, TfliteTensor
from npukit.frontend.tflite.wide import SIGMOID, clamped, factors, multipliers, requantized, tanh_of, te
from npukit.frontend.tflite.windows import activated
from npukit.net.c_code.rows import Steps
from npukit.net.requantize import quantize_multiplier

LSTM_TYPES = ("int8", "int8", "int16")
"""Types of data, hidden state and cell in an integer LSTM."""
GATE_SCALE, OPEN_SCALE = 2.0**-12, 2.0**-15
"""Scales of a gate's sum and of its activation."""
INPUT, INPUT_TO_GATES, STATE_TO_GATES, PEEPHOLES, BIASES, PROJECTION, STATES, NORMS = 0, 1, 5, 9, 12, 16, 18, 20
"""Index of the first input of each kind in an LSTM. The gates' order is input, forget, cell, output."""
ORDER = (0, 1, 3, 2)
"""TFLite's gates in the order of `Weights`."""


def lstm_layer(emitter: Emitter, op: TfliteOp) -> None:
    if tuple(emitter.tensor(index).dtype for index in (op.inputs[INPUT], *op.inputs[STATES:NORMS])) == LSTM_TYPES:
        _check(emitter, op)
        _in_integers(emitter, op)
    else:
        emitter.define_real(op.outputs[0], _lstm_in_reals(emitter, op))


def rnn_layer(emitter: Emitter, op: TfliteOp) -> None:
    emitter.define_real(op.outputs[0], _rnn_in_reals(emitter, op))


def _lstm_in_reals(emitter: Emitter, op: TfliteOp, *, backwards: bool = False) -> relax.Expr:
    _check(emitter, op)
    states, clip = op.inputs[STATES:NORMS], float(op.options["CellClip"])

    def step(write: Writer, data: Any, weights: Weights, state: State) -> State:
        """A step in float. The states are rounded to the types of their tensors."""
        made = lstm(write, data, weights, state, clip=clip)
        return tuple(_rounded(write, each, emitter.tensor(at)) for each, at in zip(made, states, strict=True))

    weights = (
        np.concatenate([_real_constant(emitter, op.inputs[begin + gate]) for gate in ORDER])
        for begin in (INPUT_TO_GATES, STATE_TO_GATES, BIASES)
    )
    return _sequence(emitter, op, step, weights, states, backwards=backwards)


def _rnn_in_reals(emitter: Emitter, op: TfliteOp, *, backwards: bool = False) -> relax.Expr:
    """Inputs: data, weights of data and of state, bias, state."""
    _, *weights, state = op.inputs
    is_tanh = op.options["FusedActivationFunction"] == tflite.ActivationFunctionType.TANH
    step = partial(plain, function=operators.tanh if is_tanh else partial(activated, op))
    return _sequence(
        emitter, op, step, (_real_constant(emitter, each) for each in weights), [state], backwards=backwards
    )


def both_directions(
    layer: Callable[..., relax.Expr], sides: Sequence[Sequence[int]], emitter: Emitter, op: TfliteOp
) -> None:
    """A layer forwards and backwards. `sides`: the places of the inputs after the data, by direction."""
    if any(index >= 0 for index in op.inputs[1 + sum(map(len, sides)) :]):
        raise NpukitError("it has an auxiliary input, which npukit does not read yet")
    parts = (replace(op, inputs=Operands(op.inputs[at] for at in (INPUT, *side)), outputs=()) for side in sides)
    results = [layer(emitter, part, backwards=bool(number)) for number, part in enumerate(parts)]
    results = [operators.concat(results, -1)] if op.options["MergeOutputs"] else results
    for index, value in zip(op.outputs, results, strict=True):
        emitter.define_real(index, value)


bidirectional_lstm = partial(both_directions, _lstm_in_reals, ((*range(1, 18), 35, 36), (*range(18, 35), 37, 38)))
bidirectional_rnn = partial(both_directions, _rnn_in_reals, (range(1, 5), range(5, 9)))


def _sequence(
    emitter: Emitter,
    op: TfliteOp,
    step: Step,
    weights: Iterable[np.ndarray],
    states: Sequence[int],
    *,
    backwards: bool,
) -> relax.Expr:
    """The hidden state after each step, in the data's order of axes. Defines the results after the first: states."""
    _check_begin(emitter, op, states)
    data, swapped, kept = emitter.real(op.inputs[INPUT]), [1, 0, 2], op.outputs[1:]
    if not op.options["TimeMajor"]:
        data = emitter.emit(operators.permute_dims(data, swapped))
    begins = tuple(emitter.real(index) if kept else None for index in states)
    first, second, bias = weights
    held = Weights(first, second, bias, np.zeros_like(bias))
    steps, ends = unrolled(emitter.builder, step, data, held, begins, backwards=backwards)
    for index, value in zip(kept, ends, strict=False):
        emitter.define_real(index, value)
    whole = emitter.emit(operators.squeeze(joined(emitter.builder, steps), [1]))
    return whole if op.options["TimeMajor"] else emitter.emit(operators.permute_dims(whole, swapped))


def _real_constant(emitter: Emitter, index: int) -> np.ndarray:
    """The real numbers of a constant."""
    value, given = emitter.constant(index), emitter.tensor(index).quantization
    if given is None or value.dtype == np.float32:
        return value
    return (value.astype(np.float32) - given.zero_point) * np.float32(given.scale)


def _rounded(write: Callable[[Any], Any], value: Any, tensor: TfliteTensor) -> Any:
    """Real numbers, rounded to a tensor's integers."""
    given = tensor.quantization
    if given is None or tensor.dtype == "float32":
        return value
    return write(dequantize(write(quantize(value, given, tensor.dtype)), given, tensor.dtype))


def _in_integers(emitter: Emitter, op: TfliteOp) -> None:
    """Emits the layer as computed by TFLite Micro's kernel. Each step computes the gates, the cell and the hidden
    state. All elements of each are independent."""
    data, time = emitter.value(op.inputs[INPUT]), 0 if op.options["TimeMajor"] else 1
    shape, states = emitter.shape(data), op.inputs[STATES:NORMS]
    _check_begin(emitter, op, states)
    hidden, cell = (emitter.value(at) if op.outputs[1:] else _zero_state(emitter, at, data) for at in states)
    gates, (to_cell, to_hidden), made = _gates(emitter, op), _products(emitter, op), list[relax.Expr]()
    for step in range(shape[time]):
        row = emitter.emit(operators.strided_slice(data, [time], [step], [step + 1])) if shape[time] > 1 else data
        opened = gates(row, hidden)
        cell = emitter.loops(to_cell, opened, "lstm_cell", cell)
        hidden = emitter.loops(to_hidden, opened, "lstm_hidden", cell, relax.const(SIGMOID))
        real = emitter.emit(dequantize(hidden, emitter.scale(op.outputs[0]), "int8"))
        made.append(emitter.emit(operators.expand_dims(real, time)))
    emitter.define_real(op.outputs[0], operators.concat(made, time) if made[1:] else made[0])
    for index, value in zip(op.outputs[1:], (hidden, cell), strict=False):
        emitter.define(index, value)


def _zero_state(emitter: Emitter, index: int, data: relax.Expr) -> relax.Var:
    """A zero state before the first step, computed in each frame to make the first step equal to the others."""
    tensor, words = emitter.tensor(index), {"begin": emitter.scale(index).zero_point}
    steps = Steps(1, ((0, 1, 0),), cycles=4)
    return made_by(emitter.builder, "begun.c", [data], (tensor.shape, tensor.dtype), words, steps=steps)


def _gates(emitter: Emitter, op: TfliteOp) -> Callable[[relax.Expr, relax.Expr], relax.Var]:
    """The function from a step's data and hidden state to the gates' activations: four 16-bit numbers a unit."""

    of_units = partial(_of_units, emitter, op)

    sides = (op.inputs[INPUT], INPUT_TO_GATES), (op.inputs[STATES], STATE_TO_GATES)
    matrices = [each.reshape(-1, each.shape[2]).T for each in (of_units(first) for _, first in sides)]
    pairs = [(given, op.inputs[first + gate]) for gate in range(4) for given, first in sides]
    factors = [_gate_factor(emitter, *pair) for pair in pairs]
    tables = of_units(BIASES), np.array(factors, np.int32).ravel(), SIGMOID
    constants = [relax.const(np.ascontiguousarray(each)) for each in tables]

    zeros = [emitter.scale(given).zero_point for given, _ in sides]

    def of_step(data: relax.Expr, hidden: relax.Expr) -> relax.Var:
        row = emitter.emit(operators.reshape(data, (-1, len(matrices[0]))))
        sums = (_sums(emitter, *each) for each in zip((row, hidden), zeros, matrices, strict=True))
        operands = [*sums, *constants]
        batch, count = emitter.shape(operands[0])
        result, words = ((batch, count // 4, 4), "int16"), {"batch": batch, "units": count // 4}
        row_size = count if batch > 1 else 4
        taken = (row_size, row_size, 0)
        windows = taken, taken, taken if batch == 1 else None
        steps = Steps(row_size, windows, loop=int(batch == 1), cycles=490 * row_size // 4)
        return made_by(emitter.builder, "lstm.c", operands, result, words, steps=steps)

    return of_step


def _sums(emitter: Emitter, rows: relax.Expr, zero: int, weights: np.ndarray) -> relax.Expr:
    """The sums of a dense layer on integers minus a zero point."""
    centred = emitter.emit(operators.subtract(operators.astype(rows, "int16"), relax.const(zero, "int16")))
    return emitter.emit(operators.matmul(centred, relax.const(np.ascontiguousarray(weights)), out_dtype="int32"))


def _of_units(emitter: Emitter, op: TfliteOp, first: int) -> np.ndarray:
    """The constants of the four gates, grouped by unit."""
    return np.stack([emitter.constant(index) for index in op.inputs[first : first + 4]], axis=1)


def _gate_factor(emitter: Emitter, given: int, weights: int) -> tuple[int, int]:
    """Multiplier and shift for the sums of a gate."""
    scales = np.float32(emitter.scale(given).scale) * np.float32(emitter.scale(weights).scale)
    return quantize_multiplier(float(scales) / GATE_SCALE)


def _products(emitter: Emitter, op: TfliteOp) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loops over an integer LSTM's gates and states: the next cell, and the next hidden state."""
    hidden, cell = (emitter.scale(index) for index in op.inputs[STATES:NORMS])
    power = round(np.log2(cell.scale))
    if cell.scale != 2.0**power:
        raise NpukitError("the scale of its cell is no power of two")
    of_new, of_old, of_hidden = factors([OPEN_SCALE**2 / cell.scale, OPEN_SCALE, OPEN_SCALE**2 / hidden.scale])
    most = int(min(op.options["CellClip"] / cell.scale, (1 << 15) - 1))
    to_tanh = 3 << max(power + 12, 0), max(-power - 12, 0)
    ends = (-most, most) if most else ()
    return partial(_next_cell, of_new, of_old, ends), partial(_next_hidden, of_hidden, to_tanh, hidden.zero_point)


def _next_cell(of_new: Any, of_old: Any, ends: tuple[int, ...], gates: Any, cell: Any) -> Any:
    """The input gate times the new value plus the forget gate times the old cell."""

    def value(row: Any, unit: Any) -> Any:
        opened = [gates[row, unit, gate].astype("int32") for gate in range(4)]
        products = (opened[0] * opened[2], of_new), (opened[1] * cell[row, unit].astype("int32"), of_old)
        new, kept = (clamped(requantized(each, *by), "int16").astype("int32") for each, by in products)
        return clamped(new + kept, "int16", *ends)

    return te.compute(cell.shape, value, name="cell")


def _next_hidden(factor: Any, to_tanh: tuple[int, int], zero: int, gates: Any, cell: Any, table: Any) -> Any:
    """The output gate times the cell's tanh."""
    times, bits = to_tanh

    def value(row: Any, unit: Any) -> Any:
        scaled = (cell[row, unit].astype("int32") * times + ((1 << bits) >> 1)) >> bits
        product = tanh_of(scaled, table) * gates[row, unit, 3].astype("int32")
        return clamped(requantized(product, *factor) + zero, "int8")

    return te.compute(cell.shape, value, name="hidden")


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


def _check_begin(emitter: Emitter, op: TfliteOp, states: Sequence[int]) -> None:
    if not op.outputs[1:] and any(np.any(emitter.constant(index)) for index in states):
        raise NpukitError("its state does not begin at zero")


def svdf(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, feature filters, frame filters, [bias], state. Outputs: result, new state."""
    data, state = emitter.tensor(op.inputs[0]), emitter.tensor(op.inputs[SVDF_STATE])
    if state.shape[0] != 1 or data.shape[0] not in (0, 1):
        raise NpukitError("it has more than one frame at once")
    # TFLite's integer kernels implement ReLU by the range of int8.
    if data.dtype != "float32" and op.options["FusedActivationFunction"] != tflite.ActivationFunctionType.RELU:
        raise NpukitError("its activation is not ReLU, which alone TFLite's kernels of integers have")
    (_svdf_in_integers if state.dtype == "int16" else _svdf_in_reals)(emitter, op)


def _svdf_in_reals(emitter: Emitter, op: TfliteOp) -> None:
    """Emits a dense layer and a convolution, in float or with an 8-bit state."""
    data, features, frames, _, state = op.inputs
    is_float = emitter.tensor(data).dtype == "float32"
    row = emitter.emit(operators.matmul(emitter.real(data), operators.permute_dims(emitter.real(features), [1, 0])))
    row = emitter.emit(operators.reshape(row, (1, 1, 1, -1)))
    row = row if is_float else _rounded(emitter.emit, row, emitter.tensor(op.outputs[1]))
    emitter.define_real(op.outputs[1], _moved_on(emitter, emitter.real(state), row))
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
    emitter.define_real(op.outputs[0], activated(op, flat) if is_float else flat)


def _moved_on(emitter: Emitter, state: relax.Expr, row: relax.Expr) -> relax.Expr:
    """The state without its oldest frame, followed by the new row."""
    length = emitter.shape(state)[1]
    if length == 1:
        return row
    rest = emitter.emit(operators.strided_slice(state, [1], [1], [length]))
    return emitter.emit(operators.concat([rest, row], 1))


def _svdf_in_integers(emitter: Emitter, op: TfliteOp) -> None:
    """Emits loops over integers for a 16-bit state, because no other kernel computes the same."""
    data, features, frames, bias, state = op.inputs
    result, rank = emitter.scale(op.outputs[0]), op.options["Rank"]

    row = emitter.loops(
        partial(_fresh_row, emitter.scale(data).zero_point),
        emitter.value(data),
        "svdf_features",
        emitter.value(features),
        *_factor(emitter, data, features, state),
    )
    emitter.define(op.outputs[1], _moved_on(emitter, emitter.value(state), row))
    units = emitter.tensor(frames).shape[0] // rank
    filtered = emitter.loops(
        partial(_filtered, rank, result.zero_point),
        emitter.values[op.outputs[1]],
        "svdf_frames",
        emitter.value(frames),
        emitter.value(bias) if bias >= 0 else relax.const(np.zeros(units, np.int32)),
        *_factor(emitter, state, frames, op.outputs[0]),
    )
    emitter.define(op.outputs[0], filtered)


def _factor(emitter: Emitter, first: int, second: int, result: int) -> tuple[relax.Expr, relax.Expr]:
    """Multiplier and shift of a sum of products, in single precision as in TFLite."""
    a, b, whole = (np.float32(emitter.scale(index).scale) for index in (first, second, result))
    return multipliers([float(a * b / whole)])


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
