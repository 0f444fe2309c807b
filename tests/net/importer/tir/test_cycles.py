"""Predicted cycles of kernels: the instructions left by a compiler, times the turns of their loops."""

from __future__ import annotations

import pytest
import tvm

from npukit.net.c_code.function import MATH
from npukit.net.importer.tir.cycles import cycles

KERNEL = """
@T.prim_func(s_tir=True)
def kernel(p0: T.Buffer((9999,), "{0}"), p1: T.Buffer((9999,), "{0}"), x: T.Buffer((9999,), "{1}")):
    T.func_attr({{"global_symbol": "kernel"}})
    {2}
"""


def cycles_of(code: str, dtype: str = "float32", result: str = "") -> int:
    """The cycles of a kernel in TVM's script."""
    text = KERNEL.format(dtype, result or dtype, code.replace("\n", "\n    "))
    return cycles(tvm.script.from_source(text, {"T": tvm.script.tirx, "tvm": tvm}))


def of_a_turn(line: str, dtype: str = "float32", result: str = "") -> float:
    """The cycles of a line in each turn of a loop over `i`."""
    body = line.replace("\n", "\n    ")
    few, many = (cycles_of(f"for i in range({turns}):\n    {body}", dtype, result) for turns in (100, 300))
    return (many - few) / 200 - 3


@pytest.mark.parametrize(
    ("header", "turns"),
    [("range(12)", 12), ("range(2, 12)", 10), ("range(T.int64(12))", 12), ("range(3, 3)", 0), ("range(p0[3])", 1)],
)
def test_turns_of_a_loop(header: str, turns: int) -> None:
    loop = f"for i in {header}:\n    x[i] = p0[i] + 1"
    assert cycles_of(loop, "int32") == (3 + turns * (3 + 4) if turns > 2 else turns * 4)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x[i] = p0[i]", 4),
        ("x[i] = p0[i] + p1[i]", 7),
        ("x[i] = p0[i] / T.float32(3)", 2 + 14 + 2),
        ("x[i] = p0[i] + p0[i]", 5),
        ("x[i] = p0[i] + p1[7]", 5),
        ("x[i] = p0[i] + (p1[7] / p1[8])", 5),
        ('x[i] = T.call_pure_extern("float32", "sqrtf", p0[i])', 2 + 4 + MATH["sqrtf"] + 2),
        ('x[i] = p0[i] * T.call_pure_extern("float32", "sqrtf", p1[7])', 5),
        ("v: T.let[T.float32] = p0[i] * p1[i]", 0),
        ("x[i] = p0[i * 7] + T.float32(1)", 7),
        ("x[i] = p0[i * 7]", 4),
        ("if p0[i] > T.float32(1):\n    x[i] = p0[i]\nelse:\n    x[i] = p0[i] * T.float32(2)", 2 + 2 + 2 + 1 + 2),
        ("x[i] = T.if_then_else(p0[i] > T.float32(1), p1[i], p0[i])", 2 + 2 + 2 + 2 + 2),
        ("x[i] = T.float32(0)\nfor k in range(10):\n    x[i] = x[i] + p0[i * 10 + k]", 2 + 3 + 60),
    ],
)
def test_what_a_compiler_leaves_of_float(line: str, expected: int) -> None:
    """A load counts once. Loop-invariant values, evenly moving addresses and unused values cost nothing."""
    assert of_a_turn(line) == expected


def test_products_of_words_are_added_as_they_are_made() -> None:
    assert of_a_turn("x[i] = p1[7] + p0[i] * p1[i]", "int32") == 2 + 2 + 1 + 1
    wide = 'x[i] = p1[7] + T.Cast("int64", p0[i]) * T.Cast("int64", p1[i])'.replace("p1[7]", 'T.Cast("int64", p1[7])')
    assert of_a_turn(wide, "int32", "int64") == 2 + 2 + 1 + 3


def test_sums_of_64_bits_take_longer() -> None:
    assert of_a_turn("x[i] = p0[i] + T.int64(5)", "int64") > of_a_turn("x[i] = p0[i] + 5", "int32")


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ('T.Cast("int16", T.shift_right(wide, 8))', 1),
        ('T.Cast("int16", T.min(wide, 32767))', 0),
        ('T.Cast("int16", T.min(wide, 100))', 3),
        ('T.Cast("int16", T.max(wide, 0))', 1),
        ('T.Cast("int16", T.Cast("int32", T.Div(T.Cast("int64", wide), T.int64(16))))', 6),
    ],
)
def test_what_types_stores_and_signs_leave_of_words(value: str, more: int) -> None:
    """Cycles beyond a load of 16 bits and a store. Clamps to the type's limits cost nothing."""
    wide = value.replace("wide", 'T.Cast("int32", p0[i])')
    assert of_a_turn(f"x[i] = {wide}", "int16") == 3 + more


def test_bytes_are_copied_by_a_call() -> None:
    few, many = (cycles_of(f"for i in range({turns}):\n    x[i] = p0[i + 4]", "int8") for turns in (100, 300))
    assert (many - few) / 200 == 1.25
    assert of_a_turn("x[i] = p0[i * 2]", "int8") == 3


def test_a_rounded_byte_is_a_few_instructions() -> None:
    steps = 'T.Cast("int8", T.call_pure_extern("int32", "int8_of", p0[i], 3))'
    assert of_a_turn(f"x[i] = {steps}", "float32", "int8") < of_a_turn("x[i] = p0[i]", "float32", "int8") + 10


def test_a_store_before_another_costs_nothing() -> None:
    assert of_a_turn("x[i] = T.float32(0)\nx[i] = p0[i]") == of_a_turn("x[i] = p0[i]")
