"""Single layers on one PE's MAC array: products a cycle of a whole frame, predicted cycles and the emulator's.

    python benchmarks/core/mac_array_layers.py [--random 12]

A frame of one layer includes its start and wake-up. `array` is the cycles of the array's command as recorded by the
built-in emulator, `predicted` the plan's cycles of the tile. `bound` is the array's rate on the shape if only
multiplications took time: with 9 pixels on 4 lanes, 3 of 12 places of the last group stay idle however pixels are
divided between the array's two orientations. Every output is compared with the reference.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.geometry import Plane
from npukit.accel.mac_array.cycles import Figures, ceil_div
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.emulator.builtin import Emulator
from npukit.emulator.trace_records import RecordKind
from npukit.link.session import Session
from npukit.measure.golden import golden_cases
from npukit.measure.target import Target
from npukit.measure.validate import run_case, validate
from npukit.net.box import Box
from npukit.net.cost import total_macs
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d
from npukit.net.tensor import Quantization, Tensor
from npukit.plan.planner import plan_network
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.images.image import Image
from npukit.project.render import About, render_project
from npukit.project.toolchain import find_toolchain

BUILD_ID = "5a" * 16
BOARD = load_board("pe-mesh")


@dataclass(frozen=True)
class Layer:
    """A layer on an image. A dense layer uses only `channels` (inputs) and `made` (outputs)."""

    kind: str
    height: int
    width: int
    channels: int
    made: int
    kernel: int = 1
    stride: int = 1

    @property
    def title(self) -> str:
        if self.kind == "dense":
            return f"dense {self.channels} to {self.made}"
        size = f"{self.height}x{self.width}x{self.channels}"
        return f"{self.kind} {self.kernel}x{self.kernel}/{self.stride}, {size} to {self.made}"


KNOWN = (
    Layer("conv2d", 25, 5, 64, 64),
    Layer("conv2d", 32, 32, 16, 16, 3),
    Layer("conv2d", 16, 16, 32, 32, 3),
    Layer("conv2d", 8, 8, 64, 64, 3),
    Layer("conv2d", 24, 24, 16, 32),
    Layer("conv2d", 12, 12, 64, 64),
    Layer("conv2d", 3, 3, 256, 256),
    Layer("depthwise_conv2d", 25, 5, 64, 64, 3),
    Layer("depthwise_conv2d", 24, 24, 64, 64, 3),
    Layer("depthwise_conv2d", 12, 12, 128, 128, 5),
    Layer("dense", 1, 1, 640, 128),
    Layer("dense", 1, 1, 256, 256),
)
"""Layers of the MLPerf Tiny networks, and some others."""


def random_layers(count: int) -> Iterator[Layer]:
    random = np.random.default_rng(7)
    for index in range(count):
        kind = ("conv2d", "depthwise_conv2d", "dense")[index % 3]
        height, width, channels = (int(n) for n in random.integers(1, 20, 3))
        made = channels if kind == "depthwise_conv2d" else int(random.integers(1, 70))
        kernel, stride = (int(n) for n in random.integers(1, [6, 3]))
        yield Layer(kind, height, width, channels * (9 if kind == "dense" else 1), made, kernel, stride)


def net_of(layer: Layer) -> Net:
    random, pad = np.random.default_rng(1), layer.kernel // 2
    height, width = ((size + 2 * pad - layer.kernel) // layer.stride + 1 for size in (layer.height, layer.width))
    source, result = (1, layer.height, layer.width, layer.channels), (1, height, width, layer.made)
    padding, strides = (pad, pad, pad, pad), (layer.stride, layer.stride)
    attributes = Conv2d(strides, padding)
    weights = (layer.made, layer.kernel, layer.kernel, layer.channels)
    if layer.kind == "dense":
        attributes, source, result, weights = (
            Dense(),
            (1, layer.channels),
            (1, layer.made),
            (layer.made, layer.channels),
        )
    elif layer.kind == "depthwise_conv2d":
        attributes, weights = DepthwiseConv2d(strides, padding), (1, layer.kernel, layer.kernel, layer.made)
    tensors = (
        Tensor("x", source, "int8", Quantization((0.05,), (3,))),
        Tensor("w", weights, "int8", Quantization((0.01,), (0,))),
        Tensor("b", (layer.made,), "int32"),
        Tensor("y", result, "int8", Quantization((0.3,), (-7,))),
    )
    constants = {"w": random.integers(-127, 128, weights, np.int8), "b": random.integers(-99, 99, layer.made, np.int32)}
    op = Op("layer", attributes, ("x", "w", "b"), ("y",))
    return Net("layer", ("x",), ("y",), (op,), {tensor.name: tensor for tensor in tensors}, constants)


def bound(net: Net) -> float:
    """Products a cycle if only multiplications take time, with the best division of pixels between the two
    orientations."""
    (op,) = net.ops
    plane, figures = Plane.of(Box.whole(net.tensor("y").shape)), Figures.of(BOARD.accelerator[0])
    if op.kind == DepthwiseConv2d.kind:
        return plane.channels / ceil_div(plane.channels, figures.width)

    def groups(pixels: int) -> int:
        """Groups with `pixels` pixels on the lanes and channels abreast, and the other pixels abreast."""
        abreast = ceil_div(plane.channels, figures.width) * ceil_div(pixels, figures.lanes)
        others = ceil_div(plane.channels, figures.lanes) * ceil_div(plane.pixels - pixels, figures.width)
        return abreast + others

    return plane.pixels * plane.channels / min(map(groups, range(plane.pixels + 1)))


@dataclass(frozen=True)
class Measured:
    """Cycles of the frame, and measured and predicted cycles of the array's command."""

    frame: int
    array: int
    predicted: int
    macs: int
    exact: bool

    @property
    def off(self) -> float:
        """Relative error of the prediction."""
        return abs(self.predicted / self.array - 1)


