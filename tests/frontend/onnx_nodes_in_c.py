"""ONNX's node tests through the generated C: many nets merged to a network for one core, run on the emulator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from frontend.onnx_nodes import Imported, NodeTest, imported, said, verdict
from npukit.accel.cpu import Cpu
from npukit.board.board import Board, Grid, load_board
from npukit.codegen.generate import generate
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases
from npukit.measure.target import Target
from npukit.measure.validate import Mismatch, validate
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.reference import run_reference
from npukit.plan.planner import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.images.image import Image
from npukit.project.render import About, render_project
from npukit.project.toolchain import find_toolchain

SRAM = 1 << 21
BUILD_ID = "52" * 16
BATCH = 66


def reasons(tests: Sequence[NodeTest]) -> Iterator[tuple[str, str]]:
    """The name of each test, and the reason for a failure; an empty string otherwise."""
    nets: list[Imported] = []
    for test in tests:
        try:
            nets.append(imported(test))
        except NpukitError as error:
            yield test.name, said(error)
    for start in range(0, len(nets), BATCH):
        yield from _run(nets[start : start + BATCH])


def _run(batch: Sequence[Imported]) -> Iterator[tuple[str, str]]:
    """Compares the C with the reference, and the reference with the test's results."""
    expected = [run_reference(each.net, list(each.inputs)) for each in batch]
    wrong = _differing(batch, expected)
    for index, each in enumerate(batch):
        differs = f"the C differs from the reference in {wrong[index]}" if index in wrong else ""
        yield each.test.name, differs or verdict(each, expected[index])


def _differing(batch: Sequence[Imported], expected: Sequence[Sequence[np.ndarray]]) -> dict[int, str]:
    """A tensor with a difference between the C and the reference, by the number of the test."""
    net = merged([each.net for each in batch])
    inputs = tuple(array[None] for each in batch for array in each.inputs)
    outputs = {index: array[None] for index, array in enumerate(array for each in expected for array in each)}
    with TemporaryDirectory() as scratch:
        found = _validated(net, Cases(inputs, outputs), Path(scratch))
    return {int(each.tensor.split("_")[0][1:]): each.tensor for each in found}


def merged(nets: Sequence[Net]) -> Net:
    """All nets side by side, which round alike. Names of the third net begin with `t3_`."""
    (rounds_once,) = {net.rounds_once for net in nets}
    parts = [_prefixed(net, f"t{index}_") for index, net in enumerate(nets)]
    return check_net(
        Net(
            "nodes",
            tuple(name for part in parts for name in part.inputs),
            tuple(name for part in parts for name in part.outputs),
            tuple(op for part in parts for op in part.ops),
            {name: tensor for part in parts for name, tensor in part.tensors.items()},
            {name: value for part in parts for name, value in part.constants.items()},
            rounds_once=rounds_once,
        )
    )


def _prefixed(net: Net, prefix: str) -> Net:
    def named(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(prefix + name for name in names)

    def renamed(op: Op) -> Op:
        return replace(op, name=prefix + op.name, inputs=named(op.inputs), outputs=named(op.outputs))

    return Net(
        net.name,
        named(net.inputs),
        named(net.outputs),
        tuple(renamed(op) for op in net.ops),
        {prefix + name: replace(tensor, name=prefix + name) for name, tensor in net.tensors.items()},
        {prefix + name: value for name, value in net.constants.items()},
    )


@cache
def board() -> Board:
    """A board with a single PE and memory for many networks."""
    mesh = load_board("pe-mesh")
    alone = mesh.mesh.model_copy(update={"pes": Grid(columns=1, rows=1)})
    memory = tuple(each.model_copy(update={"size": SRAM}) for each in mesh.memory)
    return mesh.model_copy(update={"memory": memory, "mesh": alone})


def _validated(net: Net, cases: Cases, folder: Path) -> Sequence[Mismatch]:
    planned = plan_with_kernels(Problem(Graph(net), board(), {"cpu": Cpu()}, max_pes=1), "latency")
    sources = generate(net, planned.plan, board(), planned.engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, board(), About(net.name, BUILD_ID), folder / "project")
    (image,) = build_images(project, find_toolchain(), folder / "images")
    machine = Emulator(board(), [Image(image.elf, image.pes)])
    with machine, Session(machine, bytes.fromhex(BUILD_ID)) as session:
        return validate(Target("emulator", session, board()), net, planned.plan, cases, Silent()).mismatches
