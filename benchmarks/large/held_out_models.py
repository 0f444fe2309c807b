"""Write networks for which nothing was tuned, drawn from a seed, int8 in ONNX's QDQ form.

    python benchmarks/large/held_out_models.py FOLDER [resnet | inverted | plain] SEED [MMACS]

Depth, widths, strides and the image's side are drawn until a frame takes `MMACS` million MACs (default 76) within a
tenth. `benchmarks/large/whole_board.py FOLDER/*.onnx --preprocess layout=NHWC` then plans and builds the networks for
7296 PEs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from imagenet_models import Network, inverted, quantized

SIDES = (32, 48, 64, 80, 96, 128)
STAGES = (2, 3, 4)
DEEPEST = 7
WIDTHS = (16, 24, 32, 40, 48, 64)
TRIES = 10_000


def resnet(net: Network, draw: np.random.Generator) -> None:
    """Stages of basic blocks. Each stage is twice as wide and half as high as the previous one."""
    x = net.relu(net.conv("image", int(draw.choice(WIDTHS)), 3))
    for stage in range(draw.choice(STAGES)):
        width = net.channels[x] * (2 if stage else 1)
        for block in range(draw.integers(1, DEEPEST)):
            x = _basic(net, x, width, 2 if stage and not block else 1)
    net.classes(x)


def _basic(net: Network, x: str, width: int, stride: int) -> str:
    y = net.conv(net.relu(net.conv(x, width, 3, stride)), width, 3)
    skip = x if net.channels[x] == width and stride == 1 else net.conv(x, width, stride=stride)
    return net.relu(net.add(skip, y))


def inverted_residuals(net: Network, draw: np.random.Generator) -> None:
    """Inverted residuals of drawn widths, as in MobileNetV2."""
    x = net.conv("image", int(draw.choice(WIDTHS)), 3, stride=2, clip=True)
    for _ in range(draw.choice(STAGES)):
        out = int(draw.choice(WIDTHS)) + net.channels[x] // 2
        for block in range(draw.integers(1, DEEPEST)):
            x = inverted(net, x, int(draw.choice((2, 4, 6))), out, 1 if block else 2)
    net.classes(net.conv(x, 4 * net.channels[x], clip=True))


def plain(net: Network, draw: np.random.Generator) -> None:
    """Convolutions in sequence, as in VGG."""
    x = "image"
    for stage in range(draw.choice(STAGES)):
        width = int(draw.choice(WIDTHS)) * 2**stage
        for block in range(draw.integers(1, DEEPEST)):
            x = net.relu(net.conv(x, width, 3, 2 if stage and not block else 1))
    net.classes(x)


FAMILIES: dict[str, Callable[[Network, np.random.Generator], None]] = {
    "resnet": resnet,
    "inverted": inverted_residuals,
    "plain": plain,
}


class Sketch(Network):
    """A network without weights, to count MACs."""

    def _drawn(self, name: str, deviation: float, shape: tuple[int, ...]) -> str:
        del deviation, shape
        return name


def drawn(family: str, seed: int, mmacs: float) -> Network:
    """The seed's first network with `mmacs` million MACs, within a tenth."""
    for attempt in range(TRIES):
        sketch = _of_kind(Sketch, family, (seed, attempt))
        if abs(sketch.macs / 1e6 / mmacs - 1) < 0.1:
            return _of_kind(Network, family, (seed, attempt))
    raise SystemExit(f"seed {seed} draws no {family} of {mmacs} million MACs in {TRIES:,} tries")


def _of_kind(kind: type[Network], family: str, seeds: tuple[int, int]) -> Network:
    draw = np.random.default_rng(seeds)
    net = kind(side=int(draw.choice(SIDES)))
    FAMILIES[family](net, draw)
    return net


def main() -> None:
    folder, family, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    net = drawn(family, seed, float(sys.argv[4]) if len(sys.argv) > 4 else 76)
    path = quantized(net, f"{family}_{seed}", folder)
    print(f"{path}: {net.macs / 1e6:.1f} million MACs, {len(net.nodes)} nodes, side {net.side}")


if __name__ == "__main__":
    main()
