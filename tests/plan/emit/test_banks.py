from __future__ import annotations

import pytest

from npukit.board.board import Memory, Waits
from npukit.plan.emit.banks import Banks
from npukit.plan.predict.memory import Lifetime

FAST = Memory(name="TCM", origin=0, size=4096, holds=("activations",))
SLOW = Memory(name="SRAM", origin=0x1_0000, size=4096, holds=("activations",), waits=Waits(cycles=2))
CACHED = SLOW.model_copy(update={"waits": Waits(cycles=8, line_bytes=32, lines=64)})
ROOM = 1024


def test_what_is_read_most_for_its_bytes_lies_in_the_fast_bank_as_far_as_it_has_room() -> None:
    banks = Banks((FAST, SLOW), (0, 4096), ROOM)
    lives = [Lifetime(1024, 0, 1), Lifetime(512, 0, 1), Lifetime(512, 2, 3)]
    reads = {0: [(0, 256)], 1: [(0, 1000)], 2: [(2, 64)]}
    offsets = banks.spread(lives, [{0: 0}, {1: 0}, {2: 0}], reads)
    assert offsets == (4096, 0, 0)
    assert banks.extents(lives, offsets) == (512, 1024)
    assert banks.waits(lives, offsets, reads) == {0: 2 * 256, 2: 0}


def test_what_lies_together_stays_together() -> None:
    banks = Banks((FAST, SLOW), (0, 4096), ROOM)
    lives = [Lifetime(1024, 0, 1), Lifetime(256, 1, 1), Lifetime(512, 0, 1)]
    assert banks.spread(lives, [{0: 0, 1: 768}, {2: 0}], {2: [(0, 1)]}) == (4096, 4096 + 768, 0)


@pytest.mark.parametrize(("accesses", "cycles"), [(1000, 8 * 16), (4, 8 * 4)])
def test_behind_a_cache_each_line_is_waited_for_once(accesses: int, cycles: int) -> None:
    banks = Banks((FAST, CACHED), (0, 4096), ROOM)
    assert banks.waits([Lifetime(512, 0, 0)], [4096], {0: [(0, accesses)]}) == {0: cycles}
