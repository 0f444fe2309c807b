"""Inputs in the sensor's form: their conversion becomes the first ops of the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npukit.application.declared import Layout, SensorInput
from npukit.application.draft import Axes, Draft
from npukit.application.images import LOWEST, with_image
from npukit.application.sounds import rows_of, with_sound, with_windows_kept
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.ops import Lookup, Quantize, Requantize, Reshape
from npukit.net.reference import evaluate
from npukit.net.tables import quantised
from npukit.net.tensor import Quantization, Tensor


def by_name(declared: Sequence[SensorInput], model: str, names: Sequence[str]) -> dict[str, SensorInput]:
    """The declarations by name of the input."""
    found: dict[str, SensorInput] = {}
    for each in declared:
        name = each.input or (names[0] if len(names) == 1 else "")
        if name not in names or name in found:
            said = f"declares the input {name!r} twice" if name in found else f"has no input {name!r} to declare"
            raise NpukitError(f"{model} {said}", tries=[f"input=NAME, one of: {', '.join(names)}"])
        found[name] = each
    return found


def sensor_axes(declared: SensorInput, shape: Sequence[int], layout: Layout) -> Axes:
    """The axes of the sensor's tensor: axis i is axis axes[i] of the model's input."""
    if declared.layout is None or declared.layout == layout:
        return tuple(range(len(shape)))
    if len(shape) != 4:
        raise NpukitError(f"an input of shape {list(shape)} is no image whose layout could be {declared.layout}")
    return tuple(layout.index(axis) for axis in declared.layout)


def sensor_shape(declared: SensorInput, shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """The shape of the sensor's tensor for a model's input."""
    if not declared.has_steps:
        return tuple(shape[axis] for axis in sensor_axes(declared, shape, layout))
    net = _steps_alone(declared, _made(declared, shape, layout)[1])
    return net.tensor(net.inputs[0]).shape


def _with_steps(draft: Draft, declared: SensorInput, name: str, shape: tuple[int, ...], unit: float = 1.0) -> str:
    """The result of a sensor's steps, of `shape` with channels last. `name`: the sensor's values, in `unit`."""
    return (with_sound if declared.features else with_image)(draft, declared, name, shape, unit)


def _steps_alone(declared: SensorInput, shape: tuple[int, ...]) -> Net:
    draft = Draft(Net("sensor", (), (), (), {}))
    return draft.finished(("given",), (_with_steps(draft, declared, "given", shape),))


def seen_by_steps(declared: SensorInput, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The result of the steps for each case, of the shape. With `new` windows, cases follow each other in time."""
    net, before = _steps_alone(declared, shape), None
    given, made = net.tensor(net.inputs[0]), net.tensor(net.outputs[0])
    rows, count = rows_of(declared, shape) if declared.new else (0, 0)
    windows, results = deque([np.zeros(count, np.int32)] * rows, rows), list[np.ndarray]()  # silent at first
    for case in values:
        before = evaluate(net, [case.reshape(given.shape).astype(given.dtype)], before)
        result = before[made.name].astype(np.int32) + (0 if made.quantization is None else 128)
        windows.extend(result if declared.new else ())
        results.append(np.stack(windows) if declared.new else result)
    return np.stack([each.reshape(shape) for each in results])


def _made(declared: SensorInput, shape: tuple[int, ...], layout: Layout) -> tuple[SensorInput, tuple[int, ...]]:
    """The declaration and shape of the result of a sensor's steps, an image with channels last."""
    plain = declared.model_copy(update={"layout": "NHWC"}) if declared.of_camera and len(shape) == 4 else declared
    return plain, tuple(shape[axis] for axis in sensor_axes(plain, shape, layout))


def real_numbers(declared: SensorInput, values: np.ndarray, shape: tuple[int, ...], layout: Layout) -> np.ndarray:
    """The model's view of the sensor's values, in the model's layout. Values have a leading axis of cases."""
    if declared.has_steps:
        declared, made = _made(declared, shape, layout)
        values = seen_by_steps(declared, values, made)
    axes = sensor_axes(declared, shape, layout)
    given = values.reshape(len(values), *(shape[axis] for axis in axes)).astype(np.float32)
    mean, std = (_by_channel(declared, numbers, given.shape[1:], layout) for numbers in (declared.mean, declared.std))
    seen = (given * np.float32(declared.scale) - mean) / std
    return seen.transpose(0, *(1 + place for place in np.argsort(axes))).astype(np.float32)


def _by_channel(declared: SensorInput, numbers: Sequence[float], shape: Sequence[int], layout: Layout) -> np.ndarray:
    """The numbers shaped to broadcast along the channels of the sensor's tensor."""
    axis = (declared.layout or layout).index("C") if len(shape) == 4 else len(shape) - 1
    if len(numbers) not in (1, shape[axis]):
        raise NpukitError(f"{len(numbers)} means or standard deviations are given for {shape[axis]} channels")
    return np.array(numbers).reshape(-1, *(1,) * (len(shape) - 1 - axis if len(numbers) > 1 else 0))


