"""Outputs in the application's form: softmax, argmax, top-k and detections become the last ops of the network."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from npukit.application.declared import Layout, WantedOutput
from npukit.application.draft import Draft
from npukit.errors import NpukitError
from npukit.net.c_code.function import body_of, text_of
from npukit.net.c_code.rows import detections_steps
from npukit.net.limits import STEPS
from npukit.net.ops import ArgMax, Attributes, Requantize, Reshape, Softmax, TopK, TvmCode
from npukit.net.tables import SIGMOID_OUTPUT
from npukit.net.tensor import Quantization, Tensor


def with_outputs(
    draft: Draft, declared: Sequence[WantedOutput], layout: Layout, real: Collection[int] = ()
) -> tuple[str, ...]:
    """The outputs that replace the net's. `top` gives two outputs, indices and values. `real`: numbers of the outputs
    to convert to float."""
    wanted = {each.output: each for each in declared}
    outputs, scores = draft.net.outputs, [each.scores for each in declared if each.scores is not None]
    if len({*wanted, *scores}) != len(declared) + len(scores) or max([*wanted, *scores], default=0) >= len(outputs):
        raise NpukitError(f"{draft.net.name} has {len(outputs)} outputs; an output is declared twice, or beyond them")
    found: list[str] = []
    for place, name in enumerate(outputs):
        if place in scores:
            continue
        try:
            if place in wanted:
                found += _given(draft, name, wanted[place], layout)
            else:
                found.append(draft.dequantized(name) if place in real else name)
        except NpukitError as error:
            raise NpukitError(f"{draft.net.name}: output {place}: {error.message}", tries=error.tries) from error
    return tuple(found)


def _given(draft: Draft, name: str, wanted: WantedOutput, layout: Layout) -> list[str]:
    if wanted.detections is not None:
        scores = None if wanted.scores is None else draft.net.outputs[wanted.scores]
        return [with_detections(draft, wanted, name, scores)]
    name = _int8(draft, name)
    if wanted.softmax:
        if any(op.output == name and op.kind == Softmax.kind for op in draft.net.ops):
            raise NpukitError("it is a softmax already", tries=["leave softmax out of --postprocess"])
        name = _along_channels(draft, name, Softmax(), layout, SIGMOID_OUTPUT, "int8")
    if wanted.argmax:
        vector = _vector(draft, name)
        rank = len(draft.tensors[vector].shape)
        axis = layout.index("C") if rank == 4 else rank - 1
        return [draft.op(draft.after, ArgMax(axis), (vector,), None, "int32")]
    if wanted.top is None:
        return [name]
    quantization = draft.tensors[name].quantization
    return [
        _along_channels(draft, name, TopK(wanted.top), layout, None, "int32"),
        _along_channels(draft, name, TopK(wanted.top, values=True), layout, quantization, "int8"),
    ]


def _int8(draft: Draft, name: str) -> str:
    """The output as int8, before a conversion to uint8."""
    tensor, maker = draft.tensors[name], next((op for op in draft.net.ops if op.output == name), None)
    if tensor.dtype == "uint8" and maker is not None and maker.kind == Requantize.kind:
        return maker.inputs[0]
    if tensor.dtype != "int8" or tensor.quantization is None:
        raise NpukitError(f"it is {tensor.dtype}, not quantised int8")
    return name


def _vector(draft: Draft, name: str) -> str:
    """The tensor, reshaped to a row if it is a vector along an axis other than the last."""
    tensor = draft.tensors[name]
    if tensor.elements != max(tensor.shape) or tensor.shape[-1] == tensor.elements:
        return name
    row = draft.new_name(Reshape.kind)
    draft.tensors[row] = Tensor(row, (1, tensor.elements), tensor.dtype, tensor.quantization)
    return draft.op(draft.after, Reshape(), (name,), None, output=row)


def _along_channels(
    draft: Draft, name: str, attributes: Attributes, layout: Layout, quantization: Quantization | None, dtype: str
) -> str:
    """Append an op along the last axis of rows, or along the channels of images in either layout."""
    name = _vector(draft, name)
    if len(draft.tensors[name].shape) != 4 or layout == "NHWC":
        return draft.op(draft.after, attributes, (name,), quantization, dtype)
    axes = tuple("NCHW".index(axis) for axis in "NHWC")
    last = draft.op(draft.after, attributes, (draft.moved(draft.after, name, axes),), quantization, dtype)
    return draft.moved(draft.after, last, tuple(map(int, np.argsort(axes))))


CORNERS = 4
FIELDS = 7
"""Numbers of a detection: corners, class, score, and 1 if valid."""
LEAST = float(np.finfo(np.float32).min)
"""A score below any other."""


def with_detections(draft: Draft, wanted: WantedOutput, name: str, scores: str | None) -> str:
    """The detections, float32 (1, detections, 7), from an output with boxes and an output with scores."""
    boxes, numbers = _rows(draft, wanted, name), _rows(draft, wanted, scores) if scores else None
    _, count, columns = draft.tensors[boxes].shape
    first, width = (0, draft.tensors[numbers].shape[2]) if numbers else (CORNERS, columns)
    first += wanted.background
    if columns < CORNERS or first >= width or (numbers and draft.tensors[numbers].shape[1] != count):
        raise NpukitError(f"{count} boxes of {columns} numbers and scores of {width} are no detections")
    STEPS.check(wanted.detections or 0, "the detections")
    anchors = (draft.constant(draft.new_name("anchors"), _anchors(wanted, count)),) if wanted.anchors else ()
    scales = zip(("y_scale", "x_scale", "h_scale", "w_scale"), wanted.scales, strict=True)
    most = wanted.detections or 0
    words = {"boxes": count, "numbers": columns, "columns": width, "first": first, "least": LEAST}
    words |= {"passes": width - first if wanted.each_class else 1, "max_detections": most, "most_of_a_pass": most}
    reals = {"nms_score_threshold": wanted.score, "nms_iou_threshold": wanted.iou, **dict(scales)}
    words |= {name: float(np.float32(value)) for name, value in reals.items()}
    words["output_size"] = most * FIELDS
    words = {**words, "CORNERS": body_of(text_of(f"detection/by_{wanted.boxes}.c"), words)}
    code, cycles = body_of(text_of("detection/detections.c"), words), detections_steps(words, wanted.boxes).cycles
    made = draft.new_name("detections")
    draft.tensors[made] = Tensor(made, (1, wanted.detections or 0, FIELDS), "float32")
    attributes = TvmCode("detections", code, 20 * count, "boxes that overlap", cycles=int(cycles), given=True)
    return draft.op(draft.after, attributes, (boxes, numbers or boxes, *anchors), None, output=made)


def _rows(draft: Draft, wanted: WantedOutput, name: str) -> str:
    """An output in float, with a row for each box."""
    shape = draft.tensors[name].shape
    if len(shape) != 3 or shape[0] != 1:
        raise NpukitError(f"{name} of shape {list(shape)} is not (1, boxes, numbers)")
    real = name if draft.tensors[name].dtype == "float32" else draft.dequantized(name)
    return draft.moved(draft.after, real, (0, 2, 1)) if wanted.transposed else real


def _anchors(wanted: WantedOutput, count: int) -> np.ndarray:
    """The anchors in the file: centre, height and width of each."""
    try:
        values = np.load(Path(wanted.anchors), allow_pickle=False)
    except (OSError, ValueError) as fault:
        raise NpukitError(f"anchors {wanted.anchors} cannot be read: {fault}") from fault
    if values.shape != (count, CORNERS) or values.dtype.kind not in "fiu":
        raise NpukitError(f"anchors {wanted.anchors} are {values.dtype}{list(values.shape)}, not ({count}, 4)")
    return np.ascontiguousarray(values, np.float32)
