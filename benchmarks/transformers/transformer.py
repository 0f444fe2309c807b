"""Vision transformers of seeded weights: cycles of a frame, predicted and emulated, every tile exact.

    PYTHONPATH=kit:tests:. python benchmarks/transformers/transformer.py [--only NAME] [--board NAME]
        [--pes 1 16] [--plan-only]

Each network has the form in which PyTorch exports it to ONNX. It is quantised with seeded images, then validated and
benched on the emulator, or only planned. The last columns show the ops with the most cycles, and the rate of dense
layers and of products of two activations, of at most 64 multiply-accumulates a cycle and array. `ViT-tiny/32` has the
sizes of the network of that name, for images of 224 x 224 in patches of 32 x 32. `MobileViT-like` has convolutions, and
attention over their pixels (`mobile_vit.py`). These networks need a chip, as in `--only MobileViT-like --board
pe-mesh-152 --pes 152`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.state import commit
from benchmarks.transformers.mobile_vit import MobileSizes, save_mobile_model

from end_to_end.transformers import Sizes, save_model, save_samples
from npukit import api

Layers = list[tuple[dict[str, Any], int]]
"""The summary of each op, and its cycles."""
TINY = Sizes(side=224, width=192, heads=3, patch=32, channels=3, widen=4, classes=1000)
NETWORKS = {
    "2 blocks, 16 x 32": Sizes(side=8, width=32, heads=4),
    "1 block, 64 x 64": Sizes(side=16, width=64, heads=2, blocks=1),
    "2 blocks, 36 x 64": Sizes(side=12, width=64, heads=4),
    "ViT-tiny/32, 2 blocks": TINY,
    "ViT-tiny/32": replace(TINY, blocks=12),
    "ViT-tiny/16": replace(TINY, blocks=12, patch=16),
    "MobileViT-like": MobileSizes(side=224, width=144, heads=4, channels=3, classes=1000),
}
SMALL = [name for name, sizes in NETWORKS.items() if sizes.side < TINY.side]
IMAGES = 8
"""Calibration images of 224 x 224. Networks on smaller images use 40."""
HEADER = (
    "network",
    "PEs",
    "predicted",
    "emulated",
    "difference",
    "MACs a cycle",
    "most cycles",
    "products",
    "dense",
    "commit",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--plan-only", action="store_true", help="predict, without a build and the emulator")
    given = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|---|--:|--:|--:|--:|--:|---|---|---|---|")
    for name in [given.only] if given.only else SMALL:
        for pes in given.pes:
            with TemporaryDirectory() as folder:
                case = VisionCase(Path(folder), NETWORKS[name], given.board, pes)
                told = case.predicted() if given.plan_only else case.measured()
                print(f"| {name} | {' | '.join(told)} | {commit()} |", flush=True)


@dataclass(frozen=True)
class VisionCase:
    """A network in a folder, its board, and the limit of PEs."""

    folder: Path
    sizes: Sizes
    board: str
    pes: int

    def options(self) -> api.Options:
        """Write the model and its samples; return the options of a build."""
        samples = self.folder / "samples.npz"
        if isinstance(self.sizes, MobileSizes):
            save_mobile_model(self.model, self.sizes)
        else:
            save_model(self.model, self.sizes)
        save_samples(samples, self.sizes, IMAGES if self.sizes.side == TINY.side else 40)
        layout = ("layout=NHWC",) if self.sizes.channels > 1 else ()
        return api.Options(calibration=samples, io="int8", pes=self.pes, preprocess=layout)

    @property
    def model(self) -> Path:
        return self.folder / "vit.onnx"

    def predicted(self) -> Iterator[str]:
        """The columns of a plan that was not run."""
        told = api.fit(self.model, board=self.board, options=self.options())
        cycles, layers = told["predicted"]["latency_cycles"], [(op, op["predicted_cycles"]) for op in told["ops"]]
        yield from (str(told["pes_used"]), f"{cycles:,}", "-", "-")
        yield from rates(sum(op["macs"] for op in told["ops"]) / cycles, layers)

    def measured(self) -> Iterator[str]:
        """The columns of a build. Asserts that all frames and tiles are exact."""
        out = self.folder / "out"
        built = api.build(self.model, board=self.board, output=out, options=self.options())
        found = api.validate(out)
        assert found.passed, found.mismatches
        measured = api.bench(out)
        kinds = {op["name"]: op for op in built.manifest.summary["ops"]}
        layers = [(kinds[layer.name], layer.cycles or 0) for layer in measured.layers]
        cycles, predicted = measured.latency_cycles or 0, measured.predicted_latency_cycles
        yield from (str(len(measured.pes)), f"{predicted:,}", f"{cycles:,}", f"{predicted / cycles - 1:+.1%}")
        yield from rates(measured.macs / cycles, layers)


def rates(macs_a_cycle: float, layers: Layers) -> Iterator[str]:
    """The last columns: rates and the longest ops."""
    yield from (f"{macs_a_cycle:.1f}", longest(layers), products(layers, "matmul"), products(layers, "dense"))


def longest(layers: Layers) -> str:
    """The three kinds of op with the most cycles. An op counts the cycles of its slowest PE."""
    total: Counter[str] = Counter()
    for op, cycles in layers:
        total[op["op"]] += cycles
    return ", ".join(f"{kind} {cycles:,}" for kind, cycles in total.most_common(3))


def products(layers: Layers, kind: str) -> str:
    """The lowest and highest multiply-accumulates a cycle and PE of ops of a kind."""
    found = [op["macs"] / cycles / len(op["pes"]) for op, cycles in layers if op["op"].startswith(kind)]
    return f"{min(found):.1f} to {max(found):.1f} MACs a cycle and PE"


if __name__ == "__main__":
    main()
