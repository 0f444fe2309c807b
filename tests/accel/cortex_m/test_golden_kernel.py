"""The assembly of one small kernel, as text.

After a change that is meant: PYTHONPATH=kit:tests python tests/accel/cortex_m/test_golden.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from accel.cortex_m import laboratory, layers
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.kernels.convolution import convolution
from npukit.accel.cortex_m.layout import Layout, Order

GOLDEN = Path(__file__).parent / "golden" / "pointwise.s"


def generated() -> str:
    layer = layers.conv(np.random.default_rng(1), (3, 5, 8), 4)
    source, target = (Layout(Order.PIXELS, shape) for shape in (layer.input_shape, layer.output_shape))
    kernel = convolution(layer, source, target, Density.HALFWORDS)
    assert isinstance(kernel, Kernel)
    return laboratory.assembly_of(kernel)


def test_the_generated_assembly_is_the_same_as_ever() -> None:
    assert generated() == GOLDEN.read_text()


if __name__ == "__main__":
    GOLDEN.write_text(generated())
