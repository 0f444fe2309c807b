"""Vision transformers of seeded weights: cycles of a frame on 1 and 16 PEs, predicted and emulated, every tile exact.

    PYTHONPATH=kit:tests:. python benchmarks/transformer.py [--pes 1 16] [--only NAME]

Each is made as PyTorch exports it to ONNX, quantised with seeded images, validated and benched on the emulator. The
last columns are those of the ops that take longest, and what the array's products of two activations reach of its 64
multiply-accumulates a cycle.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.state import commit

from end_to_end.transformers import Sizes, save_model, save_samples
from npukit import api

Layers = list[tuple[dict[str, Any], int]]
"""What is told of each op, and its cycles."""
NETWORKS = {
    "2 blocks, 16 x 32": Sizes(side=8, width=32, heads=4),
    "1 block, 64 x 64": Sizes(side=16, width=64, heads=2, blocks=1),
    "2 blocks, 36 x 64": Sizes(side=12, width=64, heads=4),
}
HEADER = ("network", "PEs", "predicted", "emulated", "difference", "MACs a cycle", "most cycles", "products", "commit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--only", choices=NETWORKS)
    given = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|---|--:|--:|--:|--:|--:|---|---|---|")
    for name in [given.only] if given.only else NETWORKS:
        for pes in given.pes:
            print(f"| {name} | {' | '.join(columns(NETWORKS[name], pes))} | {commit()} |", flush=True)


def columns(sizes: Sizes, pes: int) -> Iterator[str]:
    """The columns of a network on at most so many PEs."""
    with TemporaryDirectory() as folder:
        model, samples, out = (Path(folder) / name for name in ("vit.onnx", "samples.npz", "out"))
        save_model(model, sizes)
        save_samples(samples, sizes)
        built = api.build(model, output=out, options=api.Options(calibration=samples, io="int8", pes=pes))
        found = api.validate(out)
        assert found.passed, found.mismatches
        measured = api.bench(out)
    kinds = {op["name"]: op for op in built.manifest.summary["ops"]}
    layers = [(kinds[layer.name], layer.cycles or 0) for layer in measured.layers]
    cycles, predicted = measured.latency_cycles or 0, measured.predicted_latency_cycles
    yield from (str(len(measured.pes)), f"{predicted:,}", f"{cycles:,}", f"{predicted / cycles - 1:+.1%}")
    yield from (f"{measured.macs / cycles:.1f}", longest(layers), products(layers))


def longest(layers: Layers) -> str:
    """The kinds of op that take most cycles, each op's those of the PE that takes longest."""
    total: Counter[str] = Counter()
    for op, cycles in layers:
        total[op["op"]] += cycles
    return ", ".join(f"{kind} {cycles:,}" for kind, cycles in total.most_common(3))


def products(layers: Layers) -> str:
    """The multiply-accumulates a cycle and PE of products of two activations."""
    found = [op["macs"] / cycles / len(op["pes"]) for op, cycles in layers if op["op"] == "matmul"]
    return f"{min(found):.1f} to {max(found):.1f} MACs a cycle and PE"


if __name__ == "__main__":
    main()
