"""Moves and maps in assembly: exact for every shape, type and cut, and predicted to the cycle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codegen.random_ops import MAKERS, Bundle
from helpers import first_of, toolchain
from npukit.accel.core_kernels import core_kernels_alone
from npukit.accel.cpu import Cpu
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.emulator.builtin import Emulator
from npukit.link.session import Session
from npukit.measure.bench import Bench, bench
from npukit.measure.cases import Cases, expecting
from npukit.measure.golden import golden
from npukit.measure.target import Target
from npukit.measure.validate import validate
from npukit.net import ops
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.receptive import cuttable_axes
from npukit.plan.ir.assignment import Tile
from npukit.plan.planner import Planned, plan_around, plan_with_kernels
from npukit.plan.predict.kernels import with_kernel_code
from npukit.plan.predict.memory import FIRMWARE_BYTES, WORKER_BYTES, with_code
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.manifest import image_record
from npukit.project.render import About, render_project

BOARD = load_board("pe-mesh")
BUILD_ID = "61" * 16
OBSERVED = 56
"""Upper bound in cycles on the cost of stopping after a layer to measure it, by either compiler."""
MOST = (900, 60, 16, 8, 5)
"""The largest size of an axis, by the number of axes."""
DTYPES = ("int8", "int8", "int16", "int32")


def transposes(seed: int, count: int) -> Net:
    """Transposes of random shapes with one to five axes, each at most thousands of bytes."""
    bundle = Bundle(np.random.default_rng(seed))
    for number in range(count):
        rank = bundle.pick(1, len(MOST))
        shape = tuple(bundle.pick(1, MOST[rank - 1]) for _ in range(rank))
        axes = tuple(int(axis) for axis in bundle.random.permutation(len(shape)))
        add(bundle, shape, axes, DTYPES[number % len(DTYPES)])
    add(bundle, (1, 2, 300, 3), (0, 3, 1, 2))
    add(bundle, (3, 2, 300), (2, 1, 0))
    add(bundle, (5, 1, 1), (2, 1, 0))
    return check_net(bundle.net())


def add(bundle: Bundle, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "int8") -> None:
    source = bundle.activation(shape, dtype=dtype)
    bundle.add(ops.Transpose(axes), source, quantization=bundle.tensors[source].quantization, dtype=dtype)


def _cases(net: Net, inputs: np.ndarray | None) -> Cases:
    return golden(net).cases if inputs is None else expecting(net, Cases((inputs,), {}))


def run(
    net: Net, planned: Planned, folder: Path, compiler: str | None = None, inputs: np.ndarray | None = None
) -> Bench:
    """Validate the plan and measure the layers on the emulator."""
    sources = generate(net, planned.plan, BOARD, planned.engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, BOARD, About(net.name, BUILD_ID), folder / "project")
    images = build_images(project, toolchain(compiler), folder / "images")
    emulator = Emulator(BOARD, [image_record(image, folder).image(folder) for image in images])
    with emulator, Session(emulator, bytes.fromhex(BUILD_ID)) as session:
        target, cases = Target("emulator", session, BOARD), _cases(net, inputs)
        found = validate(target, net, planned.plan, cases, Silent())
        assert found.passed, found.mismatches
        return bench(target, net, planned.plan, cases, BOARD.core.clock_hz, 1, Silent())


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "compiler"), first_of([(1, "zig"), (2, "gcc")]))
def test_random_shapes_are_exact_and_predicted(seed: int, compiler: str, tmp_path: Path) -> None:
    net = transposes(seed, 24)
    planned = plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")
    assert set(planned.kernels.values()) == {"transpose"}
    measured = run(net, planned, tmp_path, compiler)
    assert len(measured.layers) == len(net.ops)
    for layer in measured.layers:
        assert layer.cycles is not None
        assert layer.predicted_cycles <= layer.cycles <= 1.1 * layer.predicted_cycles + OBSERVED, layer


def moves(seed: int) -> Net:
    """Four ops of each kind with a move or map routine."""
    bundle = Bundle(np.random.default_rng(seed))
    for kind in ("transpose", "slice", "lookup", "resize_nearest", "pad", "concat") * 4:
        MAKERS[kind](bundle)
    return check_net(bundle.net())


def cut(net: Net, pes: int) -> dict[str, tuple[Tile, ...]]:
    """Every op cut along its cuttable axes, in tiles on `pes` PEs."""
    found: dict[str, tuple[Tile, ...]] = {}
    for op in net.ops:
        shape, left, parts = net.tensor(op.output).shape, pes, [1] * len(net.tensor(op.output).shape)
        for axis in cuttable_axes(net, op):
            parts[axis] = min(left, shape[axis], 2)
            left //= parts[axis]
        boxes = to_boxes(grid(shape, tuple(parts), (1,) * len(shape)))
        found[op.name] = tuple(Tile(pe, box) for pe, box in enumerate(boxes))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([4, 1]))
def test_moves_and_maps_are_exact_and_predicted_however_they_are_cut(pes: int, tmp_path: Path) -> None:
    net = moves(3)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    assert {note for note in planned.kernels.values() if not note.startswith("plain C")} == {
        *("transpose", "slice", "lookup", "lookup by channel", "resize_nearest", "pad", "concat")
    }
    measured = run(net, planned, tmp_path)
    for layer in measured.layers:
        assert layer.cycles is not None
        assert pes > 1 or layer.cycles <= 1.1 * layer.predicted_cycles + OBSERVED, layer


def test_a_map_takes_less_than_four_cycles_a_byte() -> None:
    bundle = Bundle(np.random.default_rng(0))
    source = bundle.activation((1, 32, 32, 8))
    bundle.add(ops.Lookup(), source, bundle.constant(bundle.int8((256,)), None))
    net = check_net(bundle.net())
    cost = Cpu(core_kernels_alone(net)).cost(net, net.ops[0], Box.whole((1, 32, 32, 8)))
    assert cost.cycles < 4 * 32 * 32 * 8


def test_the_layout_of_an_image_takes_two_and_a_half_cycles_a_byte() -> None:
    bundle = Bundle(np.random.default_rng(0))
    add(bundle, (1, 3, 96, 96), (0, 2, 3, 1))
    net = check_net(bundle.net())
    (op,) = net.ops
    cost = Cpu(core_kernels_alone(net)).cost(net, op, Box.whole((1, 96, 96, 3)))
    assert cost.cycles < 2.5 * 3 * 96 * 96
    assert Cpu().cost(net, op, Box.whole((1, 96, 96, 3))).cycles > 2 * cost.cycles, "in C"


def test_code_of_a_transposition_is_counted() -> None:
    net = transposes(5, 6)
    kernels = core_kernels_alone(net)
    assert kernels.moves.keys() == {op.name for op in net.ops}
    assert kernels.code_bytes > 40 * 3


def test_bytes_looked_up_share_a_routine_however_many_they_are() -> None:
    bundle = Bundle(np.random.default_rng(0))
    for pixels in (2, 3, 200):
        source, table = bundle.activation((1, 1, pixels, 32)), bundle.constant(bundle.int8((256,)), None)
        bundle.add(ops.Lookup(), source, table)
    net = check_net(bundle.net())
    shapes = [net.tensor(op.output).shape for op in net.ops]
    kernels = core_kernels_alone(net)
    found = [kernels.moves[op.name].codes(net, op, Box.whole(shape)) for op, shape in zip(net.ops, shapes, strict=True)]
    assert len({code.name for codes in found for code in codes}) == 1


def test_code_of_a_pe_is_that_of_its_tiles_once_and_no_firmware_for_code_in_c() -> None:
    """PEs beside the root all compute the same, with shared routines."""
    bundle = Bundle(np.random.default_rng(0))
    source = bundle.activation((1, 8, 8, 32))
    for _ in range(3):
        bundle.add(ops.Lookup(), source, bundle.constant(bundle.int8((256,)), None))
    net = check_net(bundle.net())
    core = Cpu(core_kernels_alone(net))
    plan = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=4), cut(net, 4)).plan
    bare = [replace(pe, memory=with_code(BOARD, pe.memory, -pe.memory.code)) for pe in plan.pes]
    root, *others = (pe.memory.code for pe in with_kernel_code(net, BOARD, replace(plan, pes=tuple(bare)), core).pes)
    assert 0 < root < 400
    assert all(0 < other + FIRMWARE_BYTES - WORKER_BYTES <= root for other in others)
