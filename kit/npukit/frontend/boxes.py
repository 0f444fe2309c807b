"""Non-maximum suppression, shared by the importers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.given import made_by
from npukit.net.c_code.rows import Steps

LEAST = float(np.finfo(np.float32).min)
"""A score below every threshold."""


@dataclass(frozen=True)
class Suppression:
    """Most boxes of a class, most overlap of two boxes, least score. `by_centre`: boxes are centres and sizes, not
    corners."""

    most: int
    common: float
    least: float = LEAST
    by_centre: int = 0


def non_max_suppression(builder: relax.BlockBuilder, boxes: Any, scores: Any, limits: Suppression) -> Any:
    """ONNX Runtime's rows (image, class, box), followed by rows of -1 up to the maximum number. Boxes have the shape
    [images, boxes, 4], scores [images, classes, boxes]."""
    images, count, classes = int(boxes.ty.shape[0]), int(boxes.ty.shape[1]), int(scores.ty.shape[1])
    most = min(limits.most, count)
    if most < 1:
        raise NpukitError("it takes no box of any class")
    words = {"images": images, "classes": classes, "boxes": count, "most_of_a_class": most, "least": LEAST}
    words |= {"by_centre": limits.by_centre, "most_in_common": limits.common, "threshold": max(limits.least, LEAST)}
    operands = [each if isinstance(each, relax.Var) else builder.emit(each) for each in (boxes, scores)]
    result = (images * classes * most, 3), "int64"
    cycles = 144 + images * count * 100 + images * classes * (11 * count + most * (41 + 27 * count))
    steps = Steps(0, cycles=cycles)
    return made_by(builder, "detection/non_max_suppression.c", operands, result, words, 20 * count, steps=steps)
