from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.project.layout import memory_layout

sizes = st.integers(0, 60_000)


@given(constants=sizes, activations=sizes, stack=st.integers(0, 4096))
def test_one_memory_is_stacked_from_its_end_without_gaps(constants: int, activations: int, stack: int) -> None:
    layout = memory_layout(load_board("pe-mesh"), constants, activations, stack)
    places = [layout.activations, layout.constants, layout.stack]
    ceiling = 0x2_0000
    for place, alignment in zip(places, (16, 16, 8), strict=True):
        assert place.start % alignment == 0
        assert ceiling - alignment < place.start + place.size <= ceiling
        ceiling = place.start
    assert layout.runs_in_place


def test_with_a_memory_of_its_own_the_code_is_followed_by_the_constants() -> None:
    layout = memory_layout(load_board("mps2-an386"), 1000, 2000, 504)
    assert not layout.runs_in_place
    assert layout.constants.memory.name == "SSRAM1"
    assert layout.constants.address is None
    assert layout.activations.start == 0x2040_0000 - 2000
    assert layout.stack.start == (0x2040_0000 - 2000 - 504) // 8 * 8
