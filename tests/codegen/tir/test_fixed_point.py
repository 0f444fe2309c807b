"""The fixed-point functions in C, with products of 64 bits and with those of an Armv6-M core, beside numpy."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from codegen.host import COMPILER, FLAGS
from codegen.test_golden import GOLDEN
from npukit.net.requantize import doubling_high_multiply

PROGRAM = """#include "fixed_point.h"
void apply(int32_t count, const int32_t *a, const int32_t *b, int32_t *half, int32_t *product);
void apply(int32_t count, const int32_t *a, const int32_t *b, int32_t *half, int32_t *product)
{
    for (int32_t i = 0; i < count; i++) {
        half[i] = high_half(a[i], b[i]);
        product[i] = high_product(a[i], b[i]);
    }
}
"""
EDGES = [sign * (1 << bit) + near for bit in (0, 8, 15, 16, 17, 29, 30) for sign in (1, -1) for near in (-1, 0, 1)]
INT32 = ctypes.POINTER(ctypes.c_int32)


def operands() -> tuple[np.ndarray, np.ndarray]:
    """All pairs of edges, and random numbers."""
    edges = np.array([*EDGES, -(1 << 31), 1 - (1 << 31), (1 << 31) - 1])
    pairs = np.stack(np.meshgrid(edges, edges)).reshape(2, -1)
    random = np.random.default_rng(1).integers(-(1 << 31), 1 << 31, (2, 200_000))
    a, b = np.concatenate([pairs, random], axis=1)
    allowed = (a != -(1 << 31)) | (b != -(1 << 31))
    return a[allowed], b[allowed]


@pytest.mark.parametrize("macro", ["-UNONE", "-D__ARM_ARCH_6M__"])
def test_high_halves_of_products(macro: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    library = tmp_path / "program.so"
    command = [*COMPILER, *FLAGS, macro, "-shared", "-fPIC", "-I", GOLDEN / "pe-mesh", tmp_path / "program.c"]
    subprocess.run([*command, "-o", library], check=True)
    a, b = operands()
    given = [each.astype(np.int32) for each in (a, b)]
    half, product = np.zeros_like(given[0]), np.zeros_like(given[0])
    arrays = (each.ctypes.data_as(INT32) for each in (*given, half, product))
    ctypes.CDLL(str(library)).apply(len(a), *arrays)
    np.testing.assert_array_equal(half, (a * b) >> 32)
    np.testing.assert_array_equal(product, doubling_high_multiply(a, b))
