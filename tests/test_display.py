"""Percentages that add up."""

from __future__ import annotations

import pytest

from npukit.display import shares


@pytest.mark.parametrize("parts", [[1, 1, 1], [81, 138, 145, 227, 57, 93, 274, 344, 182], [5], [1, 0, 999_999]])
def test_shares_add_up_to_100(parts: list[int]) -> None:
    found = shares(parts)
    assert round(sum(found), 6) == 100
    assert all(abs(share - 100 * part / sum(parts)) < 0.1 for share, part in zip(found, parts, strict=True))


def test_nothing_has_no_shares() -> None:
    assert (shares([]), shares([0, 0])) == ([], [0, 0])
