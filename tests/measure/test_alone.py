"""Layers alone: inputs for a single layer find errors hidden from the network's inputs. Also messages that differ."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from end_to_end.builds import DIGITS, build, shared_build
from npukit.accel.cortex_m.kernels.softmax import softmax_tables
from npukit.errors import Differs
from npukit.measure.alone import INPUT_WORK, check_alone
from npukit.measure.cases import Cases, load_cases
from npukit.measure.target import Target, open_target
from npukit.measure.validate import ALONE, Validation, validate
from npukit.net.box import Box
from npukit.net.net import fuse
from npukit.net.ops import Conv2d, Softmax
from npukit.net.ops.softmax import exp_table
from npukit.net.reference.sharp import inputs_alone
from npukit.net.requantize import quantization, requantization
from npukit.net.value_ranges import Range, value_ranges
from npukit.plan.ir.plan import Compute
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN, Build
from plan.networks import small_net

NOTHING = Validation("emulator", 0, outputs_equal=True, mismatches=(), layers_checked=0)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("alone") / "build", pes=4)


def golden(built: Build) -> Cases:
    return load_cases(built.folder / GOLDEN, built.net(), None)


def alone(built: Build) -> Validation:
    with open_target(built) as target:
        return check_alone(target, built.net(), built.plan(), golden(built), NOTHING)


def changed(built: Build, folder: Path, before: bytes, after: bytes) -> Build:
    """The build with `before` replaced by `after` in all images."""
    copy = replace(built, folder=Path(shutil.copytree(built.folder, folder)))
    for image in (copy.folder / "images").glob("*.elf"):
        image.write_bytes(image.read_bytes().replace(before, after))
    return copy


def test_layers_of_a_good_build_equal_the_reference(built: Build) -> None:
    assert alone(built).passed


def test_a_multiplier_that_is_a_little_off_shows_in_the_layer_alone(built: Build, tmp_path: Path) -> None:
    net = built.net()
    conv = next(op for op in net.ops if isinstance(op.attributes, Conv2d))
    multiplier = int(requantization(net, conv).multipliers[0])
    wrong = changed(
        built, tmp_path / "wrong", multiplier.to_bytes(4, "little"), (multiplier ^ 1 << 13).to_bytes(4, "little")
    )
    with open_target(wrong) as target:
        assert validate(target, net, wrong.plan(), golden(wrong), Silent()).passed
        found = check_alone(target, net, wrong.plan(), golden(wrong), NOTHING)
    first = found.mismatches[0]
    assert (first.path, first.tensor, first.index[-1]) == (ALONE, conv.output, 0)
    assert "the layer alone" in str(first)


def test_an_exponential_that_is_a_little_off_shows_in_the_softmax_alone(built: Build, tmp_path: Path) -> None:
    net = built.net()
    softmax = net.ops[-1]
    assert isinstance(softmax.attributes, Softmax)
    table = softmax_tables(exp_table(quantization(net, softmax.inputs[0]).scale, softmax.attributes.beta), 1)
    for entry, bit in ((1, 8), (100, 12)):
        before = table[253 - entry : 256 - entry].astype("<i4")
        after = before ^ np.array([0, 0, 1 << bit], "<i4")
        wrong = changed(built, tmp_path / str(entry), before.tobytes(), after.tobytes())
        assert {found.tensor for found in alone(wrong).mismatches} == {softmax.output}, entry


def test_what_a_layer_alone_writes_behind_its_output_is_refused(built: Build) -> None:
    plan = built.plan()
    pe = plan.pes[1]
    at = next(number for number, each in enumerate(pe.steps) if getattr(each, "op", "") == "conv2d_2")
    step = pe.steps[at]
    assert isinstance(step, Compute)
    *most, columns, channels = step.output.box.stop
    smaller = replace(step.output.box, stop=(*most, columns - 1, channels))
    steps = (*pe.steps[:at], replace(step, output=replace(step.output, box=smaller)), *pe.steps[at + 1 :])
    buffers = tuple(
        replace(each, bytes=each.bytes - channels) if each.name == "conv2d_2" else each for each in pe.buffers
    )
    other = replace(plan, pes=(plan.pes[0], replace(pe, steps=steps, buffers=buffers), *plan.pes[2:]))
    with open_target(built) as target, pytest.raises(Differs, match=r"conv2d_2 alone on PE 1 writes \d+ bytes"):
        check_alone(target, built.net(), other, golden(built), NOTHING)


def test_a_repeated_tile_of_a_batch_writes_its_own_output_only(tmp_path: Path) -> None:
    batch = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "batch", pes=4, objective="throughput")
    plan = batch.plan()
    pe = plan.pes[1]
    last = [step for step in pe.computes() if step.op == "conv2d_2"][-1]
    assert last.frame >= len(plan.pes), "a first tile of the batch"
    smaller = [replace(each, bytes=each.bytes - 32) if each.name == last.output.buffer else each for each in pe.buffers]
    other = replace(plan, pes=(plan.pes[0], replace(pe, buffers=tuple(smaller)), *plan.pes[2:]))
    with open_target(batch) as target, pytest.raises(Differs, match="conv2d_2 alone on PE 1 writes 32 bytes"):
        check_alone(target, batch.net(), other, golden(batch), NOTHING)


def test_a_frame_goes_on_behind_layers_alone(built: Build) -> None:
    with open_target(built) as target:
        check_alone(target, built.net(), built.plan(), golden(built), NOTHING)
        assert validate(target, built.net(), built.plan(), golden(built), Silent()).passed


def test_nothing_is_checked_without_the_built_in_emulator(built: Build) -> None:
    with open_target(built) as opened:
        elsewhere = Target("elsewhere", opened.session, opened.board)
        assert check_alone(elsewhere, built.net(), built.plan(), golden(built), NOTHING) == NOTHING


@pytest.mark.exhaustive
def test_a_message_of_other_bytes_than_the_plan_says_is_refused(built: Build) -> None:
    plan = built.plan()
    at = next(number for number, each in enumerate(plan.messages) if each.tensor == "image")
    box = plan.messages[at].source.box
    smaller = replace(box, stop=(*box.stop[:1], box.stop[1] - 1, *box.stop[2:]))
    message = replace(plan.messages[at], source=replace(plan.messages[at].source, box=smaller))
    other = replace(plan, messages=(*plan.messages[:at], message, *plan.messages[at + 1 :]))
    with open_target(built) as target, pytest.raises(Differs, match="moves from PE 0 to PE"):
        check_alone(target, built.net(), other, golden(built), NOTHING)


def test_inputs_keep_to_the_ranges_and_come_close_to_every_rounding(built: Build) -> None:
    net = built.net()
    conv = next(op for op in net.ops if op.name == "conv2d_2")
    low, high = np.full(16, -100), np.full(16, 50)
    (given,) = inputs_alone(net.alone(conv), {conv.inputs[0]: Range(low, high)}, 30, 10_000_000)
    assert given.dtype == np.int8
    assert (given.min(), given.max()) == (-100, 50)
    (again,) = inputs_alone(net.alone(conv), {conv.inputs[0]: Range(low, high)}, 30, 10_000_000)
    assert np.array_equal(given, again)


def residual_block(folder: Path) -> Path:
    """A model of three padded convolutions and an addition, with calibration inputs in the same folder."""
    random = np.random.default_rng(7)
    weights = [random.standard_normal((16, channels, 3, 3)).astype(np.float32) / 12 for channels in (3, 16, 16)]
    constants = [numpy_helper.from_array(each, f"w{number}") for number, each in enumerate(weights)]
    nodes = [
        helper.make_node("Conv", [source, f"w{number}"], [output], pads=[1, 1, 1, 1])
        for number, (source, output) in enumerate([("x", "a"), ("a", "b"), ("b", "c")])
    ]
    nodes.append(helper.make_node("Add", ["a", "c"], ["y"]))
    sizes = {"x": (1, 3, 16, 16), "y": (1, 16, 16, 16)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in sizes.items()]
    graph = helper.make_graph(nodes, "block", ends[:1], ends[1:], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "block.onnx"
    )
    np.savez(folder / "inputs.npz", in0=random.standard_normal((8, *sizes["x"])).astype(np.float32))
    return folder / "block.onnx"


def test_a_layer_that_overwrites_the_border_of_its_input_runs_alone(tmp_path: Path) -> None:
    model = residual_block(tmp_path)
    options = {"calibration": tmp_path / "inputs.npz", "toolchain": "zig", "pes": 1}
    built = build(model, tmp_path / "out", "nrf5340-dk", **options)
    (memory,) = built.plan().pes
    inputs = [(memory.buffer(each.inputs[0].buffer), memory.buffer(each.output.buffer)) for each in memory.computes()]
    assert any(source.arrangement and source.offset == output.offset for source, output in inputs)
    assert alone(built).passed


def test_layers_of_other_shapes_that_an_accelerator_takes_as_one_get_inputs() -> None:
    net = small_net()
    whole = net.alone(fuse(net.ops[:-1], whole=True))
    (given,) = inputs_alone(whole, value_ranges(net), 4, INPUT_WORK, [Box.whole(whole.tensor(whole.outputs[0]).shape)])
    assert given.shape == (4, *net.tensor(net.inputs[0]).shape)
