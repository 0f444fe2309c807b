"""TFLite's Fourier transforms in float, and TFLite Micro's signal ops, exact to TFLite Micro's kernels. The integer
arithmetic is in `templates/ops/signal`.

Elements of a result that a kernel leaves unwritten are zero here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.expressions import place
from npukit.frontend.fourier import fourier
from npukit.frontend.given import made_by, tensor_type
from npukit.frontend.tflite.emit import Converter, Emitter, operators
from npukit.frontend.tflite.model import TfliteOp, custom_kind, options_of
from npukit.net.c_code.function import Words
from npukit.net.c_code.rows import EACH, NO_STEPS, Steps
from npukit.net.c_code.signals import (
    LOGARITHMS,
    STEPS_OF,
    WIDTHS,
    WINDOW_CYCLES,
    filter_bank_steps,
    fourier_parts,
    largest_steps,
    parts_of,
    scale_bits_steps,
)
from npukit.net.importer.given import call_of
from npukit.net.limits import STEPS

GAINS = 125
"""Entries of a table of gains, for 32 powers of two."""


def _code(
    emitter: Emitter,
    op: TfliteOp,
    file: str,
    operands: Sequence[Any],
    place: int = 0,
    words: Words | None = None,
    steps: Steps | None = None,
) -> relax.Var:
    """A result of the op, from a C template that reads the op's options. `place`: the result's index."""
    tensor, steps = emitter.tensor(op.outputs[place]), steps or STEPS_OF.get(file, NO_STEPS)
    words = {**{name: int(value) for name, value in options_of(op).items()}, **(words or {})}
    return made_by(emitter.builder, f"signal/{file}.c", operands, (tensor.shape, tensor.dtype), words, steps=steps)


def _by(
    file: str, table: np.ndarray | None = None, words: Words | None = None, steps: Steps | None = None
) -> Converter:
    """The converter of an op whose single result has as many elements as the first input."""

    def convert(emitter: Emitter, op: TfliteOp) -> None:
        operands = [emitter.value(index) for index in op.inputs]
        _check_sizes(emitter, operands[0], op.outputs)
        operands += [] if table is None else [relax.const(table)]
        emitter.define(op.outputs[0], _code(emitter, op, file, operands, words=words, steps=steps))

    return convert


def _window(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: signal, window. The window is as long as a frame of the signal."""
    length, count = (_size(emitter.tensor(index).shape) for index in op.inputs)
    if not count or length % count:
        raise NpukitError(f"a window of {count} does not suit {length} samples")
    words = {"SAMPLE": "p0[at]", "FACTOR": "p1[at]" if length == count else f"p1[at % {count}]"}
    alike = length == count
    steps = Steps(1, (EACH, EACH if alike else None), alike, cycles=WINDOW_CYCLES if alike else WINDOW_CYCLES + 5)
    _by("window", words=words, steps=steps)(emitter, op)


def _check_sizes(emitter: Emitter, data: relax.Expr, results: Sequence[int]) -> None:
    sizes = {_size(emitter.shape(data)), *(_size(emitter.tensor(index).shape) for index in results)}
    if len(sizes) > 1:
        raise NpukitError("its results are not as large as its input")


