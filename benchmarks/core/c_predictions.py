"""Predicted cycles of C that TVM makes beside the built-in emulator's, layer by layer, on a Cortex-M4F (`mps2-an386`).

    PYTHONPATH=kit:. python benchmarks/core/c_predictions.py [MODEL ...] [--seeds 4 5] [--toolchain gcc zig]

Without a model, float operators of random sizes, those of a seed in one network. Printed for each compiler are the
layers by what they compute: predicted, counted, the difference; and that of all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from benchmarks.state import commit
from benchmarks.transformers.written_onnx import Written, floats

from npukit import api
from npukit.net.ops import TvmCode

BOARD = "mps2-an386"
ALONE = (
    "Exp",
    "Sqrt",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Neg",
    "Abs",
    "Floor",
    "Relu",
    "Softplus",
    "HardSigmoid",
    "Elu",
    "Sin",
)

Made = Callable[[Written, str, "Sizes"], str]


class Sizes:
    """Sizes of a network's operators: rows and columns of matrices, channels and the side of images."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.rows, self.columns, self.channels, self.side, self.made = (
            int(self.random.integers(*ends)) for ends in ((3, 20), (20, 200), (2, 12), (5, 10), (3, 20))
        )

    @property
    def matrix(self) -> list[int]:
        return [1, self.rows, self.columns]

    @property
    def image(self) -> list[int]:
        return [1, self.channels, self.side, self.side]

    def numbers(self, net: Written, *shape: int) -> str:
        return net.constant(self.random.normal(size=shape))


def norm(net: Written, x: str, of: Sizes) -> str:
    return net.node("LayerNormalization", x, of.numbers(net, of.columns), of.numbers(net, of.columns))


def sums(net: Written, x: str, of: Sizes) -> str:
    return net.node("Mul", net.node("Add", x, of.numbers(net, of.columns)), of.numbers(net, of.rows, 1))


def matmul(net: Written, x: str, of: Sizes) -> str:
    return net.node("Add", net.node("MatMul", x, of.numbers(net, of.columns, of.made)), of.numbers(net, of.made))


def clipped(net: Written, x: str, of: Sizes) -> str:
    return net.node("Clip", x, net.constant(-1.0), net.constant(1.0))


def convolution(net: Written, x: str, of: Sizes) -> str:
    weights = of.numbers(net, of.made, of.channels, 3, 3)
    return net.node("Relu", net.node("Conv", x, weights, of.numbers(net, of.made), pads=[1] * 4))


def depthwise(net: Written, x: str, of: Sizes) -> str:
    return net.node("Conv", x, of.numbers(net, of.channels, 1, 3, 3), pads=[1] * 4, group=of.channels)


MATRICES: dict[str, Made] = {
    "norm": norm,
    "sums": sums,
    "matmul": matmul,
    "clipped": clipped,
    "softmax": lambda net, x, of: net.node("Softmax", x, axis=-1),
    "mean": lambda net, x, of: net.node("ReduceMean", x, axes=[-1]),
    "transposed": lambda net, x, of: net.node("Transpose", x, perm=[0, 2, 1]),
    **{kind: lambda net, x, of, kind=kind: net.node(kind, x) for kind in ALONE},
}
IMAGES: dict[str, Made] = {
    "convolution": convolution,
    "depthwise": depthwise,
    "largest": lambda net, x, of: net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]),
    "average": lambda net, x, of: net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4),
}


def save_model(path: Path, seed: int) -> None:
    """A network of all operators, which have nothing to do with each other."""
    net, of = Written(), Sizes(seed)
    shapes = {**dict.fromkeys(MATRICES, of.matrix), **dict.fromkeys(IMAGES, of.image)}
    made = [make(net, name, of) for name, make in {**MATRICES, **IMAGES}.items()]
    results = {
        **shapes,
        "matmul": [1, of.rows, of.made],
        "mean": [1, of.rows, 1],
        "transposed": [1, of.columns, of.rows],
        "convolution": [1, of.made, of.side, of.side],
        "largest": [1, of.channels, of.side // 2, of.side // 2],
    }
    net.save(path, floats(shapes), floats({name: results[what] for what, name in zip(shapes, made, strict=True)}))


def layers(model: Path, toolchain: str) -> Iterator[tuple[str, int, int]]:
    """What each layer in C computes, its predicted and its counted cycles."""
    with TemporaryDirectory() as folder:
        options = api.Options(toolchain=toolchain, in_float=model.suffix == ".onnx")
        built = api.build(model, board=BOARD, output=Path(folder) / "out", options=options)
        ops = {op.name: op for op in built.net().ops}
        for layer in api.bench(built.folder, on="emulator", frames=1).layers:
            attributes = ops[layer.name].attributes
            if isinstance(attributes, TvmCode) and layer.cycles:
                yield attributes.what, layer.predicted_cycles, layer.cycles


def told(toolchain: str, models: Sequence[Callable[[Path], Path]]) -> Iterator[str]:
    found: dict[str, list[tuple[int, int]]] = {}
    with TemporaryDirectory() as folder:
        for model in models:
            for what, predicted, counted in layers(model(Path(folder)), toolchain):
                found.setdefault(what, []).append((predicted, counted))
    found["all"] = [each for of_one in found.values() for each in of_one]
    for what, pairs in found.items():
        predicted, counted = (sum(column) for column in zip(*pairs, strict=True))
        yield f"| {what} | {toolchain} | {predicted:,} | {counted:,} | {predicted / counted - 1:+.1%} |"


def written(seed: int, folder: Path) -> Path:
    path = folder / f"floats{seed}.onnx"
    save_model(path, seed)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=[4, 5])
    parser.add_argument("--toolchain", nargs="+", default=["gcc", "zig"])
    given = parser.parse_args()
    models = [lambda folder, path=path: path for path in given.models] or [
        partial(written, seed) for seed in given.seeds
    ]
    for toolchain in given.toolchain:
        for line in told(toolchain, models):
            print(line, flush=True)
    print(commit())


if __name__ == "__main__":
    main()
