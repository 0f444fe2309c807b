"""Average and maximum pools, run on an emulated core."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers, reference
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.pool import pool
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView


def check(layer: OpView, x: np.ndarray) -> Kernel:
    kernel = pool(layer, Layout(Order.PIXELS, layer.input_shape), Layout(Order.PIXELS, layer.output_shape))
    assert isinstance(kernel, Kernel), kernel.reason
    run = laboratory.run(kernel, laboratory.pack(kernel.inputs[0], x, 0))
    np.testing.assert_array_equal(laboratory.unpack(kernel.output, run.output, 0), reference.pool(layer, x))
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes
    return kernel


@pytest.mark.parametrize("kind", ["average", "max"])
@pytest.mark.parametrize(
    ("shape", "window", "strides"),
    [
        ((25, 5, 64), (25, 5), (1, 1)),
        ((3, 3, 256), (3, 3), (1, 1)),
        ((8, 8, 16), (2, 2), (2, 2)),
        ((7, 7, 13), (3, 2), (2, 1)),
        ((15, 17, 4), (15, 17), (1, 1)),
        ((3, 2, 7), (1, 1), (1, 1)),
    ],
)
def test_pools(kind: str, shape: tuple[int, int, int], window: tuple[int, int], strides: tuple[int, int]):
    rng = np.random.default_rng(1)
    # Channels of different means: an average of plain noise is always near zero.
    x = (rng.integers(-60, 60, (1, 1, shape[2])) + rng.integers(-68, 68, shape)).astype(np.int8)
    x[:, :, 0], x[:, :, 1] = -128, 127
    laboratory.check_assemblers(check(layers.pool(kind, shape, window, strides), x))


def test_few_channels_are_refused_by_name():
    layer = layers.pool("max", (4, 4, 3), (3, 3), (1, 1))
    refused = pool(layer, Layout(Order.PIXELS, (4, 4, 3)), Layout(Order.PIXELS, (2, 2, 3)))
    assert isinstance(refused, Refusal)
    assert "3 channels" in refused.reason
