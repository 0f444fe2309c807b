from __future__ import annotations

import pytest

from npukit.plan.tensors.problem import Work


@pytest.mark.parametrize(
    ("done", "told"),
    [(9, ""), (10, "; at most 10 min more"), (500, "; at most 6 s more"), (1000, "; at most 0 s more")],
)
def test_what_is_left_is_told_once_enough_is_done_to_know(done: int, told: str) -> None:
    assert Work(done=done, most=1000, seconds=6.0).left == told