def _size(shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _auto_scale(emitter: Emitter, op: TfliteOp) -> None:
    """Outputs: the input times 2^n, and n."""
    data = emitter.value(op.inputs[0])
    _check_sizes(emitter, data, op.outputs[:1])
    size = _size(emitter.shape(data))
    parts = parts_of(size)
    words: Words = {"part_size": size // parts}
    result, steps = ((parts,), "int32"), largest_steps(size // parts)
    largest = made_by(emitter.builder, "signal/largest.c", [data], result, words, steps=steps)
    bits = _code(emitter, op, "scale_bits", [data, largest], 1, words, scale_bits_steps(parts))
    emitter.define(op.outputs[1], bits)
    emitter.define(op.outputs[0], _code(emitter, op, "scaled", [data, emitter.values[op.outputs[1]]]))


def _energy(emitter: Emitter, op: TfliteOp) -> None:
    data, options, bins = emitter.value(op.inputs[0]), options_of(op), emitter.tensor(op.outputs[0]).shape[0]
    if not 0 <= options["start_index"] <= options["end_index"] <= bins or emitter.shape(data)[-1] != 2 * bins:
        raise NpukitError(f"it takes other energies than the {bins} of its input")
    emitter.define(op.outputs[0], _code(emitter, op, "energy", [data]))


def _filter_bank(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: energies, weights, their complements; by channel, first frequency, first weight, number of weights."""
    operands = [emitter.value(index) for index in op.inputs]
    weights, rests, *places = (emitter.constant(index).astype(np.int64) for index in op.inputs[1:])
    frequencies, firsts, widths = places
    channels = options_of(op)["num_channels"]
    held = {weights.size, rests.size, int((firsts + widths).max())}
    if {each.size for each in places} != {channels + 1} or emitter.tensor(op.outputs[0]).shape != (channels,):
        raise NpukitError(f"it has other filters than for {channels} channels")
    if min(map(np.min, (weights, rests, *places))) < 0 or max(held) > min(weights.size, rests.size):
        raise NpukitError("its filters lie beyond its weights, or some of these are negative")
    if int((frequencies + widths).max()) > _size(emitter.shape(operands[0])):
        raise NpukitError("its filters lie beyond its input")
    steps = filter_bank_steps(widths)
    emitter.define(op.outputs[0], _code(emitter, op, "filter_bank", operands, steps=steps))


def _spectral_subtraction(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: signal, noise of the previous frame. Outputs: signal without noise, noise, noise again."""
    signal, before = (emitter.value(index) for index in op.inputs)
    _check_sizes(emitter, signal, op.outputs)
    noise = _code(emitter, op, "noise", [signal, before], 1)
    for index in op.outputs[1:]:
        emitter.define(index, noise)
    emitter.define(op.outputs[0], _code(emitter, op, "without_noise", [signal, noise]))


def _pcan(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: signal, noise, gains."""
    if _size(emitter.tensor(op.inputs[2]).shape) < GAINS:
        raise NpukitError(f"its table has fewer than {GAINS} gains")
    _check_sizes(emitter, emitter.value(op.inputs[1]), op.outputs)
    _by("pcan")(emitter, op)


def _rfft(emitter: Emitter, op: TfliteOp) -> None:
    data, count = emitter.value(op.inputs[0]), int(options_of(op)["fft_length"])
    kind, length, points = emitter.tensor(op.inputs[0]).dtype, emitter.shape(data)[-1], count // 2
    rows = _size(emitter.shape(data)[:-1])
    if kind not in WIDTHS or points < 2 or count & (count - 1):
        raise NpukitError(f"it transforms {count} numbers of {kind}; npukit reads powers of two of int16 and int32")
    if length > count or _size(emitter.tensor(op.outputs[0]).shape) != rows * (count + 2):
        raise NpukitError(f"its ends do not suit {count} numbers")
    for name, part in fourier_parts(points, kind, length, rows).items():
        operands, result = [data, *map(relax.const, part.tables)], tensor_type(part.shape, kind)
        made = call_of(name, part.code, operands, result, work_bytes=part.work_bytes, steps=part.steps)
        data = emitter.emit(made)
    emitter.define(op.outputs[0], operators.reshape(data, emitter.tensor(op.outputs[0]).shape))


def _delay(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: signal, last samples. Outputs: delayed signal, last samples."""
    if len(op.inputs) == 1:
        emitter.define(op.outputs[0], emitter.value(op.inputs[0]))
        return
    whole, length = _joined(emitter, op), emitter.shape(emitter.value(op.inputs[0]))[-1]
    emitter.define(op.outputs[0], _part(whole, 0, length))
    emitter.define(op.outputs[1], _part(whole, length, emitter.shape(whole)[-1]))


def _joined(emitter: Emitter, op: TfliteOp) -> Any:
    """The last samples, followed by the new samples."""
    return emitter.emit(operators.concat([emitter.value(op.inputs[1]), emitter.value(op.inputs[0])], -1))


def _part(data: Any, begin: int, end: int) -> Any:
    return operators.strided_slice(data, [len(data.ty.shape) - 1], [begin], [end])


def _framer(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: signal, [last samples], [number of past samples]. Outputs: frames, True if these are whole, states."""
    options, data = options_of(op), emitter.value(op.inputs[0])
    size, step, length = options["frame_size"], options["frame_step"], emitter.shape(data)[-1]
    if length % step or size < step:
        raise NpukitError(f"frames of {size} every {step} do not suit {length} samples")
    STEPS.check(length // step, "its result")
    whole = _joined(emitter, op) if op.inputs[1:] else data
    parts = [emitter.emit(_part(whole, begin, begin + size)) for begin in range(0, length, step)]
    frames = emitter.emit(operators.concat(parts, -1))
    emitter.define(op.outputs[0], operators.reshape(frames, emitter.tensor(op.outputs[0]).shape))
    if op.inputs[1:]:
        emitter.define(op.outputs[2], _part(whole, length, emitter.shape(whole)[-1]))
    if not op.inputs[2:]:
        emitter.define(op.outputs[1], _code(emitter, op, "whole", [data], 1, steps=Steps(0, cycles=1)))
        return
    come, wanted = emitter.value(op.inputs[2]), relax.const(np.array(emitter.shape(whole)[-1] - length, np.int32))
    _define_flag(emitter, op, operators.greater_equal(come, wanted))
    more = emitter.emit(operators.add(come, relax.const(np.array(length, np.int32))))
    emitter.define(op.outputs[3], operators.minimum(more, wanted))


def _define_flag(emitter: Emitter, op: TfliteOp, flag: Any) -> None:
    """Defines the second result, a Boolean scalar."""
    emitter.define(op.outputs[1], operators.reshape(emitter.emit(flag), ()))


def _overlap_add(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: frames, partial sum. Outputs: finished samples, partial sum."""
    data, total = (emitter.value(index) for index in op.inputs)
    axis, size, step = len(emitter.shape(data)) - 2, emitter.shape(data)[-1], options_of(op)["frame_step"]
    done, kind = [], emitter.tensor(op.inputs[0]).dtype
    STEPS.check(emitter.shape(data)[axis], "its input")
    for frame in range(emitter.shape(data)[axis]):
        fresh = emitter.emit(operators.strided_slice(data, [axis], [frame], [frame + 1]))
        total = _sum(emitter, total, emitter.emit(operators.squeeze(fresh, [axis])), kind)
        done.append(emitter.emit(_part(total, 0, step)))
        blank = relax.const(np.zeros((*emitter.shape(total)[:-1], step), kind))
        total = emitter.emit(operators.concat([emitter.emit(_part(total, step, size)), blank], -1))
    emitter.define(op.outputs[0], operators.concat(done, -1))
    emitter.define(op.outputs[1], total)


def _sum(emitter: Emitter, first: Any, second: Any, kind: str) -> Any:
    """A sum, saturated to the type."""
    if kind == "float32":
        return emitter.emit(operators.add(first, second))
    wide = emitter.emit(operators.add(*(emitter.emit(operators.astype(each, "int32")) for each in (first, second))))
    low, high = (relax.const(np.array(end, np.int32)) for end in (np.iinfo(kind).min, np.iinfo(kind).max))
    ended = emitter.emit(operators.minimum(emitter.emit(operators.maximum(wide, low)), high))
    return emitter.emit(operators.astype(ended, kind))


def _stacker(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: frame, last frames, number of waiting frames. Outputs: last frames, True if enough frames wait, states.
    The frames before the first are taken as copies of the first."""
    data, held, wait = (emitter.value(index) for index in op.inputs)
    options, (channels,), (size,) = options_of(op), emitter.shape(data), emitter.shape(held)
    frames = size // channels
    if size % channels or not 0 < options["stacker_step"] <= frames:
        raise NpukitError(f"it steps by {options['stacker_step']} of {frames} frames")
    STEPS.check(frames, "its result")
    first = emitter.emit(operators.less(wait, relax.const(np.array(0, np.int32))))
    alike = emitter.emit(operators.concat([data] * frames, 0))
    moved = emitter.emit(operators.concat([emitter.emit(_part(held, channels, size)), data], 0))
    stack = emitter.emit(operators.where(first, alike, moved))
    begun, one, enough, step = (
        relax.const(np.array(each, np.int32))
        for each in (options["stacker_left_context"] + 1, 1, frames, options["stacker_step"])
    )
    waiting = emitter.emit(operators.where(first, begun, emitter.emit(operators.add(wait, one))))
    whole = emitter.emit(operators.greater_equal(waiting, enough))
    for index in (op.outputs[0], op.outputs[2]):
        emitter.define(index, stack)
    _define_flag(emitter, op, operators.greater_equal(waiting, enough))
    taken = emitter.emit(operators.subtract(waiting, step))
    emitter.define(op.outputs[3], operators.where(whole, taken, waiting))


def rfft_2d(emitter: Emitter, op: TfliteOp) -> None:
    """Transforms rows, then columns. The parts of complex numbers lie on an additional last axis."""
    data, (rows, columns), swapped = emitter.real(op.inputs[0]), emitter.integers(op.inputs[1]), [0, 2, 1, 3]
    *outer, height, width = emitter.shape(data)
    count, images = columns // 2 + 1, prod(outer)
    found = emitter.emit(operators.matmul(data, relax.const(fourier(width, columns, 1, onesided=True))))
    if (height, rows) != (1, 1):
        pairs = emitter.emit(operators.reshape(found, (images, height, count, 2)))
        flat = operators.reshape(emitter.emit(operators.permute_dims(pairs, swapped)), (images, count, height * 2))
        lines = emitter.emit(operators.matmul(emitter.emit(flat), relax.const(fourier(height, rows, 2))))
        pairs = emitter.emit(operators.reshape(lines, (images, count, rows, 2)))
        found = emitter.emit(operators.permute_dims(pairs, swapped))
    emitter.define(op.outputs[0], operators.reshape(found, (*outer, rows, count, 2)))


def part_of_complex(part: int) -> Converter:
    def convert(emitter: Emitter, op: TfliteOp) -> None:
        emitter.define(op.outputs[0], place(emitter.builder, emitter.value(op.inputs[0]), -1, part))

    return convert


def complex_abs(emitter: Emitter, op: TfliteOp) -> None:
    squares = emitter.emit(operators.square(emitter.value(op.inputs[0])))
    emitter.define(op.outputs[0], operators.sqrt(emitter.emit(operators.sum(squares, axis=-1))))


SIGNAL: Mapping[str, Converter] = {
    "COMPLEX_ABS": complex_abs,
    "IMAG": part_of_complex(1),
    "REAL": part_of_complex(0),
    "RFFT2D": rfft_2d,
} | {
    custom_kind(name): converter
    for name, converter in {
        "SignalDelay": _delay,
        "SignalEnergy": _energy,
        "SignalFftAutoScale": _auto_scale,
        "SignalFilterBank": _filter_bank,
        "SignalFilterBankLog": _by("log", LOGARITHMS),
        "SignalFilterBankSpectralSubtraction": _spectral_subtraction,
        "SignalFilterBankSquareRoot": _by("square_root"),
        "SignalFramer": _framer,
        "SignalOverlapAdd": _overlap_add,
        "SignalPCAN": _pcan,
        "SignalRfft": _rfft,
        "SignalStacker": _stacker,
        "SignalWindow": _window,
    }.items()
}
