"""Predicted cycles of `templates/ops/detection/detections.c`."""

from __future__ import annotations

from npukit.net.c_code.rows import Steps
from npukit.net.c_code.template import Words

_OF_BOX = {"anchors": 157, "centre": 53, "corners": 33}
"""Cycles of a box without its scores, by the form of boxes."""


def detections_steps(words: Words, form: str) -> Steps:
    """The cycles of the code with these words."""
    boxes, columns, first, passes, most = (
        int(words[name]) for name in ("boxes", "columns", "first", "passes", "most_of_a_pass")
    )
    cycles = 85 + 35 * int(words["max_detections"]) + boxes * (_OF_BOX[form] + 9 * (columns - first))
    return Steps(0, cycles=cycles + passes * (11 + most * (67 + 31 * boxes)))
