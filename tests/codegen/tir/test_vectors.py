"""Layers by RISC-V's vectors on QEMU, the only emulator here that has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from accel.core_networks import run_on_emulator
from accel.cortex_m import layers
from helpers import first_of, needs
from npukit.accel.core_filters import in_vectors
from npukit.accel.cortex_m.op_view import OpView

RNG = np.random.default_rng
LAYERS: dict[str, Callable[[], OpView]] = {
    "blocks and what is left": lambda: layers.conv(RNG(3), (11, 9, 5), 70, (2, 3), strides=(2, 1), relu=False),
    "edges and dilation": lambda: layers.conv(RNG(1), (9, 8, 7), 9, (3, 3), padding=(1, 2, 2, 1), dilation=(2, 2)),
    "nothing inside": lambda: layers.conv(RNG(4), (1, 1, 3), 5, (2, 2), padding=(1, 1, 1, 1), dilation=(2, 2)),
    "left shifts, in C": lambda: layers.with_shifts(layers.dense(RNG(5), 20, 9), np.arange(9) - 4),
    "dense": lambda: layers.dense(RNG(6), 150, 43, relu=False),
    "depthwise": lambda: layers.depthwise(RNG(7), (5, 6, 33), relu=False, zero=4),
    "depthwise, stride 2": lambda: layers.depthwise(RNG(8), (9, 7, 16), strides=(2, 2), extreme=True),
}


@pytest.mark.exhaustive
@needs("qemu-system-riscv32")
@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_on_qemu(name: str, compiler: str, tmp_path: Path) -> None:
    net = LAYERS[name]().net
    net = net.with_ops(tuple(op.placed("cpu") for op in net.ops))
    ran = run_on_emulator(net, tmp_path, compiler, board="riscv-virt-v")
    assert ran.validation.passed, ran.validation.mismatches
    calls = [path for path in tmp_path.rglob("kernels.c") if "vsetvli" in path.read_text()]
    assert bool(calls) == ("in C" not in name)


def test_weights_of_a_block_lie_tap_by_tap_and_those_of_the_rest_alike() -> None:
    weights = np.arange(34 * 3, dtype=np.int16).reshape(34, 3)
    arranged = in_vectors(weights)
    assert arranged[:32].tolist() == weights[:32, 0].tolist()
    assert arranged[32 * 3 :].tolist() == [96, 99, 97, 100, 98, 101]
