"""Tensors with gaps or other orders of axes, against a walk over every element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from npukit.net.arrangement import ONCE, Arrangement, Repeat

ARRANGEMENTS = {
    "dense": Arrangement(60, 0, (3, 4, 5), (20, 5, 1), "int8"),
    "with a border": Arrangement(180, 35, (3, 4, 5), (30, 5, 1), "int8"),
    "transposed": Arrangement(60, 0, (3, 4, 5), (5, 15, 1), "int8"),
    "planes": Arrangement(60, 0, (3, 4, 5), (4, 1, 12), "uint8", -128),
    "planes of halfwords with gaps": Arrangement(28 * 5, 0, (3, 4, 5), (8, 2, 28), "uint16", -128),
    "one row": Arrangement(9, 2, (1, 1, 5), (9, 5, 1), "int8"),
}


def by_hand(arrangement: Arrangement, values: np.ndarray) -> bytes:
    """The elements' bytes, sorted by address."""
    found = {}
    for index in product(*map(range, arrangement.shape)):
        address = arrangement.origin + sum(i * s for i, s in zip(index, arrangement.strides, strict=True))
        value = int(values[index]) - arrangement.subtracted
        found[address] = value.to_bytes(np.dtype(arrangement.dtype).itemsize, "little", signed=value < 0)
    assert len(found) == values.size
    return b"".join(found[address] for address in sorted(found))


@pytest.mark.parametrize("arrangement", ARRANGEMENTS.values(), ids=ARRANGEMENTS)
def test_the_payload_is_the_elements_in_the_order_of_memory(arrangement: Arrangement) -> None:
    values = np.random.default_rng(1).integers(-128, 128, arrangement.shape).astype(np.int8)
    assert arrangement.payload(values[None]) == by_hand(arrangement, values)


def test_rows_are_as_long_as_they_can_be() -> None:
    assert ARRANGEMENTS["dense"].rows() == (60, ())
    assert ARRANGEMENTS["with a border"].rows() == (20, (Repeat(3, 30),))
    assert ARRANGEMENTS["transposed"].rows() == (60, ())
    assert ARRANGEMENTS["planes of halfwords with gaps"].rows() == (24, (Repeat(5, 28),))
    assert (*ARRANGEMENTS["one row"].rows()[1], ONCE)[0] == ONCE
