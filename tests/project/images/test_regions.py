"""Command words written by a table of steps, found in the loaded bytes of a PE."""

from __future__ import annotations

import re
from struct import pack, unpack

import pytest

from helpers import CHECKOUT
from npukit.project.images.regions import LoadedRegion, _expected, digest

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


def test_commands_lie_at_words() -> None:
    rows = table(("NET_PATCH", 3, 0x500), ("NET_RUN", 0, 0x2001), ("NET_END", 0, 0))
    assert not LoadedRegion(1, "PE 1", "constants", 0x1000, rows).patches


def test_code_that_looks_like_a_table_is_none() -> None:
    rows = table(("NET_PATCH", 3, 0x500), ("NET_RUN", 0, 0x2000), ("NET_END", 0, 0))
    assert not LoadedRegion(1, "PE 1", "code", 0x1000, rows).patches


def test_a_self_test_leaves_out_what_a_table_changes_but_never_code() -> None:
    """A table in a program's constants patches a command in the constants and a command in the code."""
    rows = table(
        ("NET_PATCH", 0, 5), ("NET_RUN", 0, 0x1000), ("NET_PATCH", 0, 5), ("NET_RUN", 0, 0x10), ("NET_END", 0, 0)
    )
    code, constants = LoadedRegion(0, "PE 0", "code", 0, bytes(64)), LoadedRegion(0, "PE 0", "constants", 0x1000, rows)
    of_code, of_constants, own, _ = unpack("<4Q", _expected([code, constants]))
    assert (of_code, of_constants, own) == (digest(code.data), 0, 0)
