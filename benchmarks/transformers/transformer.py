"""Vision transformers of seeded weights: cycles of a frame, predicted and emulated, every tile exact.

    PYTHONPATH=kit:tests:. python benchmarks/transformers/transformer.py [--only NAME] [--board NAME]
        [--pes 1 16] [--plan-only]

Each network has the form in which PyTorch exports it to ONNX. It is quantised with seeded images, then validated and
benched on the emulator, or only planned. `ViT-tiny/32` has the sizes of the network of that name, for images of 224 x
224 in patches of 32 x 32, and needs a chip: `--only ViT-tiny/32 --board pe-mesh-152 --pes 152`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.state import commit

from end_to_end.transformers import Sizes, save_model, save_samples
from npukit import api

TINY = Sizes(side=224, width=192, heads=3, patch=32, channels=3, widen=4, classes=1000)
NETWORKS = {
    "2 blocks, 16 x 32": Sizes(side=8, width=32, heads=4),
    "1 block, 64 x 64": Sizes(side=16, width=64, heads=2, blocks=1),
    "2 blocks, 36 x 64": Sizes(side=12, width=64, heads=4),
    "ViT-tiny/32, 2 blocks": TINY,
    "ViT-tiny/32": replace(TINY, blocks=12),
    "ViT-tiny/16": replace(TINY, blocks=12, patch=16),
}
SMALL = [name for name, sizes in NETWORKS.items() if sizes.side < TINY.side]
IMAGES = 8
"""Calibration images of 224 x 224. Networks on smaller images use 40."""
HEADER = ("network", "PEs", "predicted", "emulated", "difference", "MACs a cycle", "commit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--only", choices=NETWORKS)
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--plan-only", action="store_true", help="predict, without a build and the emulator")
    given = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|---|--:|--:|--:|--:|--:|---|")
    for name in [given.only] if given.only else SMALL:
        for pes in given.pes:
            with TemporaryDirectory() as folder:
                options = written(Path(folder), NETWORKS[name], pes)
                told = (predicted if given.plan_only else measured)(Path(folder), given.board, options)
                print(f"| {name} | {' | '.join(told)} | {commit()} |", flush=True)


def written(folder: Path, sizes: Sizes, pes: int) -> api.Options:
    """Write the model and its samples; return the options of a build."""
    samples = folder / "samples.npz"
    save_model(folder / "vit.onnx", sizes)
    save_samples(samples, sizes, IMAGES if sizes.side == TINY.side else 40)
    layout = ("layout=NHWC",) if sizes.channels > 1 else ()
    return api.Options(calibration=samples, target_db=0, io="int8", pes=pes, preprocess=layout)


def predicted(folder: Path, board: str, options: api.Options) -> Iterator[str]:
    """The columns of a plan that was not run."""
    told = api.fit(folder / "vit.onnx", board=board, options=options)
    cycles = told["predicted"]["latency_cycles"]
    yield from (str(told["pes_used"]), f"{cycles:,}", "-", "-", f"{sum(op['macs'] for op in told['ops']) / cycles:.1f}")


def measured(folder: Path, board: str, options: api.Options) -> Iterator[str]:
    """The columns of a build. Asserts that all frames and tiles are exact."""
    api.build(folder / "vit.onnx", board=board, output=folder / "out", options=options)
    found = api.validate(folder / "out")
    assert found.passed, found.mismatches
    run = api.bench(folder / "out")
    cycles, foreseen = run.latency_cycles or 0, run.predicted_latency_cycles
    yield from (str(len(run.pes)), f"{foreseen:,}", f"{cycles:,}", f"{foreseen / cycles - 1:+.1%}")
    yield f"{run.macs / cycles:.1f}"


if __name__ == "__main__":
    main()
