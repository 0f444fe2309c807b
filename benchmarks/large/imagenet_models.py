"""Write the large networks of the mesh's benchmarks, int8 in ONNX's QDQ form, with random weights.

    python benchmarks/large/imagenet_models.py FOLDER [mobilenet_v1 | mobilenet_v2 | resnet50 ...]

The weights are drawn from a fixed seed (He's variance). Scales come from one random image run in float, so values fill
their range and a wrong number shows. Beside each model lies `NAME.npz` with a few random inputs, `in0`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.transformers.written_onnx import Written, floats

SIDE = 224
CLASSES = 1000
IMAGES = 4
SEED = 20


class Network(Written):
    """A float ONNX graph under construction. Every method adds nodes and returns the name of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.random = np.random.default_rng(SEED)
        self.channels = {"image": 3}

    def conv(self, x: str, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, clip: bool = False) -> str:
        """Convolution with bias. `clip` adds the ReLU6 of the MobileNets."""
        depth = self.channels[x] // groups
        weight = self._drawn(np.sqrt(2 / (depth * kernel * kernel)), (out, depth, kernel, kernel))
        bias = self._drawn(0.1, (out,))
        before = 0 if kernel == 3 and stride == 2 else kernel // 2
        pads = [before, before, kernel // 2, kernel // 2]
        name = self.node("Conv", x, weight, bias, pads=pads, strides=[stride, stride], group=groups)
        self.channels[name] = out
        return self._same("Clip", name, self.constant(0), self.constant(6)) if clip else name

    def relu(self, x: str) -> str:
        return self._same("Relu", x)

    def add(self, a: str, b: str) -> str:
        return self._same("Add", a, b)

    def max_pool(self, x: str) -> str:
        return self._same("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])

    def classes(self, x: str) -> str:
        """Global average pool and the dense layer of `CLASSES` classes."""
        pooled = self.node("Flatten", self._same("GlobalAveragePool", x))
        weight = self._drawn(np.sqrt(1 / self.channels[x]), (self.channels[x], CLASSES))
        return self.node("Gemm", pooled, weight, self.constant(np.zeros(CLASSES)))

    def _same(self, kind: str, x: str, *others: str, **attributes: Any) -> str:
        name = self.node(kind, x, *others, **attributes)
        self.channels[name] = self.channels[x]
        return name

    def _drawn(self, deviation: float, shape: tuple[int, ...]) -> str:
        return self.constant(self.random.normal(0, deviation, shape))


def mobilenet_v1(net: Network) -> str:
    x = net.conv("image", 32, 3, stride=2, clip=True)
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for out, stride in steps:
        x = net.conv(x, net.channels[x], 3, stride, groups=net.channels[x], clip=True)
        x = net.conv(x, out, clip=True)
    return net.classes(x)


def mobilenet_v2(net: Network) -> str:
    x = net.conv("image", 32, 3, stride=2, clip=True)
    blocks = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for widen, out, repeat, stride in blocks:
        for step in range(repeat):
            x = inverted(net, x, widen, out, stride if step == 0 else 1)
    return net.classes(net.conv(x, 1280, clip=True))


def inverted(net: Network, x: str, widen: int, out: int, stride: int) -> str:
    inner = net.channels[x] * widen
    y = net.conv(x, inner, clip=True) if widen > 1 else x
    y = net.conv(net.conv(y, inner, 3, stride, groups=inner, clip=True), out)
    return net.add(x, y) if stride == 1 and net.channels[x] == out else y


def resnet50(net: Network) -> str:
    x = net.max_pool(net.relu(net.conv("image", 64, 7, stride=2)))
    for inner, repeat, stride in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]:
        for step in range(repeat):
            x = _bottleneck(net, x, inner, stride if step == 0 else 1)
    return net.classes(x)


def _bottleneck(net: Network, x: str, inner: int, stride: int) -> str:
    y = net.relu(net.conv(x, inner))
    y = net.conv(net.relu(net.conv(y, inner, 3, stride)), 4 * inner)
    skip = x if net.channels[x] == 4 * inner else net.conv(x, 4 * inner, stride=stride)
    return net.relu(net.add(skip, y))


NETWORKS: dict[str, Callable[[Network], str]] = {
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
}


class OneImage(CalibrationDataReader):
    """Calibration data: the one random image."""

    def __init__(self, image: np.ndarray) -> None:
        self.images = iter([{"image": image}])

    def get_next(self) -> dict[str, np.ndarray]:
        return next(self.images, {})


def write(name: str, folder: Path) -> Path:
    """Write a network in int8 as `folder/name.onnx` and inputs as `folder/name.npz`; return the path of the model."""
    net, unquantized, path = Network(), folder / f"{name}_float.onnx", folder / f"{name}.onnx"
    net.save(unquantized, floats({"image": [1, 3, SIDE, SIDE]}), floats({NETWORKS[name](net): [1, CLASSES]}))
    images = np.random.default_rng(SEED + 1).normal(0, 1, (IMAGES, 1, 3, SIDE, SIDE)).astype(np.float32)
    quantize_static(
        unquantized,
        path,
        OneImage(images[0]),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )
    unquantized.unlink()
    np.savez(folder / f"{name}.npz", in0=images)
    return path


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        print(write(name, folder))


if __name__ == "__main__":
    main()
