"""Pixels copied into planes, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.kernels.to_planes import copy_to_planes
from npukit.accel.cortex_m.layout import Layout, Order


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("zero", [-128, -3, 127])
@pytest.mark.parametrize("shape", [(5, 7, 3), (4, 4, 16), (1, 1, 2), (9, 5, 1), (2, 3, 300)])
def test_a_depthwise_convolution_of_any_zero_point(shape: tuple[int, int, int], zero: int, transposed: bool):
    rng = np.random.default_rng(7)
    layer = layers.depthwise(rng, shape, zero=zero)
    x = layers.activations(rng, shape, extreme=False)
    source, planes = (Layout(order, shape, transposed=transposed) for order in (Order.PIXELS, Order.PLANES16))
    copy = copy_to_planes("copy", source, planes, zero)
    main = depthwise(layer, planes, Layout(Order.PIXELS, layer.output_shape, transposed=transposed))
    assert isinstance(copy, Kernel)
    assert isinstance(main, Kernel)
    copied = laboratory.run(copy, laboratory.pack(source, x, zero))
    np.testing.assert_array_equal(laboratory.unpack(planes, copied.output, zero), x)
    assert (copied.instructions, copied.stack_bytes) == (copy.instructions, copy.stack_bytes)
    got = laboratory.unpack(main.output, laboratory.run(main, copied.output).output, layer.output_zero)
    np.testing.assert_array_equal(got, reference.depthwise(layer, x))


def test_both_assemblers_agree_with_the_predicted_size():
    kernel = copy_to_planes("copy", Layout(Order.PIXELS, (5, 7, 3)), Layout(Order.PLANES16, (5, 7, 3)), -5)
    assert isinstance(kernel, Kernel)
    laboratory.check_assemblers(kernel)


def test_a_border_is_refused_by_name():
    source = Layout(Order.PIXELS, (5, 7, 3), (1, 1, 1, 1))
    refused = copy_to_planes("copy", source, Layout(Order.PLANES16, (5, 7, 3)), -5)
    assert isinstance(refused, Refusal)
    assert "borders" in refused.reason
