"""Detection post-processing: decode the boxes, and suppress boxes that overlap a box with a higher score.

For detectors that leave it out. The C is TensorFlow Lite's own (`templates/ops/detection`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.application.declared import WantedOutput
from npukit.application.draft import Draft
from npukit.errors import NpukitError
from npukit.net.c_code.detections import detections_steps
from npukit.net.c_code.template import body_of, text_of
from npukit.net.limits import STEPS
from npukit.net.ops import TvmCode
from npukit.net.tensor import Tensor

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
