"""Kernels with vectors: every shape of layer on QEMU, and what both assemblers make of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel.core_networks import run_on_emulator
from accel.cortex_m import laboratory, layers
from helpers import first_of, needs
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.helium import depthwise, products
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView

_DIRECTIVES = {"gcc": ".arch armv8.1-m.main\n.arch_extension mve\n", "zig": ".cpu cortex-m55\n"}
RNG = np.random.default_rng


def shifted(layer: OpView) -> OpView:
    """With left shifts, too."""
    return layers.with_shifts(layer, np.asarray(layer.requantization.shifts) % 12 - 8)


LAYERS: dict[str, Callable[[], OpView]] = {
    "one channel of many, odd pixels": lambda: layers.conv(RNG(1), (3, 3, 37), 9, relu=False),
    "left shifts": lambda: shifted(layers.conv(RNG(2), (4, 5, 7), 6, (3, 3), padding=(1, 0, 1, 1), relu=False)),
    "strides and dilation": lambda: layers.conv(RNG(3), (11, 9, 5), 8, (2, 3), strides=(2, 1), dilation=(2, 2)),
    "windows in a loop": lambda: layers.conv(RNG(4), (6, 7, 64), 130, (3, 3), padding=(1, 1, 1, 1)),
    "one pixel": lambda: layers.conv(RNG(5), (2, 3, 20), 11, (2, 3)),
    "dense": lambda: layers.dense(RNG(6), 150, 10, relu=False),
    "depthwise": lambda: layers.depthwise(RNG(7), (5, 6, 33), relu=False, zero=4),
    "depthwise, stride 2": lambda: layers.depthwise(RNG(8), (9, 7, 16), strides=(2, 2), extreme=True),
    "depthwise, two taps": lambda: shifted(layers.depthwise(RNG(9), (4, 6, 40), kernel=(1, 2), padding=(0, 0, 0, 1))),
}


@needs("qemu-system-arm")
@pytest.mark.parametrize("name", first_of([*LAYERS]))
def test_a_layer_on_qemu(name: str, tmp_path: Path) -> None:
    net = LAYERS[name]().net
    ran = run_on_emulator(net.with_ops(tuple(op.placed("cpu") for op in net.ops)), tmp_path, board="mps3-an547")
    assert "Helium" in ran.planned.kernels["layer"]
    assert ran.validation.passed, ran.validation.mismatches


@pytest.mark.parametrize("name", first_of(["windows in a loop", "depthwise"], 2))
def test_both_assemblers_agree_with_the_predicted_size(name: str) -> None:
    kernel = kernel_for(LAYERS[name]())
    assert isinstance(kernel, Kernel)
    laboratory.check_code(laboratory.assembly_of(kernel), laboratory.code_bytes(kernel), _DIRECTIVES)


def test_products_take_less_than_a_fifth_of_an_instruction_each() -> None:
    """Of two pixels and four channels: 14 instructions for 128 products, and what a block begins and ends with."""
    kernel = kernel_for(layers.conv(RNG(1), (8, 8, 64), 64))
    assert isinstance(kernel, Kernel)
    assert kernel.instructions < 0.18 * 8 * 8 * 64 * 64


def test_refusals_name_the_fact() -> None:
    layer = layers.depthwise(RNG(1), (5, 5, 4), kernel=(5, 5), padding=(2, 2, 2, 2))
    assert "25 taps" in reason(kernel_for(layer))
    least = np.full((1, 3, 3, 4), -128, np.int8)
    assert "-128" in reason(kernel_for(layers.with_weights(layers.depthwise(RNG(1), (5, 5, 4)), least)))
    planes = Layout(Order.PLANES16, (3, 3, 4))
    assert "planes" in reason(products(layers.conv(RNG(1), (3, 3, 4), 4), planes, planes))


def kernel_for(layer: OpView) -> Kernel | Refusal:
    make = depthwise if layer.op.kind == "depthwise_conv2d" else products
    source = Layout(Order.PIXELS, layer.input_shape, layer.window.padding)
    return make(layer, source, Layout(Order.PIXELS, layer.output_shape))


def reason(found: Kernel | Refusal) -> str:
    assert isinstance(found, Refusal)
    return found.reason
