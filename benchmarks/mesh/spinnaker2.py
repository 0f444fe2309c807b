"""Published layers of SpiNNaker2, under its layer-by-layer schedule.

    python benchmarks/mesh/spinnaker2.py

The published cycles come from TU Dresden's simulator of the chip at 250 MHz. Shapes follow from the layers' numbers,
counted so that number 14 of ResNet-50 is a shortcut: a padding and a pool follow the first convolution, and a block's
shortcut comes first. Each layer's data comes from DRAM, is computed on some PEs, and goes back. The array's cycles
follow the formulas of the plug-in `mla`, without the core's work. The DRAM's bytes a cycle follow from the one dense
layer. A scheduler on a PE takes 13 us a layer. Nothing else is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npukit_mla.driver_shape import Figures

ARRAY = Figures(setup_cycles=0, accumulator_bits=24)
SCHEDULER_CYCLES = 3_900


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


if __name__ == "__main__":
    print("| layer | of the peak | published | under the schedule | difference |\n|---|--:|--:|--:|--:|")
    for row in rows():
        print(f"| {' | '.join(row)} |")
