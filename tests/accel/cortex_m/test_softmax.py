"""Softmax, run on an emulated core, against the net's integer reference."""

from __future__ import annotations

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.softmax import softmax
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.net.net import Net, Op
from npukit.net.ops import Softmax
from npukit.net.reference.softmax import softmax as reference
from npukit.net.tensor import Quantization, Tensor


def expected(x: np.ndarray, scale: float) -> np.ndarray:
    tensor = Tensor("x", x.shape, "int8", Quantization((scale,), (0,)))
    return reference(Net("net", ("x",), ("y",), (), {"x": tensor}), Op("softmax", Softmax(), ("x",), ("y",)), [x])


def kernel_for(rows: int, length: int, scale: float) -> Kernel | Refusal:
    layout = Layout(Order.PIXELS, (1, rows, length))
    return softmax(layers.softmax(rows, length, scale), layout, layout)


@pytest.mark.parametrize("scale", [0.004, 0.1, 0.7, 2.5])
@pytest.mark.parametrize(("rows", "length"), [(1, 12), (3, 2), (2, 50), (1, 256), (2, 16)])
def test_softmax(rows: int, length: int, scale: float):
    rng = np.random.default_rng(length)
    x = rng.integers(-128, 128, (rows, length)).astype(np.int8)
    x[0] = rng.choice([-128, 127], length)
    kernel = kernel_for(rows, length, scale)
    assert isinstance(kernel, Kernel)
    run = laboratory.run(kernel, x.view(np.uint8))
    np.testing.assert_array_equal(run.output.view(np.int8).reshape(x.shape), expected(x, scale))
    assert run.instructions == kernel.instructions
    assert run.stack_bytes == kernel.stack_bytes
    laboratory.check_assemblers(kernel)


def test_long_rows_are_refused():
    assert isinstance(kernel_for(1, 257, 0.1), Refusal)
