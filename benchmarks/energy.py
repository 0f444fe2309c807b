"""Power figures of the pe-mesh boards: fitted to published measurements, checked against others; energy of networks.

    python benchmarks/energy.py [MODEL...] [--pes N] [--objective energy] [--fps N]

The measurements are from SpiNNaker2, a chip of 152 PEs of this kind: Scholze et al., IEEE Open Journal of Circuits and
Systems 2026 (arXiv 2607.24396). Five of its seven power figures determine the model's five numbers; the model predicts
the other two. It assumes in addition that work at 0.5 V takes 0.5 / 0.8 of the energy at 0.8 V. The decrease is less
than quadratic in the voltage, because memories and the network-on-chip keep their voltage. Of the exponents 0, 1 and 2
only 1 fits, so the two figures are no independent proof of it. Two more figures, millijoules of single layers, are not
used, because no publication that we could read has the shapes of these layers.

The energy of messages on this chip is not published. The figures of SRAM, links and DRAM come from other silicon and
give the order of size: a frame's traffic may take no energy or twice the stated energy.
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
"""Products a second of all PEs together, and watts, by voltage and clock."""


TRAFFIC = {"pj_per_sram_byte": 20 / 8 / 2, "pj_per_byte_hop": 8 * 2 * 0.8 * 0.08, "pj_per_dram_byte": 230 * 1.1 / 6.4}
"""SRAM: 64 bits of 32 KB take 20 pJ in 45 nm (Horowitz, ISSCC 2014), half in 22 nm. A hop: wires of 0.8 mm, the side of
a PE of a chip of 102 mm2, at 0.08 pJ a bit and mm, twice the energy of low-swing wires in 45 nm (Park, DATE 2013), and
the same for a router. DRAM: a Micron LPDDR3 draws 230 mA to read 6.4 GB/s, LPDDR4 has 1.1 V."""
GAP9 = {"ad01_int8": "5.25", "kws_ref_model": "18.6", "pretrainedResnet_quant": "27.7", "vww_96_int8": "40.8"}
"""The least energy of a frame in MLPerf Tiny v1.3: microjoules of a whole chip, at 0.65 V."""
DRAM_IDLE_UW = 16 * 450
"""Idle power of 32 Gbit, the two packages of a chip. 2 Gbit of LPDDR4 take 0.15 mW in standby, a third of the usual
power (ISSCC 2017, 23.4)."""


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
    """The model from five measurements: off, asleep at both voltages, CoreMark and products at the high voltage."""
    products, watts = PRODUCTS[HIGH]
    return Model(
        off=OFF_W / PES,
        asleep={level: (watts - OFF_W) / PES for level, watts in ASLEEP_W.items()},
        core_cycle=(COREMARK_W[HIGH] - ASLEEP_W[HIGH]) / (PES * HIGH[1]),
        product=(watts - ASLEEP_W[HIGH]) / products,
    )


def trials(model: Model) -> Sequence[tuple[str, float, float]]:
    """The measurements that were not fitted: name, measured watts, watts by the model."""
    return (
        ("CoreMark on 152 cores, 0.5 V", COREMARK_W[LOW], model.coremark(LOW)),
        ("products on 152 arrays, 0.5 V", PRODUCTS[LOW][1], model.matmul(LOW)),
    )


def board_file(model: Model) -> str:
    """The `[energy]` table of the board files."""
    # 15 %, or the largest error on the measurements that were not fitted
    worst = max(15.0, *(100 * abs(said / found - 1) for _, found, said in trials(model)))
    lines = ["[energy]", f"pe_off_uw = {1e6 * model.off:.0f}", f"uncertainty_percent = {worst:.0f}"]
    lines += [f"{name} = {value:.2g}" for name, value in TRAFFIC.items()]
    lines += [f"dram_idle_uw = {DRAM_IDLE_UW}", "traffic_uncertainty_percent = 100"]
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


def row(model: Path, options: api.Options) -> str:
    """A row of the table: a network's energy and time at each voltage, by the emulator, beside the GAP9 chip's measured
    energy."""
    with tempfile.TemporaryDirectory() as scratch:
        built = api.build(model, output=Path(scratch) / "build", options=options)
        energies, pes = api.bench(built, frames=1).energy, built.manifest.summary["pes_used"]
    cells = [cell for each in energies for cell in (each.amount, f"{each.milliseconds:.3g}")]
    return f"| {' | '.join((model.stem, str(pes), *cells, GAP9.get(model.stem, '')))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pes", type=int, default=16)
    parser.add_argument("--objective", default="latency")
    parser.add_argument("--fps", type=float)
    arguments = parser.parse_args()
    model = fitted()
    for name, found, said in trials(model):
        print(f"{name}: measured {found:.3f} W, the model says {said:.3f} W, {said / found - 1:+.1%}")
    print(board_file(model))
    print("\n| network | PEs | at 0.8 V | ms | at 0.5 V | ms | GAP9, uJ |\n|---|--:|--:|--:|--:|--:|--:|")
    options = api.Options(pes=arguments.pes, objective=arguments.objective, frames_per_second=arguments.fps)
    for each in arguments.models:
        print(row(each, options), flush=True)


if __name__ == "__main__":
    main()
