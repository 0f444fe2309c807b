from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.plan.memory import ALIGNMENT, CODE_BYTES, STACK_BYTES, Lifetime, extent, memory_use, pack, shortfall

LIFETIMES = st.lists(
    st.builds(
        lambda size, first, length: Lifetime(size, first, first + length),
        st.integers(1, 4000),
        st.integers(0, 20),
        st.integers(0, 9),
    ),
    max_size=30,
)


@given(LIFETIMES)
def test_what_lives_together_lies_apart(lifetimes: list[Lifetime]) -> None:
    offsets = pack(lifetimes)
    for i, (a, life) in enumerate(zip(offsets, lifetimes, strict=True)):
        assert a % ALIGNMENT == 0
        for b, other in list(zip(offsets, lifetimes, strict=True))[i + 1 :]:
            assert not life.meets(other) or a + life.bytes <= b or b + other.bytes <= a


@given(LIFETIMES)
def test_no_more_than_everything_side_by_side_no_less_than_the_fullest_step(lifetimes: list[Lifetime]) -> None:
    total = extent(lifetimes, pack(lifetimes))
    fullest = max((sum(x.bytes for x in lifetimes if x.first <= step <= x.last) for step in range(30)), default=0)
    assert fullest <= total <= sum(x.bytes + ALIGNMENT for x in lifetimes)


def test_disjoint_lifetimes_share_bytes() -> None:
    assert pack([Lifetime(100, 0, 1), Lifetime(80, 2, 3)]) == (0, 0)


def test_a_board_with_one_memory_holds_everything_in_it() -> None:
    board = load_board("pe-mesh")
    use = memory_use(board, 50_000, 20_000)
    assert use.free == board.memory[0].size - CODE_BYTES - STACK_BYTES - 70_000
    assert shortfall(board, use) == 0
    assert (
        shortfall(board, memory_use(board, 100_000, 20_000))
        == 120_000 + CODE_BYTES + STACK_BYTES - board.memory[0].size
    )


def test_each_memory_of_a_board_counts_what_it_holds() -> None:
    board = load_board("mps2-an386")
    size = board.memory_for("constants").size
    assert shortfall(board, memory_use(board, size, 0)) == CODE_BYTES
    assert memory_use(board, size, 16).free == board.memory_for("activations").size - STACK_BYTES - 16
