"""The power figures of the pe-mesh boards: fitted to published measurements, tried on others; energy of networks.

    python benchmarks/energy.py [MODEL...] [--pes N]

The measurements are those of SpiNNaker2, a chip of 152 PEs of this kind, from Scholze et al., IEEE Open Journal of
Circuits and Systems 2026 (arXiv 2607.24396). Five of its seven figures of power give the model's five numbers; the
model then says the other two. What it assumes beyond them is that work at 0.5 V takes 0.5 / 0.8 of its energy at 0.8 V:
less falls than by the square of the voltage, as memories and the network-on-chip keep theirs. Of the exponents 0, 1 and
2 this is the one that fits, so the two figures are no independent proof of it. Two more figures, millijoules of single
layers, are not used: the shapes of those layers are not published where we could read them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit import api

PES, MACS_A_CYCLE = 152, 64
HIGH, LOW = (0.8, 300e6), (0.5, 150e6)
VOLTAGE_EXPONENT = 1

OFF_W = 0.0752
ASLEEP_W = {HIGH: 0.5647, LOW: 0.2354}
COREMARK_W = {HIGH: 1.2479, LOW: 0.4246}
PRODUCTS = {HIGH: (4.563e12 / 2, 2.219), LOW: (2.281e12 / 2, 0.825)}
"""Products a second in all PEs, and watts."""


@dataclass(frozen=True)
class Model:
    """Watts of a PE off and asleep; joules of a core's cycle and of a product at the high voltage."""

    off: float
    asleep: dict[tuple[float, float], float]
    core_cycle: float
    product: float

    def core_cycle_at(self, level: tuple[float, float]) -> float:
        return self.core_cycle * self._scale(level)

    def product_at(self, level: tuple[float, float]) -> float:
        return self.product * self._scale(level)

    def coremark(self, level: tuple[float, float]) -> float:
        """Watts of the chip with every core awake."""
        return PES * (self.off + self.asleep[level] + level[1] * self.core_cycle_at(level))

    def matmul(self, level: tuple[float, float]) -> float:
        """Watts of the chip with every array at work and the cores asleep."""
        return PES * (self.off + self.asleep[level]) + PRODUCTS[level][0] * self.product_at(level)

    def _scale(self, level: tuple[float, float]) -> float:
        return (level[0] / HIGH[0]) ** VOLTAGE_EXPONENT


def fitted() -> Model:
    """The model by five of the measurements: off, asleep twice, CoreMark and products at the high voltage."""
    products, watts = PRODUCTS[HIGH]
    return Model(
        off=OFF_W / PES,
        asleep={level: (watts - OFF_W) / PES for level, watts in ASLEEP_W.items()},
        core_cycle=(COREMARK_W[HIGH] - ASLEEP_W[HIGH]) / (PES * HIGH[1]),
        product=(watts - ASLEEP_W[HIGH]) / products,
    )


def trials(model: Model) -> Sequence[tuple[str, float, float]]:
    """What was measured and not fitted: its name, the watts measured, the watts the model says."""
    return (
        ("CoreMark on 152 cores, 0.5 V", COREMARK_W[LOW], model.coremark(LOW)),
        ("products on 152 arrays, 0.5 V", PRODUCTS[LOW][1], model.matmul(LOW)),
    )


def board_file(model: Model) -> str:
    """The table that the board files hold."""
    lines = ["[energy]", f"pe_off_uw = {1e6 * model.off:.0f}", f"uncertainty_percent = {worst_percent(model):.0f}"]
    for level in (HIGH, LOW):
        lines += [
            "[[energy.level]]",
            f"volts = {level[0]}",
            f"clock_hz = {level[1]:_.0f}",
            f"pe_asleep_uw = {1e6 * model.asleep[level]:.0f}",
            f"pj_per_core_cycle = {1e12 * model.core_cycle_at(level):.1f}",
            f"pj_per_mac = {1e12 * model.product_at(level):.2f}",
        ]
    return "\n".join(lines)


def worst_percent(model: Model) -> float:
    """The bars that a frame's energy gets: 15 %, or how far the model is from what was measured and not fitted."""
    return max(15.0, *(100 * abs(said / found - 1) for _, found, said in trials(model)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pes", type=int, default=16)
    arguments = parser.parse_args()
    model = fitted()
    for name, found, said in trials(model):
        print(f"{name}: measured {found:.3f} W, the model says {said:.3f} W, {said / found - 1:+.1%}")
    print(board_file(model))
    with tempfile.TemporaryDirectory() as scratch:
        for each in arguments.models:
            built = api.build(each, output=Path(scratch) / each.stem, options=api.Options(pes=arguments.pes))
            energies = api.bench(built, frames=1).energy
            print(
                f"{each.stem} on {arguments.pes} PEs:",
                "; ".join(f"{one}, {one.milliseconds:.4g} ms" for one in energies),
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
