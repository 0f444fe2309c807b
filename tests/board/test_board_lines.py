"""Line numbers of faults in a board file."""

from __future__ import annotations

import pytest

from npukit.board.lines import line_of

TEXT = """name = "mine"
[core]
cpu = "cortex-m4f"

[[memory]]
name = "Flash"
[[memory]]
name = "RAM"
size = 4

[[accelerator]]
[accelerator.figures]
width = 3

[emulator]
uart = { receive = 0 }
[emulator.timer]
count = 3
"""


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (("name",), 1),
        (("core", "cpu"), 3),
        (("core", "clock_hz"), 2),
        (("memory", 0, "size"), 5),
        (("memory", 1, "size"), 9),
        (("emulator", "uart", "receive"), 16),
        (("emulator", "timer", "count"), 18),
        (("accelerator", 0, "figures", "width"), 13),
        (("uart", "base"), None),
        ((), None),
    ],
)
def test_a_field_is_found_or_the_table_it_would_be_in(where: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(TEXT, where) == line
