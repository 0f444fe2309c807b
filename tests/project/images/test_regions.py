"""What a table of steps writes into commands, found in the bytes that a PE was loaded with."""

from __future__ import annotations

import re
from struct import pack

import pytest

from helpers import CHECKOUT
from npukit.project.images.regions import LoadedRegion

HEADER = (CHECKOUT / "firmware/include/net.h").read_text()


def kind(name: str) -> int:
    """The number of a kind of step, counted in the firmware's header."""
    listed = HEADER[HEADER.index("enum net_step_kind") :]
    return len(re.findall(r"\n    NET_\w+,", listed[: listed.index(f"    {name},")]))


def table(*rows: tuple[str, int, int]) -> bytes:
    return b"".join(pack("<BBHI", kind(name), flag, 1, what) for name, flag, what in rows)


@pytest.mark.parametrize("start", ["NET_RUN", "NET_SUBMIT"])
def test_patches_are_of_the_next_command_that_is_started(start: str) -> None:
    rows = table(("NET_PATCH", 3, 0x500), ("NET_PATCH", 5, 0x600), (start, 0, 0x2000), ("NET_END", 0, 0))
    region = LoadedRegion(1, "PE 1", "constants", 0x1000, rows)
    assert region.patches == {(0x2000 + 4 * 3, 0x500), (0x2000 + 4 * 5, 0x600)}


def test_other_steps_patch_nothing() -> None:
    names = [name for name in re.findall(r"\n    (NET_\w+),", HEADER) if name != "NET_PATCH"]
    rows = [row for name in names for row in ((name, 3, 0x500), ("NET_RUN", 0, 0x2000))]
    assert not LoadedRegion(1, "PE 1", "constants", 0x1000, table(*rows)).patches
