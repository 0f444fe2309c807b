"""Arrangements of loops: texts that read back, and what they refuse."""

from __future__ import annotations

import pytest

from npukit.errors import NpukitError
from npukit.net.importer.loops import Blocking, Nest, Tiling, arrangement_of

TILING = Tiling((Nest((1, 5, 1, 8), (1, 4)), Nest((16,), (1,)), Nest((), (3,))), apart=True)


@pytest.mark.parametrize(
    "arrangement", [Blocking(1, 4, 2), Blocking(0, 4, 1, 2, 4), TILING, Tiling(TILING.sums, apart=False)]
)
def test_texts_read_back(arrangement: Blocking | Tiling) -> None:
    assert arrangement_of(str(arrangement)) == arrangement


def test_a_tiling_is_spelled_for_people() -> None:
    assert str(TILING) == "tiles 1x5x1x8/1x4 16/1 -/3 on arrays made before"


@pytest.mark.parametrize("text", ["4 sums", "tiles", "tiles 1x0/1", "tiles 4", "tiles 4/", "tiles 4/1 in time"])
def test_what_is_no_arrangement_is_refused(text: str) -> None:
    with pytest.raises(NpukitError, match="is no arrangement of these loops"):
        arrangement_of(text)


def test_a_blocking_leaves_loops_that_it_does_not_divide() -> None:
    assert Blocking(0, 4, 2, 1, 5).nest(0, (25, 64), (9,)) == Nest((5, 4), (1,))
    assert Blocking(2, 4, 1).nest(0, (25, 64), (9, 2)) == Nest((1, 1), (1, 1))


def test_a_tiling_is_of_loops_of_these_lengths() -> None:
    assert TILING.nest(1, (32,), (7,)) == Nest((16,), (1,))
    for number, around, over in ((1, (24,), (7,)), (1, (32, 1), (7,)), (3, (32,), (7,)), (1, (32,), (7, 7))):
        with pytest.raises(NpukitError, match="is no arrangement of these loops"):
            TILING.nest(number, around, over)


@pytest.mark.parametrize(("terms", "able"), [((1, 3), True), ((3, 3), True), ((3, 1), False), ((2, 3), True)])
def test_terms_stay_in_their_order(terms: tuple[int, ...], able: bool) -> None:
    """Turns of the outer loop beside each other would put the inner one's terms aside."""
    tiling = Tiling((Nest((4,), terms),))
    if able:
        assert tiling.nest(0, (8,), (6, 3)) == tiling.sums[0]
    else:
        with pytest.raises(NpukitError, match="is no arrangement"):
            tiling.nest(0, (8,), (6, 3))
