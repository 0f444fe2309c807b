"""Networks for the core's assembly kernels, with some ops in plain C, and a function to run a net on the emulator."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from helpers import toolchain
from npukit.accel.cpu import Cpu
from npukit.board.board import Board, load_board
from npukit.codegen.generate import generate
from npukit.emulator.builtin import Emulator
from npukit.emulator.qemu import QemuMachine
from npukit.link.session import Session
from npukit.measure.golden import golden
from npukit.measure.target import Target
from npukit.measure.validate import Validation, validate
from npukit.net.net import Net
from npukit.net.ops import Multiply, Reshape
from npukit.plan.planner import Planned, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from npukit.project.compile import BuiltImage, build_images
from npukit.project.images.image import Image
from npukit.project.render import About, render_project
from plan.networks import Builder

BUILD_ID = "31" * 16


class CoreBuilder(Builder):
    """A builder with every op on the core. Most zero points are -128, as after a ReLU."""

    def multiply(self, first: str, second: str) -> str:
        return self._op(Multiply(), (first, second), self.tensors[first].shape, "cpu")

    def reshape(self, source: str, *shape: int) -> str:
        return self._op(Reshape(), (source,), shape, "cpu")

    def net(self, *outputs: str) -> Net:
        found = super().net(*outputs)
        return found.with_ops(tuple(op.placed("cpu") for op in found.ops))

    def _tensor(self, name: str, shape: tuple[int, ...], scale: float, zero: int = 3) -> str:
        return super()._tensor(name, shape, scale, -128 if self.random.integers(4) else zero)


def mixed_net(seed: int) -> Net:
    """A net of three independent parts: borders, planes, sums, windows for plain C only, reshapes, shared tensors."""
    b = CoreBuilder("mixed", seed)
    x = b.conv(b.depthwise(b.conv(b.input(1, 13, 10, 3), 8, 3, 2)), 16)
    x = b.add(x, b.conv(b.conv(x, 16, 3), 16, 3))
    first = b.softmax(b.dense(b.flatten(b.global_pool(x)), 7))
    y = b.conv(b.pool(b.input(1, 9, 7, 4), 3, 2, maximum=True), 8, 3)
    second = b.add(b.multiply(y, y), b.conv(y, 8, 3))
    third = b.conv(b.depthwise(b.reshape(b.dense(b.input(1, 6), 60), 1, 5, 4, 3)), 4)
    return b.net(first, second, y, third)


@dataclass(frozen=True)
class Ran:
    """A net built for a single core, and the results of its run."""

    planned: Planned
    image: BuiltImage
    validation: Validation


def run_on_emulator(
    net: Net, folder: Path, compiler: str | None = None, objective: str = "latency", board: str = "pe-mesh"
) -> Ran:
    """Run the net on one PE of the mesh on the built-in emulator, or on another board under QEMU."""
    return _run(net, folder, compiler, objective, load_board(board))


def _run(net: Net, folder: Path, compiler: str | None, objective: str, board: Board) -> Ran:
    planned = plan_with_kernels(Problem(Graph(net), board, {"cpu": Cpu()}, max_pes=1), objective)
    sources = generate(net, planned.plan, board, planned.engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, board, About(net.name, BUILD_ID), folder / "project")
    (image,) = build_images(project, toolchain(compiler), folder / "images")
    machine = QemuMachine(board, image.elf) if board.qemu else Emulator(board, [Image(image.elf, image.pes)])
    with machine, Session(machine, bytes.fromhex(BUILD_ID)) as session:
        target = Target("qemu" if board.qemu else "emulator", session, board)
        found = validate(target, net, planned.plan, golden(net).cases, Silent())
    return Ran(planned, image, found)
