"""ONNX's NonMaxSuppression, with a result of the maximum number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import OnnxOpConverter

from npukit.errors import NpukitError
from npukit.frontend.given import made_by
from npukit.frontend.onnx.values import known
from npukit.net.c_code.rows import Steps

LEAST = float(np.finfo(np.float32).min)


class NonMaxSuppression(OnnxOpConverter):
    """ONNX Runtime's rows, followed by rows of -1 up to the maximum number."""

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        boxes, scores, *limits = inputs
        images, count = int(boxes.ty.shape[0]), int(boxes.ty.shape[1])
        most, common, threshold = (_number(limits, place, params) for place in range(3))
        classes, most = int(scores.ty.shape[1]), min(int(most or 0), count)
        if most < 1:
            raise NpukitError("it takes no box of any class")
        words = {"images": images, "classes": classes, "boxes": count, "most_of_a_class": most, "least": LEAST}
        words |= {"by_centre": attr.get("center_point_box", 0), "most_in_common": common or 0.0}
        words["threshold"] = LEAST if threshold is None else threshold
        operands = [each if isinstance(each, relax.Var) else bb.emit(each) for each in (boxes, scores)]
        result = (images * classes * most, 3), "int64"
        cycles = 144 + images * count * 100 + images * classes * (11 * count + most * (41 + 27 * count))
        steps = Steps(0, cycles=cycles)
        return made_by(bb, "detection/non_max_suppression.c", operands, result, words, 20 * count, steps=steps)


def _number(inputs: Any, place: int, params: Any) -> float | None:
    """The value of a constant input; None if the input is absent."""
    if place >= len(inputs) or inputs[place] is None:
        return None
    value = known(inputs[place], params)
    if value is None:
        raise NpukitError("its limits are computed at run time")
    return float(np.float32(value.item()))
