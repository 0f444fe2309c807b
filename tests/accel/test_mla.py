"""The array after what is public of SpiNNaker2's: exact in both of its ways, on the emulator and by its stand-in."""

from __future__ import annotations

import ast
from dataclasses import replace
from math import log2
from pathlib import Path

import numpy as np
import pytest
from benchmarks.mesh.spinnaker2 import DRAM_BYTES, LAYERS, rows

from end_to_end.builds import DIGITS, build
from helpers import CHECKOUT, first_of, models
from net.small_nets import quantized
from npukit import api
from npukit.accel.mla.plugin import Mla, power_of_two
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d
from npukit.net.requantize import quantization
from npukit.plan.ir.plan import streamed_name

PLUGIN = CHECKOUT / "kit/npukit/accel/mla"
PUBLIC = (
    "npukit.accel.filters", "npukit.accel.geometry", "npukit.accel.interface", "npukit.accel.mla",
    "npukit.board.board", "npukit.data", "npukit.net",
)  # fmt: skip
"""What `docs/accelerators.md` names for plug-ins."""


def convolution(kernel: int, stride: int, channels: int = 16, weight: int = 3) -> tuple[Net, Op]:
    pad = kernel // 2
    op = Op("y", Conv2d((stride, stride), (pad, pad, pad, pad)), ("x", "w"), ("y",))
    side = 8 // stride
    tensors = (
        quantized("x", (1, 8, 8, channels), 0.5, 3),
        quantized("w", (8, kernel, kernel, channels), 0.1),
        quantized("y", (1, side, side, 8), 0.7, -4),
    )
    constants = {"w": np.full(tensors[1].shape, weight, np.int8)}
    return Net("n", ("x",), ("y",), (op,), {each.name: each for each in tensors}, constants), op


def plugin(**figures: int) -> Mla:
    slot = load_board("spinnaker2").accelerator[0]
    return Mla(slot.model_copy(update={"figures": {**slot.figures, **figures}}))


def test_it_is_written_against_the_public_interface_alone() -> None:
    modules = [node for path in PLUGIN.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    imported = {node.module or "" for node in modules if isinstance(node, ast.ImportFrom)}
    kit = {name for name in imported if name.startswith("npukit")}
    assert kit
    assert not {name for name in kit if not name.startswith(PUBLIC)}


def test_a_convolution_of_stride_one_may_be_the_arrays_own() -> None:
    assert [each.name for each in plugin().choices(*convolution(3, 1))] == ["products", "convolution"]
    assert not plugin().choices(*convolution(3, 2))
    assert not plugin().choices(*convolution(1, 1))


def test_sums_that_24_bits_may_not_hold_are_the_cores() -> None:
    net, op = convolution(3, 1, channels=64, weight=127)
    assert plugin().refusal(net, op) == "its sums may need 25 bits, the array has 24"
    assert plugin(accumulator_bits=25).refusal(net, op) is None


@pytest.mark.parametrize(("engine", "pes"), first_of([("mla", 4), (None, 2), ("mla", 1)], 2))
def test_digits_are_exact(engine: str | None, pes: int, tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", "spinnaker2", pes=pes, engine=engine)
    assert "mla" in {op["engine"] for op in built.manifest.summary["ops"]}
    found = api.validate(built.folder, cases=2)
    assert found.passed, found.mismatches


def test_its_quantiser_leaves_scales_that_shift(tmp_path: Path) -> None:
    digits = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "data.npz", in0=digits["float0"][:50])
    built = build(
        DIGITS / "digits_float.onnx", tmp_path / "out", "spinnaker2", pes=1, calibration=tmp_path / "data.npz"
    )
    net = built.net()
    scales = {
        quantization(net, name).scale for op in net.ops if op.kind == "conv2d" for name in (*op.inputs[:2], op.output)
    }
    assert all(log2(scale).is_integer() for scale in scales)
    assert api.validate(built.folder, cases=1).passed


def test_the_quantiser_keeps_all_that_was_in_range() -> None:
    tensor = quantized("x", (4,), 0.03, -100)
    held = power_of_two(tensor, None).quantization
    assert held is not None
    assert (held.scale, held.zero_point) == (0.0625, 0)
    assert replace(tensor, quantization=held) == power_of_two(tensor, None)


def test_published_layers_under_their_schedule() -> None:
    differences = {layer.name: layer.cycles(DRAM_BYTES) / layer.published - 1 for layer in LAYERS}
    assert sum(abs(each) < 0.1 for each in differences.values()) == 6
    assert differences["ResNet-50 CONV_42"] > 0.3, "the one that the page says is off"
    page = (CHECKOUT / "benchmarks/mesh/spinnaker2.md").read_text()
    assert all(f"| {' | '.join(row)} |" in page for row in rows())


@pytest.mark.exhaustive
def test_its_weights_may_be_streamed_tile_by_tile(tmp_path: Path) -> None:
    built = build(models() / "pretrainedResnet_quant.tflite", tmp_path / "out", "spinnaker2", pes=1, engine="mla")
    assert built.plan().streams
    found = api.validate(built.folder, cases=1)
    assert found.passed, found.mismatches


def test_boxes_whose_constants_may_differ_have_their_own_in_dram() -> None:
    upper, lower = Box((0, 0, 0, 0), (1, 4, 8, 8)), Box((0, 4, 0, 0), (1, 8, 8, 8))
    assert streamed_name("y", upper, None) != streamed_name("y", lower, None)
    assert streamed_name("y", upper, "rows") == streamed_name("y", lower, "rows")
