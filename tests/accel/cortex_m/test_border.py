"""Borders filled and tensors copied into them, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.border import copy_with_border, fill_border
from npukit.accel.cortex_m.layout import Layout, Order


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("shape", "border"),
    [((32, 32, 3), (1, 1, 1, 1)), ((5, 7, 1), (4, 1, 5, 2)), ((1, 9, 5), (0, 2, 0, 0)), ((6, 4, 16), (1, 0, 2, 3))],
)
def test_a_copy_is_the_tensor_in_its_border(shape, border, transposed: bool):
    x = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    source = Layout(Order.PIXELS, shape, transposed=transposed)
    target = Layout(Order.PIXELS, shape, border, transposed=transposed)
    kernel = copy_with_border("copy", source, target, -5)
    assert isinstance(kernel, Kernel)
    run = laboratory.run(kernel, laboratory.pack(source, x, -5))
    np.testing.assert_array_equal(run.output, laboratory.pack(target, x, -5))
    assert run.instructions == kernel.instructions
    laboratory.check_assemblers(kernel)


def test_filling_leaves_the_inside_alone():
    layout = Layout(Order.PIXELS, (6, 5, 4), (2, 1, 1, 3))
    kernel = fill_border("fill", layout, 9)
    assert isinstance(kernel, Kernel)
    run = laboratory.run(kernel, np.zeros(0, np.uint8))
    untouched = np.full(layout.shape, np.array(laboratory.UNTOUCHED, np.uint8).view(np.int8))
    np.testing.assert_array_equal(run.output, laboratory.pack(layout, untouched, 9))
    assert run.instructions == kernel.instructions


def test_planes_have_no_border():
    assert isinstance(fill_border("fill", Layout(Order.PLANES8, (4, 4, 4)), -128), Refusal)
