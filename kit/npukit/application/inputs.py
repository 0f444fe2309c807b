"""Inputs as the sensor gives them: their conversion becomes the first ops of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npukit.application.declared import Layout, SensorInput
from npukit.application.draft import Axes, Draft
from npukit.errors import NpukitError
from npukit.net.ops import Lookup, Quantize, Requantize
from npukit.net.tables import quantised
from npukit.net.tensor import Quantization, Tensor


def by_name(declared: Sequence[SensorInput], model: str, names: Sequence[str]) -> dict[str, SensorInput]:
    """The declaration of each input, by its name."""
    found: dict[str, SensorInput] = {}
    for each in declared:
        name = each.input or (names[0] if len(names) == 1 else "")
        if name not in names or name in found:
            said = f"declares the input {name!r} twice" if name in found else f"has no input {name!r} to declare"
            raise NpukitError(f"{model} {said}", tries=[f"input=NAME, one of: {', '.join(names)}"])
        found[name] = each
    return found


def sensor_axes(declared: SensorInput, shape: Sequence[int], layout: Layout) -> Axes:
    """Axis i of what the sensor gives is axis axes[i] of the model's input."""
    if declared.layout is None or declared.layout == layout:
        return tuple(range(len(shape)))
    if len(shape) != 4:
        raise NpukitError(f"an input of shape {list(shape)} is no image whose layout could be {declared.layout}")
    return tuple(layout.index(axis) for axis in declared.layout)


def real_numbers(declared: SensorInput, values: np.ndarray, shape: Sequence[int], layout: Layout) -> np.ndarray:
    """The model's view of the sensor's values, which have a leading axis of cases, in the model's layout."""
    axes = sensor_axes(declared, shape, layout)
    given = values.reshape(len(values), *(shape[axis] for axis in axes)).astype(np.float32)
    mean, std = (_by_channel(declared, numbers, given.shape[1:], layout) for numbers in (declared.mean, declared.std))
    seen = (given * np.float32(declared.scale) - mean) / std
    return seen.transpose(0, *(1 + place for place in np.argsort(axes))).astype(np.float32)


def _by_channel(declared: SensorInput, numbers: Sequence[float], shape: Sequence[int], layout: Layout) -> np.ndarray:
    """The numbers along the channels of a tensor of the sensor's."""
    axis = (declared.layout or layout).index("C") if len(shape) == 4 else len(shape) - 1
    if len(numbers) not in (1, shape[axis]):
        raise NpukitError(f"{len(numbers)} means or standard deviations are given for {shape[axis]} channels")
    return np.array(numbers).reshape(-1, *(1,) * (len(shape) - 1 - axis if len(numbers) > 1 else 0))


def with_inputs(draft: Draft, declared: Sequence[SensorInput], layout: Layout) -> None:
    """The net's inputs become the sensor's, under the same names."""
    for name, each in by_name(declared, draft.net.name, draft.net.inputs).items():
        inner = draft.new_name(f"{name}_of_model")
        draft.renamed({name: inner})
        try:
            _convert(draft, each, name, inner, layout)
        except NpukitError as error:
            raise NpukitError(f"{draft.net.name}: input {name!r}: {error.message}", tries=error.tries) from error


def _convert(draft: Draft, declared: SensorInput, name: str, inner: str, layout: Layout) -> None:
    wanted = draft.tensors[inner]
    axes = sensor_axes(declared, wanted.shape, layout)
    shape = tuple(wanted.shape[axis] for axis in axes)
    if declared.type is None:
        draft.tensors[name] = replace(wanted, name=name, shape=shape)
        draft.moved(draft.before, name, tuple(map(int, np.argsort(axes))), inner)
        return
    meaning = None if declared.type == "float32" else Quantization((declared.scale,), (0,))
    draft.tensors[name] = Tensor(name, shape, declared.type, meaning)
    integers = _int8(draft, inner)
    if axes == tuple(range(len(shape))):
        _quantised(draft, declared, name, integers, layout, integers)
    else:
        made = _quantised(draft, declared, name, integers, layout, "")
        draft.moved(draft.before, made, tuple(map(int, np.argsort(axes))), integers)
    if integers != inner:
        draft.op(draft.before, Requantize(), (integers,), None, output=inner)


def _int8(draft: Draft, inner: str) -> str:
    """The tensor that the sensor's numbers become: the model's input, or, where that is uint8, the same as int8."""
    tensor = draft.tensors[inner]
    if tensor.quantization is None or tensor.dtype not in ("int8", "uint8"):
        raise NpukitError(f"the model takes it as {tensor.dtype}, not as quantised numbers")
    if tensor.dtype == "int8":
        return inner
    same = Quantization(tensor.quantization.scales, (tensor.quantization.zero_point - 128,))
    integers = draft.new_name(f"{inner}_int8")
    draft.tensors[integers] = Tensor(integers, tensor.shape, "int8", same)
    for op in draft.net.ops:
        if op.kind == Requantize.kind and op.inputs == (inner,) and draft.tensors[op.output].quantization == same:
            draft.replace_reads(op.output, integers)
    return integers


def _quantised(draft: Draft, declared: SensorInput, source: str, like: str, layout: Layout, output: str) -> str:
    """The sensor's numbers quantised as `like`: by a table where it has one scale and 256 values."""
    meaning, shape = draft.tensors[like].quantization, draft.tensors[source].shape
    assert meaning is not None
    offset = _by_channel(declared, declared.mean, shape, layout) / declared.scale
    step = _by_channel(declared, declared.std, shape, layout) * (meaning.scale / declared.scale)
    with np.errstate(all="ignore"):
        offset, step = offset.astype(np.float32), step.astype(np.float32)
    if not (np.all(np.isfinite(offset)) and np.all(np.isfinite(step) & (step > 0))):
        raise NpukitError("its scale, mean and std are too large or too small together")
    if offset.size == step.size == 1 and declared.type in ("int8", "uint8"):
        limits = np.iinfo(declared.type)
        every = np.arange(limits.min, limits.max + 1)
        table = quantised(every, offset, step, meaning.zero_point)
        inputs = source, draft.constant(f"{source}_table", table)
        return draft.op(draft.before, Lookup(), inputs, meaning, output=output)
    inputs = source, draft.constant(f"{source}_offset", offset), draft.constant(f"{source}_step", step)
    away = draft.away and declared.type == "float32" and declared.is_plain
    return draft.op(draft.before, Quantize(away), inputs, meaning, output=output)
