from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.plan.ir.plan import MemoryUse
from npukit.plan.predict.memory import (
    ALIGNMENT,
    CODE_BYTES,
    STACK_BYTES,
    Lifetime,
    extent,
    joined,
    memory_use,
    pack,
    regions_of,
    reuse_chains,
    shortfall,
)

LIFETIMES = st.lists(
    st.builds(
        lambda size, first, length: Lifetime(size, first, first + length),
        st.integers(1, 4000),
        st.integers(0, 20),
        st.integers(0, 9),
    ),
    max_size=30,
)


def _meet(one: Lifetime, other: Lifetime) -> bool:
    return any(a <= d and c <= b for a, b in one.spans for c, d in other.spans)


@given(LIFETIMES)
def test_what_lives_together_lies_apart(lifetimes: list[Lifetime]) -> None:
    offsets = pack(lifetimes)
    for i, (a, life) in enumerate(zip(offsets, lifetimes, strict=True)):
        assert a % ALIGNMENT == 0
        for b, other in list(zip(offsets, lifetimes, strict=True))[i + 1 :]:
            assert not _meet(life, other) or a + life.bytes <= b or b + other.bytes <= a


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


def test_each_memory_is_told_by_what_it_holds() -> None:
    use = MemoryUse(code=30_000, constants=50_000, activations=4_000, stack=1_000, free=125_072, variables=1_000)
    flash, ram = regions_of(load_board("stm32f4-disco"), use)
    assert (flash.name, flash.used, flash.parts) == ("Flash", 79_000, {"code": 29_000, "constants": 50_000})
    assert (ram.name, ram.used, ram.size - ram.used) == ("RAM", 6_000, use.free)
    (whole,) = regions_of(load_board("pe-mesh"), replace(use, variables=0))
    assert (whole.name, whole.used) == ("SRAM", 85_000)


@given(LIFETIMES, st.data())
def test_who_hands_its_place_on_lies_where_its_heir_does_and_all_others_apart(
    lifetimes: list[Lifetime], data: st.DataObject
) -> None:
    """An output may reuse the memory of an input if the step that writes the output is the input's last reader."""
    count = range(len(lifetimes))
    outputs = [o for o in count if lifetimes[o].first < lifetimes[o].last]
    pairs = [(i, o) for i in count for o in outputs if i != o and lifetimes[i].last == lifetimes[o].first]
    drawn = data.draw(st.lists(st.sampled_from(pairs), max_size=4)) if pairs else []
    heirs = {i: o for o, i in {o: i for i, o in drawn}.items()}
    units = reuse_chains(len(lifetimes), heirs)
    assert sorted(index for unit in units for index in unit) == list(count)
    packed = pack([joined([lifetimes[index] for index in unit]) for unit in units])
    offsets = {index: offset for unit, offset in zip(units, packed, strict=True) for index in unit}
    assert all(offsets[i] == offsets[o] for i, o in heirs.items())
    for i, o in combinations(count, 2):
        a, b = offsets[i], offsets[o]
        if _meet(lifetimes[i], lifetimes[o]) and not (a + lifetimes[i].bytes <= b or b + lifetimes[o].bytes <= a):
            assert (i, o) in heirs.items() or (o, i) in heirs.items()


def test_heirs_of_heirs_have_one_place() -> None:
    lifetimes = [Lifetime(160, 0, 1), Lifetime(48, 0, 4), Lifetime(128, 1, 2), Lifetime(64, 2, 4)]
    units = reuse_chains(4, {0: 2, 2: 3})
    assert units == [[0, 2, 3], [1]]
    assert joined([lifetimes[index] for index in units[0]]) == Lifetime(160, 0, 4)
