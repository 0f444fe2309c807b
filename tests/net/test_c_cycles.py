"""Predicted cycles of C: the loops that are known are counted."""

from __future__ import annotations

import pytest

from npukit.net.c_code.function import cycles

LINE = "    x[0] = x[0] + 1;\n"


def in_loop(header: str, before: str = "") -> str:
    return f"{before}for ({header}) {{\n{LINE}}}\n"


@pytest.mark.parametrize(
    ("header", "before", "turns"),
    [
        ("int32_t i = 0; i < 12; ++i", "", 12),
        ("int32_t i = (int64_t)2; i < (int64_t)12; ++i", "", 10),
        ("int32_t i = 0; i < 4 * 20 + 1; ++i", "", 81),
        ("int32_t i = 1; i <= 256 / 2; ++i", "", 128),
        ("int32_t i = 0; i < 10; i += 4", "", 3),
        ("; i + 3 < size; i += 4", "const int32_t size = part == 0 ? 28 : 20;\n", 7),
        ("; i < 30; ++i", "for (; i + 3 < 30; i += 4) {\n}\n", 3),
        ("uint32_t i = p0[3]; i > 0; i >>= 2", "", 14),
        ("int32_t i = 0; i < p0[3]; ++i", "", 1),
        ("int32_t i = 0; i < least; ++i", "const int32_t least = p0[3];\n", 1),
    ],
)
def test_turns_of_a_loop(header: str, before: str, turns: int) -> None:
    once = cycles(LINE)
    around = cycles(in_loop(header, before).replace(LINE, ""))
    assert cycles(in_loop(header, before)) - around == turns * once


def test_a_loop_as_long_as_a_constant_says() -> None:
    code = in_loop("int32_t i = 0; i < p5[at]; ++i")
    a_turn = cycles(LINE) + len("<++") + len("[")
    assert cycles(code, {"p5": 6.5}) == round(6.5 * a_turn) + len("<[++")


def test_words_of_64_bits_take_twice_as_long() -> None:
    short, long = "uint32_t sum = 0;\nsum += p0[0] * p1[0];\n", "uint64_t sum = 0;\nsum += p0[0] * p1[0];\n"
    assert cycles(long) == 2 * cycles(short)
