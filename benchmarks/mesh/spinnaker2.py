"""Published layers of SpiNNaker2, under its layer-by-layer schedule, and as planned by npukit.

    python benchmarks/mesh/spinnaker2.py [--plan NAME ...] [--run NAME ...]

The published cycles come from TU Dresden's simulator of the chip at 250 MHz. Shapes follow from the layers' numbers,
counted so that number 14 of ResNet-50 is a shortcut: a padding and a pool follow the first convolution, and a block's
shortcut comes first. Each layer's data comes from DRAM, is computed on some PEs, and goes back. The array's cycles
follow the formulas of the plug-in `mla`, without the core's work. The DRAM's bytes a cycle follow from the one dense
layer. A scheduler on a PE takes 13 us a layer. Nothing else is fitted. With `--plan` npukit plans single layers on
`spinnaker2`; with `--run` it also builds them and runs them on the emulator.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from npukit import api
from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.subgraphs.tflite_file import subgraph_tflite
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense
from npukit.net.tensor import Quantization, Tensor
from npukit.plan.core_plan import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit_mla.cycles import Figures

ARRAY = Figures(setup_cycles=0, accumulator_bits=24)
SCHEDULER_CYCLES = 3_900
SIGNED_SCALE = Quantization((0.05,), (0,))


@dataclass(frozen=True)
class Layer:
    """A layer: height and width of its output, channels in and out, kernel, stride, PEs, and published cycles."""

    name: str
    side: int
    inputs: int
    outputs: int
    kernel: int
    stride: int
    pes: int
    published: int

    @property
    def depth(self) -> int:
        return self.kernel**2 * self.inputs

    @property
    def macs(self) -> int:
        return self.side**2 * self.outputs * self.depth

    @property
    def bytes(self) -> int:
        """Bytes moved between DRAM and the PEs for the layer."""
        return (self.side * self.stride) ** 2 * self.inputs + self.depth * self.outputs + self.side**2 * self.outputs

    @property
    def array_cycles(self) -> float:
        """Cycles of the arrays. A convolution with a stride also computes the outputs between two pixels of a row."""
        if self.side == 1:
            return ARRAY.product(1, self.depth, -(-self.outputs // self.pes))
        return ARRAY.convolution(self.side, self.side * self.stride, self.outputs, self.depth) / self.pes

    def cycles(self, dram_bytes: float) -> float:
        return self.array_cycles + self.bytes / dram_bytes + SCHEDULER_CYCLES

    def net(self) -> Net:
        """The layer as a network of one op."""
        random, dense = np.random.default_rng(1), self.side == 1
        shapes = {
            "x": (1, self.inputs) if dense else (1, self.side * self.stride, self.side * self.stride, self.inputs),
            "w": (self.outputs, self.inputs) if dense else (self.outputs, self.kernel, self.kernel, self.inputs),
            "y": (1, self.outputs) if dense else (1, self.side, self.side, self.outputs),
        }
        before, pad = (self.kernel - self.stride + 1) // 2, self.kernel - self.stride
        padding = (before, before, pad - before, pad - before) if pad > 0 else (0, 0, 0, 0)
        op = Op("y", Dense() if dense else Conv2d((self.stride, self.stride), padding), ("x", "w"), ("y",))
        tensors = {name: Tensor(name, shape, "int8", SIGNED_SCALE) for name, shape in shapes.items()}
        weights = random.integers(-20, 21, prod(shapes["w"]), np.int8).reshape(shapes["w"])
        return check_net(Net(self.name, ("x",), ("y",), (op,), tensors, {"w": weights}))


DENSE = Layer("ResNet-50 FC_21", 1, 2048, 1000, 1, 1, 144, 132_044)
LAYERS = (
    Layer("VGG CONV_7", 56, 128, 256, 3, 1, 128, 214_575),
    Layer("VGG CONV_9", 56, 256, 256, 3, 1, 128, 413_733),
    Layer("ResNet-50 CONV_1", 112, 3, 64, 7, 2, 144, 99_623),
    Layer("ResNet-50 SC_14", 28, 256, 512, 1, 2, 144, 115_207),
    Layer("ResNet-50 CONV_19", 28, 128, 128, 3, 1, 144, 44_987),
    Layer("ResNet-50 CONV_42", 14, 256, 1024, 1, 1, 144, 47_116),
    DENSE,
)
DRAM_BYTES = DENSE.depth * DENSE.outputs / DENSE.published
"""DRAM bytes a cycle, from the dense layer: the transfer of its weights takes all published cycles."""


def rows() -> Iterator[tuple[str, ...]]:
    """The name, share of the peak, published cycles, cycles under the schedule, and difference of each layer."""
    for layer in LAYERS:
        cycles, peak = layer.cycles(DRAM_BYTES), layer.macs / 64 / layer.pes / layer.published
        difference = f"{cycles / layer.published - 1:+.1%}"
        yield layer.name, f"{peak:.0%}", f"{layer.published:,}", f"{cycles:,.0f}", difference


def planned(layer: Layer) -> str:
    """The cycles of npukit's plan for a single layer, or the reason for its refusal."""
    board = load_board("spinnaker2")
    engines = engines_of(board)
    try:
        net = assign_engines(layer.net(), engines, slower_too=True)
        plan = plan_with_kernels(Problem(Graph(net), board, engines), "latency").plan
    except NpukitError as error:
        return error.message
    return f"{plan.predicted.latency_cycles:,} cycles on {len(plan.pes)} PEs, {net.ops[0].engine}"


def ran(layer: Layer) -> str:
    """Emulated cycles of a single layer, the error of the prediction, and whether it is exact."""
    net = layer.net()
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / "layer.tflite"
        model.write_bytes(subgraph_tflite(net, net.ops[0]))
        build = api.build(model, board="spinnaker2", output=Path(scratch) / "out")
        exact, measured = api.validate(build.folder, cases=1).passed, api.bench(build.folder)
    cycles, predicted = measured.latency_cycles, measured.predicted_latency_cycles
    assert cycles is not None
    return f"{cycles:,} cycles, {predicted / cycles - 1:+.1%} predicted, {'exact' if exact else 'NOT EXACT'}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--run", nargs="*", default=[], metavar="NAME")
    given = parser.parse_args()
    print("| layer | of the peak | published | under the schedule | difference |\n|---|--:|--:|--:|--:|")
    for row in rows():
        print(f"| {' | '.join(row)} |")
    for layer in LAYERS:
        for wanted, show in ((given.plan, planned), (given.run, ran)):
            if layer.name.split()[-1] in wanted:
                print(f"{layer.name}: {show(layer)}", flush=True)


if __name__ == "__main__":
    main()