def with_inputs(draft: Draft, declared: Sequence[SensorInput], layout: Layout) -> None:
    """Replace the net's inputs by the sensor's, under the same names."""
    for name, each in by_name(declared, draft.net.name, draft.net.inputs).items():
        inner = draft.new_name(f"{name}_of_model")
        draft.renamed({name: inner})
        try:
            _convert(draft, each, name, inner, layout)
        except NpukitError as error:
            raise NpukitError(f"{draft.net.name}: input {name!r}: {error.message}", tries=error.tries) from error


def _convert(draft: Draft, declared: SensorInput, name: str, inner: str, layout: Layout) -> None:
    wanted = draft.tensors[inner]
    if declared.type is None:
        axes = sensor_axes(declared, wanted.shape, layout)
        draft.tensors[name] = replace(wanted, name=name, shape=tuple(wanted.shape[axis] for axis in axes))
        draft.moved(draft.before, name, tuple(map(int, np.argsort(axes))), inner)
        return
    integers = _int8(draft, inner)
    source, declared = _sensed(draft, declared, name, integers, layout)
    axes = sensor_axes(declared, wanted.shape, layout)
    if declared.new and draft.tensors[source].elements != wanted.elements:
        made = _quantised(draft, declared, source, integers, layout, "")
        offset, step = (draft.constants[f"{source}_{each}"] for each in ("offset", "step"))
        zeros, zero_point = np.zeros(draft.tensors[source].shape[-1]), _meaning(draft, integers).zero_point
        with_windows_kept(draft, made, integers, quantised(zeros, offset, step, zero_point))
    elif axes == tuple(range(len(wanted.shape))):
        _quantised(draft, declared, source, integers, layout, integers)
    else:
        made = _quantised(draft, declared, source, integers, layout, "")
        draft.moved(draft.before, made, tuple(map(int, np.argsort(axes))), integers)
    if integers != inner:
        draft.op(draft.before, Requantize(), (integers,), None, output=inner)


def _sensed(draft: Draft, declared: SensorInput, name: str, like: str, layout: Layout) -> tuple[str, SensorInput]:
    """The tensor to quantise as `like`, computed from the sensor's tensor `name`."""
    declared, made = _made(declared, draft.tensors[like].shape, layout)
    if declared.has_steps:
        same = declared.of_camera and _is_same(draft, declared, like, made, layout)
        source = _with_steps(draft, declared, name, made, _meaning(draft, like).scale if same else declared.scale)
        return (source if declared.new else draft.reshaped(source, made)), declared
    meaning = None if declared.type == "float32" else Quantization((declared.scale,), (0,))
    draft.tensors[name] = Tensor(name, made, str(declared.type), meaning)
    return name, declared


def _is_same(draft: Draft, declared: SensorInput, like: str, shape: tuple[int, ...], layout: Layout) -> bool:
    """True if the model takes the camera's bytes minus 128."""
    meaning, values = _meaning(draft, like), np.arange(-128, 128)
    offset, step = _offset_and_step(declared, shape, layout, meaning.scale, LOWEST)
    return offset.size == step.size == 1 and np.array_equal(quantised(values, offset, step, meaning.zero_point), values)


def _meaning(draft: Draft, name: str) -> Quantization:
    meaning = draft.tensors[name].quantization
    assert meaning is not None
    return meaning


def _int8(draft: Draft, inner: str) -> str:
    """The model's input as int8, which the sensor's numbers are converted to."""
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
            draft.replace_reads({op.output: integers})
    return integers


def _quantised(draft: Draft, declared: SensorInput, source: str, like: str, layout: Layout, output: str) -> str:
    """The sensor's numbers, quantised as `like`. By a table for 8-bit values with a single scale."""
    meaning, given = _meaning(draft, like), draft.tensors[source]
    offset, step = _offset_and_step(declared, given.shape, layout, meaning.scale, given.zero_point)
    if offset.size == step.size == 1 and given.dtype in ("int8", "uint8"):
        limits = np.iinfo(given.dtype)
        values = np.arange(limits.min, limits.max + 1)
        table = quantised(values, offset, step, meaning.zero_point)
        if (given.dtype, given.quantization) == ("int8", meaning) and np.array_equal(table, values):
            return draft.op(draft.before, Reshape(), (source,), meaning, output=output) if output else source
        inputs = source, draft.constant(f"{source}_table", table)
        return draft.op(draft.before, Lookup(), inputs, meaning, output=output)
    inputs = source, draft.constant(f"{source}_offset", offset), draft.constant(f"{source}_step", step)
    away = draft.away and declared.type == "float32" and declared.is_plain
    return draft.op(draft.before, Quantize(away), inputs, meaning, output=output)


def _offset_and_step(
    declared: SensorInput, shape: Sequence[int], layout: Layout, scale: float, zero: int
) -> tuple[np.ndarray, np.ndarray]:
    """The offset and the step that quantise integers with a zero point to a scale."""
    offset = _by_channel(declared, declared.mean, shape, layout) / declared.scale + zero
    step = _by_channel(declared, declared.std, shape, layout) * (scale / declared.scale)
    with np.errstate(all="ignore"):
        offset, step = offset.astype(np.float32), step.astype(np.float32)
    if not (np.all(np.isfinite(offset)) and np.all(np.isfinite(step) & (step > 0))):
        raise NpukitError("its scale, mean and std are too large or too small together")
    return offset, step