def measure(layer: Layer, folder: Path) -> Measured:
    engines = engines_of(BOARD)
    net = assign_engines(net_of(layer), engines)
    plan = plan_network(net, BOARD, engines, max_pes=1)
    sources = generate(net, plan, BOARD, engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, BOARD, About(net.name, BUILD_ID), folder / "project")
    (image,) = build_images(project, find_toolchain(), folder / "images")
    emulator, cases = Emulator(BOARD, [Image(image.elf, image.pes)]), golden_cases(net)
    with Session(emulator, bytes.fromhex(BUILD_ID)) as session:
        exact = validate(Target("emulator", session, BOARD), net, plan, cases, Silent()).passed
        run_case(session, net, cases, 0, observe=False)
        emulator.trace(True)
        frame = session.run().cycles
        work = emulator.traced().of(RecordKind.WORK)
    emulator.close()
    (step,) = plan.pes[0].computes()
    return Measured(frame, int((work["end"] - work["start"]).sum()), step.cycles, total_macs(net), exact)


def row(layer: Layer) -> tuple[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        found = measure(layer, Path(folder))
    figures = f"{found.macs:>9,} {found.frame:>8,} {found.array:>8,} {found.predicted:>9,}"
    rates = f"{found.macs / found.frame:>9.1f} {found.macs / found.array:>9.1f} {bound(net_of(layer)):>6.1f}"
    return f"{layer.title:44} {figures} {rates} {'exact' if found.exact else 'DIFFERS':>8}", found.off


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=12)
    given = parser.parse_args()
    counts = f"{'MACs':>9} {'frame':>8} {'array':>8} {'predicted':>9}"
    print(f"{'layer':44} {counts} {'MAC/frame':>9} {'MAC/array':>9} {'bound':>6}")
    worst = 0.0
    for layer in (*KNOWN, *random_layers(given.random)):
        text, off = row(layer)
        worst = max(worst, off)
        print(text, flush=True)
    print(f"predicted cycles of a tile: at most {worst:.2%} off")


if __name__ == "__main__":
    main()
