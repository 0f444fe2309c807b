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
from npukit.accel.engines import assign_engines, plugins_of, with_core
from npukit.accel.subgraphs.tflite_file import subgraph_tflite
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.net import Net, Op, fuse
from npukit.net.ops import Add, Conv2d
from npukit.net.reference.interpreter import run_op
from npukit.net.requantize import multiply_by_quantized_multiplier, quantization
from npukit.net.tensor import Quantization, Tensor
from npukit.plan.ir.plan import streamed_name
from npukit_mla.outcome import Outcome, Results, addition_words
from npukit_mla.plugin import Mla, power_of_two
from npukit_mla.shifted import Shift

PLUGIN = CHECKOUT / "kit/npukit_mla"
PUBLIC = (
    "npukit.accel.filters", "npukit.accel.geometry", "npukit.accel.interface", "npukit.board.board", "npukit.net",
)  # fmt: skip
"""What `docs/plug-in.md` names for plug-ins."""
DRIVER = 0.2
"""How near a prediction is: the driver is C, which gcc and zig compile to different cycles."""


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


def lines_net(kernel: int, stride: int, zero: int, side: int, channels: int) -> Net:
    random = np.random.default_rng(5)
    before = (kernel - stride + 1) // 2 if kernel > stride else 0
    after = kernel - stride - before if kernel > stride else 0
    op = Op("y", Conv2d((stride, stride), (before, before, after, after)), ("x", "w"), ("y",))
    tensors = (
        quantized("x", (1, side, side, channels), 0.5, zero),
        quantized("w", (20, kernel, kernel, channels), 0.1),
        quantized("y", (1, side // stride, side // stride, 20), 20.0, -4),
    )
    constants = {"w": random.integers(-127, 128, tensors[1].shape).astype(np.int8)}
    return Net("n", ("x",), ("y",), (op,), {each.name: each for each in tensors}, constants)


def plugin(**figures: int) -> Mla:
    slot = load_board("spinnaker2").accelerator[0]
    return Mla(slot.model_copy(update={"figures": {**slot.figures, **figures}}))


def test_it_is_written_against_the_public_interface_alone() -> None:
    modules = [node for path in PLUGIN.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    named = [(node.module or "", node.names) for node in modules if isinstance(node, ast.ImportFrom)]
    kit = {f"{module}.{each.name}" for module, names in named if module.startswith("npukit") for each in names}
    assert kit
    assert not {name for name in kit if not name.startswith(PUBLIC)}


def test_a_convolution_of_stride_one_may_be_the_arrays_own() -> None:
    assert [each.name for each in plugin().choices(*convolution(3, 1))] == ["products", "convolution"]
    assert not plugin().choices(*convolution(3, 2))
    assert not plugin().choices(*convolution(1, 1))


def test_sums_that_24_bits_may_not_hold_are_made_of_parts_of_lines() -> None:
    net, op = convolution(3, 1, channels=64, weight=127)
    assert plugin().refusal(net, op) is None
    assert not plugin().choices(net, op)
    net, op = convolution(3, 1, channels=176, weight=127)
    whole = Box.whole((1, 8, 8, 8))
    parts = [plugin(accumulator_bits=bits).shape(net, op, whole).part for bits in (26, 24, 18)]
    assert parts == [528, 272, 0]
    assert plugin(accumulator_bits=18).refusal(net, op) == "its sums may need 26 bits, the array has 18"


def test_a_tile_has_the_way_that_takes_fewer_cycles_and_shares_its_constants_with_the_other() -> None:
    net, op = convolution(3, 1, channels=64)
    few, many = (Box((0, 0, 0, 0), (1, 1, 8, channels)) for channels in (4, 8))
    shapes = [plugin().shape(net, op, box) for box in (few, many)]
    assert all(shape.may_be_lines for shape in shapes)
    costs = [plugin().cost(net, op, box) for box in (few, many)]
    assert {cost.constants_key for cost in costs} == {"sixteens"}
    for shape, cost in zip(shapes, costs, strict=True):
        ways = (
            shape.lines(plugin().figures, Outcome(Results.PLAIN), 3),
            shape.windows(plugin().figures, Outcome(Results.PLAIN)),
        )
        assert cost.cycles == min(ways)


@pytest.mark.exhaustive
@pytest.mark.parametrize("sizes", first_of([(1, 2, 0, 6, 1152), ((3, 1, 0, 36, 32),), ((3, 2, 5, 36, 32),)]))
def test_lines_of_the_input_are_exact(sizes: tuple[int, int, int, int, int], tmp_path: Path) -> None:
    """With padding at all sides, more pixels than a run has, columns that fill no block, a zero point that pads, and
    lines that are summed up in two parts."""
    net = lines_net(*sizes)
    model = tmp_path / "lines.tflite"
    model.write_bytes(subgraph_tflite(net, net.ops[0]))
    built = build(model, tmp_path / "out", "spinnaker2", pes=1, engine="mla")
    sources = (built.folder / "project").rglob("*.[ch]")
    assert any("kind = MLA_LINES" in path.read_text() for path in sources)
    found = api.validate(built.folder, cases=1)
    assert found.passed, found.mismatches
    measured = api.bench(built.folder)
    assert measured.latency_cycles == pytest.approx(measured.predicted_latency_cycles, rel=DRIVER)


def residual(result: float, other: float) -> Net:
    """A convolution whose result is added to what is there."""
    net, op = convolution(1, 1, channels=64)
    scales = {"y": quantized("y", (1, 8, 8, 8), result, -4), "r": quantized("r", (1, 8, 8, 8), other, 7)}
    tensors = {**net.tensors, **scales, "z": quantized("z", (1, 8, 8, 8), 25.0, -9)}
    return replace(
        net, inputs=("x", "r"), outputs=("z",), ops=(op, Op("z", Add(), ("y", "r"), ("z",))), tensors=tensors
    )


@pytest.mark.parametrize("scales", [(20.0, 15.0), (10.0, 15.0)])
def test_the_words_of_an_addition_make_the_references_sums_of_all_values(scales: tuple[float, float]) -> None:
    net = residual(*scales)
    multiplier, right, zero, low, high, looks_result_up, *shares = addition_words(net, net.ops[1], "y").tolist()
    values = np.arange(-128, 128)
    results, others = np.meshgrid(values, values)
    looked_up, shifted = (results, others) if looks_result_up else (others, results)
    sums = np.array(shares)[looked_up + 128] + (shifted << 20)
    rounded = (sums * multiplier + (1 << 31)) >> 32
    made = np.clip(((rounded + (1 << right >> 1) - (rounded < 0)) >> right) + zero, low, high)
    assert looks_result_up == (scales[0] < scales[1])
    assert np.array_equal(made, run_op(net, net.ops[1], [results, others]).reshape(made.shape))


def test_a_convolution_and_what_its_result_is_added_to_are_one_op() -> None:
    net = residual(20.0, 15.0)
    board = load_board("spinnaker2")
    placed = with_core(plugins_of(board), board)
    (op,) = assign_engines(net, placed, slower_too=True).ops
    assert [part.kind for part in op.parts] == ["conv2d", "add"]
    assert placed["mla"].cost(net, op, Box.whole((1, 8, 8, 8))).aliases == (1,)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["result looked up", "other looked up", "deep"])
def test_what_is_added_to_sums_and_results_is_exact(name: str, tmp_path: Path) -> None:
    nets = {
        "result looked up": residual(10.0, 15.0),
        "other looked up": residual(20.0, 15.0),
        "deep": lines_net(3, 1, 5, 8, 512),
    }
    net = nets[name]
    op, *others = net.ops
    model = tmp_path / "added.tflite"
    model.write_bytes(subgraph_tflite(net, fuse(net.ops) if others else op))
    built = build(model, tmp_path / "out", "spinnaker2", pes=1, engine="mla")
    assert {part.kind for op in built.net().ops for part in op.parts} >= ({"total"} if name == "deep" else {"add"})
    assert {op.engine for op in built.net().ops} == {"mla"}
    found = api.validate(built.folder, cases=1)
    assert found.passed, found.mismatches
    measured = api.bench(built.folder)
    assert measured.latency_cycles == pytest.approx(measured.predicted_latency_cycles, rel=DRIVER)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("engine", "pes"), first_of([("mla", 4), (None, 2), ("mla", 1)], 2))
def test_digits_are_exact(engine: str | None, pes: int, tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", "spinnaker2", pes=pes, engine=engine)
    assert "mla" in {op["engine"] for op in built.manifest.summary["ops"]}
    assert [path.name for path in (built.folder / "project/firmware/engines").iterdir()] == ["mla"]
    found = api.validate(built.folder, cases=2)
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
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


def test_a_shift_rounds_as_tensorflow_lite_does() -> None:
    """Of all that clamping does not make 0, for every shift: sums around 0 and around halves."""
    sums = np.concatenate([np.arange(-70_000, 70_000), np.arange(1 << 22, (1 << 22) + 9_000)])
    for right in range(1, 16):
        wanted = np.maximum(multiply_by_quantized_multiplier(sums, 1 << 30, 1 - right), 0)
        summand = 1 if right == 1 else (1 << (right - 1)) + 1
        assert np.array_equal(np.maximum((sums + summand) >> right, 0), wanted), right


def test_biases_are_products_of_bytes() -> None:
    biases = np.array([0, 63, -64, 127 * 127 + 1, -300_000, 300_000])
    shift = Shift(8, biases, 24)
    window = np.array([127] * (shift.slots - 1) + [1])
    assert np.array_equal(shift.rows(0, 6).astype(np.int64) @ window, biases)
    assert np.array_equal(shift.rows(2, 4), shift.rows(0, 6)[2:4])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("channels", "high"), [(6, 127), (3, 96)])
def test_the_array_shifts_where_scales_are_powers_of_two_and_nothing_below_0_is_kept(
    channels: int, high: int, tmp_path: Path
) -> None:
    random = np.random.default_rng(7)
    op = Op("y", Conv2d((1, 1), (1, 1, 1, 1), clamp=(0, high)), ("x", "w", "b"), ("y",))
    tensors = (
        quantized("x", (1, 12, 12, channels), 2.0**-6),
        quantized("w", (22, 3, 3, channels), 2.0**-8),
        Tensor("b", (22,), "int32", Quantization((2.0**-14,), (0,))),
        quantized("y", (1, 12, 12, 22), 2.0**-4),
    )
    constants = {
        "w": random.integers(-127, 128, tensors[1].shape).astype(np.int8),
        "b": random.integers(-40_000, 40_000, 22).astype(np.int32),
    }
    net = Net("n", ("x",), ("y",), (op,), {each.name: each for each in tensors}, constants)
    model = tmp_path / "shifted.tflite"
    model.write_bytes(subgraph_tflite(net, op))
    built = build(model, tmp_path / "out", "spinnaker2", pes=1, engine="mla")
    sources = (built.folder / "project").rglob("*.[ch]")
    assert any("kind = MLA_SHIFTED" in path.read_text() for path in sources)
    found = api.validate(built.folder, cases=3)
    assert found.passed, found.mismatches
    measured = api.bench(built.folder)
    assert measured.latency_cycles == pytest.approx(measured.predicted_latency_cycles, rel=DRIVER)


def test_the_quantiser_keeps_all_that_was_in_range() -> None:
    tensor = quantized("x", (4,), 0.03, -100)
    held = power_of_two(tensor, None).quantization
    assert held is not None
    assert (held.scale, held.zero_point) == (0.0625, 0)
    assert replace(tensor, quantization=held) == power_of_two(tensor, None)


def test_published_layers_under_their_schedule() -> None:
    assert all(abs(layer.cycles(DRAM_BYTES) / layer.published - 1) < 0.1 for layer in LAYERS)
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
