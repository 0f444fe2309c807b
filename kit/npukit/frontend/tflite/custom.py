"""Custom ops of a TFLite file: a detector's post-processing, and ops with C from the user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.given import c_of, made_by, ops_of
from npukit.frontend.tflite.emit import Converter, Emitter, operators, tensor_type
from npukit.frontend.tflite.model import TfliteModel, TfliteOp, custom_kind, name_of, options_of
from npukit.net.c_code.function import body_of, text_of
from npukit.net.c_code.rows import detections_steps
from npukit.net.importer.given import call_of

DEFAULTS: Mapping[str, Any] = {"detections_per_class": 100, "use_regular_nms": False}
FIELDS = 7
"""Numbers of a detection: four of the box, class, score, 1 if present."""
NONE = float(np.finfo(np.float32).min)
"""A score below every threshold."""


def _detections(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: boxes, scores, anchors. Outputs: boxes, classes, scores, number of detections."""
    operands, options = [emitter.real(index) for index in op.inputs], {**DEFAULTS, **options_of(op)}
    (_, boxes, numbers), (_, _, columns), count = *map(emitter.shape, operands[:2]), int(options["max_detections"])
    _check(emitter, operands, options)
    passes = options["num_classes"] if options["use_regular_nms"] else 1
    words = {name: max(float(np.float32(value)), NONE / 2) for name, value in options.items() if name[:4] == "nms_"}
    words |= {name: float(np.float32(value)) for name, value in options.items() if name.endswith("_scale")}
    words |= {"boxes": boxes, "numbers": numbers, "columns": columns, "first": columns - options["num_classes"]}
    words |= {"passes": passes, "max_detections": count, "least": NONE}
    words["most_of_a_pass"] = options["detections_per_class"] if options["use_regular_nms"] else count
    corners = {"CORNERS": body_of(text_of("detection/by_anchors.c"), words)}
    result = (count, FIELDS), "float32"
    file, steps = "detection/detections.c", detections_steps(words, "anchors")
    found = made_by(emitter.builder, file, operands, result, {**words, **corners}, 20 * boxes, steps=steps)
    fields = ((0, 4, (1, count, 4)), (4, 5, (1, count)), (5, 6, (1, count)))
    for index, (begin, end, shape) in zip(op.outputs, fields, strict=False):
        part = emitter.emit(operators.strided_slice(found, [1], [begin], [end]))
        emitter.define_real(index, operators.reshape(part, shape))
    there = emitter.emit(operators.strided_slice(found, [1], [FIELDS - 1], [FIELDS]))
    emitter.define_real(op.outputs[3], operators.sum(emitter.emit(operators.reshape(there, (1, count))), [1]))


def _check(emitter: Emitter, operands: list[relax.Expr], options: Mapping[str, Any]) -> None:
    boxes, scores, anchors = map(emitter.shape, operands)
    if len({boxes[:2], scores[:2], (1, anchors[0])}) > 1 or boxes[2] < 4 or anchors[1:] != (4,):
        raise NpukitError(f"boxes of {list(boxes)}, scores of {list(scores)} and anchors of {list(anchors)} differ")
    if not 0 < options["num_classes"] <= scores[2] or options["max_detections"] < 1:
        raise NpukitError(f"it finds {options['max_detections']} objects of {options['num_classes']} classes")
    if min(options["max_classes_per_detection"], options["num_classes"]) > 1 and not options["use_regular_nms"]:
        raise NpukitError("it gives a box several classes, which npukit does not read")


DETECTION: Mapping[str, Converter] = {custom_kind("TFLite_Detection_PostProcess"): _detections}


def by_users(model: TfliteModel, name: str, custom: Mapping[str, str]) -> dict[str, Converter]:
    """The converters of custom ops with C from the user. `name`: the model's name in errors."""
    there = {name_of(op.kind) for op in model.ops} - {""}
    return {custom_kind(op): partial(_by_user, op, custom) for op in ops_of(name, custom, there)}


def _by_user(name: str, given: Mapping[str, str], emitter: Emitter, op: TfliteOp) -> None:
    operands = [emitter.value(index) for index in op.inputs]
    words = {name: value for name, value in options_of(op).items() if isinstance(value, bool | int | float)}
    for place, index in enumerate(op.outputs):
        text, tensor = c_of(given, name, place), emitter.tensor(index)
        if not tensor.has_shape or 0 in tensor.shape:
            raise NpukitError(f"the file does not say the shape of its result {tensor.name!r}")
        emitter.define(index, call_of(name, text, operands, tensor_type(tensor.shape, tensor.dtype), words))
