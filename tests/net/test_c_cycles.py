"""Predicted cycles of C: the instructions left by a compiler, times the turns of their loops."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from npukit.net.c_code.cycles import cycles
from npukit.net.c_code.function import MATH

LINE = "    x[i] = p0[i] + 1;\n"
FLOATS: Mapping[str, str] = MappingProxyType({"p0": "float32", "p1": "float32", "x": "float32"})


def in_loop(header: str, before: str = "", line: str = LINE) -> str:
    return f"{before}for ({header}) {{\n{line}}}\n"


def of_a_turn(line: str, types: Mapping[str, str] = FLOATS) -> float:
    few, many = (cycles(in_loop(f"int32_t i = 0; i < {turns}; ++i", line=line), types=types) for turns in (100, 300))
    return (many - few) / 200 - 3


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
        ("int32_t i = 3; i < 3; ++i", "", 0),
    ],
)
def test_turns_of_a_loop(header: str, before: str, turns: int) -> None:
    around = cycles(in_loop(header, before, line=""))
    assert cycles(in_loop(header, before)) - around == turns * cycles(LINE)


def test_a_loop_as_long_as_a_constant_says() -> None:
    code = in_loop("int32_t i = 0; i < p5[at]; ++i")
    longer, shorter = (cycles(code, {"p5": length}) for length in (16.5, 6.5))
    assert longer - shorter == 10 * (cycles(LINE) + 3)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x[i] = p0[i];", 4),
        ("x[i] = p0[i] + p1[i];", 7),
        ("x[i] = p0[i] / 3.0f;", 2 + 14 + 2),
        ("x[i] = p0[i] + p0[i];", 5),
        ("x[i] = p0[i] + p1[7];", 5),
        ("x[i] = p0[i] + (p1[7] / p1[8]);", 5),
        ("x[i] = sqrtf(p0[i]);", 2 + 4 + MATH["sqrtf"] + 2),
        ("x[i] = p0[i] * (1.0f / sqrtf(p1[7]));", 5),
        ("float v = p0[i] * p1[i];", 0),
        ("x[i] = p0[i * 7] + 1.0f;", 7),
        ("x[i] = p0[i * 7];", 4),
        ("if (p0[i] > 1.0f) { x[i] = p0[i]; } else { x[i] = p0[i] * 2.0f; }", 2 + 2 + 2 + 1 + 2),
        ("float m = 0.0f; for (int32_t k = 0; k < 10; ++k) { m = m + p0[i * 10 + k]; } x[i] = m;", 3 + 60 + 2),
    ],
)
def test_what_a_compiler_leaves_of_float(line: str, expected: int) -> None:
    """A load counts once. Loop-invariant values, evenly moving addresses and unused values cost nothing."""
    assert of_a_turn(line) == expected


def test_products_of_words_are_added_as_they_are_made() -> None:
    assert of_a_turn("sum += p0[i] * p1[i];", {}) == 2 + 2 + 1
    assert of_a_turn("sum += (int64_t)p0[i] * p1[i];", {}) == 2 + 2 + 1


def test_sums_of_64_bits_take_longer() -> None:
    words = {"p0": "int64", "x": "int64"}
    assert of_a_turn("x[i] = p0[i] + 5;", words) > of_a_turn("x[i] = p0[i] + 5;", {})


@pytest.mark.parametrize(
    "code",
    [
        "x[0] = " + "(" * 5000 + "1" + ")" * 5000 + ";",
        "x[0] = 1 << 1000000000;",
        "int32_t a0 = 99999999;" + "".join(f"int32_t a{n + 1} = a{n} * a{n};" for n in range(200)) + "x[0] = a200;",
        "for (int32_t i = 0; i < 18446744073709551615; ++i) {" * 40,
        "} ) ] x[ = ; f(; for (;;) { 0x1p3f 10abc }",
        "x[0] = p0[0];" * 40_000,
    ],
)
def test_code_that_means_to_be_hard_is_done_with_at_once(code: str) -> None:
    assert 0 <= cycles(code) < 1 << 65


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("x[i] = (int16_t)(p0[i] >> 8);", 1),
        ("x[i] = p0[i] < 32767 ? p0[i] : 32767;", 0),
        ("x[i] = p0[i] < 100 ? p0[i] : 100;", 3),
        ("x[i] = p0[i] > 0 ? p0[i] : 0;", 1),
        ("x[i] = p0[i] + (p0[i] < 0 ? 1 : 0);", 2),
        ("x[i] = 0;\nx[i] = p0[i];", 0),
        ("x[i] = (int32_t)((int64_t)p0[i] / (int64_t)16);", 6),
        ("x[i] = -32768;\nfor (int32_t j = 0; j < 2; ++j) {\nx[i] = x[i] > p0[i + j] ? x[i] : p0[i + j];\n}", 5),
    ],
)
def test_what_types_stores_and_signs_leave_of_words(line: str, more: int) -> None:
    """Cycles beyond a load of 16 bits and a store. Clamps to the type's limits and overwritten stores cost nothing."""
    assert of_a_turn(line, {"p0": "int16", "x": "int16"}) == 3 + more
