"""Networks for the planner's tests: random weights, realistic shapes."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    AveragePool,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    MaxPool,
    Mean,
    Padding,
    Pair,
    Reshape,
    Softmax,
    Transpose,
)
from npukit.net.tensor import Quantization, Tensor


@dataclass
class Builder:
    """Appends ops to a net. Each method takes and returns the name of a tensor."""

    name: str
    seed: int = 0
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def input(self, *shape: int) -> str:
        name = f"input{len(self.inputs)}"
        self.inputs.append(name)
        return self._tensor(name, shape, 0.05)

    def conv(
        self, source: str, channels: int, kernel: Pair | int = 1, stride: int = 1, engine: str = "mac_array"
    ) -> str:
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        _, height, width, depth = self.tensors[source].shape
        (h, top, bottom), (w, left, right) = _same(height, kernel[0], stride), _same(width, kernel[1], stride)
        attributes = Conv2d((stride, stride), (top, left, bottom, right))
        parts = self._filter((channels, *kernel, depth), channels)
        return self._op(attributes, (source, *parts), (1, h, w, channels), engine)

    def depthwise(self, source: str, kernel: int = 3, stride: int = 1) -> str:
        _, height, width, channels = self.tensors[source].shape
        (h, top, bottom), (w, left, right) = _same(height, kernel, stride), _same(width, kernel, stride)
        attributes = DepthwiseConv2d((stride, stride), (top, left, bottom, right))
        parts = self._filter((1, kernel, kernel, channels), channels)
        return self._op(attributes, (source, *parts), (1, h, w, channels), "mac_array")

    def dense(self, source: str, outputs: int) -> str:
        depth = self.tensors[source].shape[-1]
        parts = self._filter((outputs, depth), outputs)
        return self._op(Dense(), (source, *parts), (*self.tensors[source].shape[:-1], outputs), "mac_array")

    def add(self, first: str, second: str) -> str:
        return self._op(Add(), (first, second), self.tensors[first].shape, "mac_array")

    def pool(self, source: str, window: int, stride: int, *, maximum: bool = False) -> str:
        _, height, width, channels = self.tensors[source].shape
        (h, top, bottom), (w, left, right) = _same(height, window, stride), _same(width, window, stride)
        kind = MaxPool if maximum else AveragePool
        padding: Padding = (top, left, bottom, right)
        attributes = kind((window, window), (stride, stride), padding)
        return self._op(attributes, (source,), (1, h, w, channels), "mac_array")

    def global_pool(self, source: str) -> str:
        _, height, width, channels = self.tensors[source].shape
        attributes = AveragePool((height, width), (height, width))
        return self._op(attributes, (source,), (1, 1, 1, channels), "mac_array")

    def mean(self, source: str) -> str:
        channels = self.tensors[source].shape[-1]
        return self._op(Mean((1, 2)), (source,), (1, 1, 1, channels), "mac_array", scale=0.02)

    def flatten(self, source: str) -> str:
        return self._op(Reshape(), (source,), (1, self.tensors[source].elements), "cpu")

    def reshape(self, source: str, *shape: int) -> str:
        return self._op(Reshape(), (source,), shape, "cpu")

    def softmax(self, source: str) -> str:
        return self._op(Softmax(), (source,), self.tensors[source].shape, "cpu", scale=1 / 256, zero=-128)

    def pixels(self, source: str) -> str:
        """Convert an image from planes (NCHW) to pixels (NHWC)."""
        batch, channels, height, width = self.tensors[source].shape
        return self._op(Transpose((0, 2, 3, 1)), (source,), (batch, height, width, channels), "cpu")

    def net(self, *outputs: str) -> Net:
        return Net(self.name, tuple(self.inputs), outputs, tuple(self.ops), self.tensors, self.constants)

    def _op(
        self,
        attributes: Attributes,
        inputs: tuple[str, ...],
        shape: tuple[int, ...],
        engine: str,
        scale: float = 0.05,
        zero: int = 3,
    ) -> str:
        name = f"{attributes.kind}{len(self.ops)}"
        same = attributes.kind in ("average_pool", "max_pool", "reshape", "transpose")
        output = self._tensor(f"{name}_out", shape, scale, zero)
        if same:
            self.tensors[output] = Tensor(output, shape, "int8", self.tensors[inputs[0]].quantization)
        self.ops.append(Op(name, attributes, inputs, (output,), engine))
        return output

    def _tensor(self, name: str, shape: tuple[int, ...], scale: float, zero: int = 3) -> str:
        self.tensors[name] = Tensor(name, tuple(shape), "int8", Quantization((scale,), (zero,)))
        return name

    def _filter(self, shape: tuple[int, ...], channels: int) -> tuple[str, str]:
        weights, bias = f"weights{len(self.ops)}", f"bias{len(self.ops)}"
        axis = 3 if shape[0] == 1 and len(shape) == 4 and shape[3] == channels else 0
        scales = tuple(float(s) for s in self.random.uniform(0.001, 0.004, channels))
        self.constants[weights] = self.random.integers(-127, 128, shape, np.int8)
        self.constants[bias] = self.random.integers(-500, 500, channels, np.int32)
        self.tensors[weights] = Tensor(weights, shape, "int8", Quantization(scales, (0,) * channels, axis))
        self.tensors[bias] = Tensor(bias, (channels,), "int32")
        return weights, bias


def _same(size: int, kernel: int, stride: int) -> tuple[int, int, int]:
    """Output size, and padding before and after, for TFLite's SAME."""
    out = ceil(size / stride)
    total = max((out - 1) * stride + kernel - size, 0)
    return out, total // 2, total - total // 2


def small_net() -> Net:
    b = Builder("small")
    x = b.conv(b.input(1, 12, 12, 4), 32, 3)
    x = b.add(b.conv(x, 32, 3), x)
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 6)))


def keyword_net() -> Net:
    """The shape of MLPerf Tiny's keyword spotting."""
    b = Builder("kws")
    x = b.conv(b.input(1, 49, 10, 1), 64, (10, 4), 2)
    for _ in range(4):
        x = b.conv(b.depthwise(x), 64)
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 12)))


def image_net() -> Net:
    """The shape of MLPerf Tiny's image classification."""
    b = Builder("ic")
    x = b.conv(b.input(1, 32, 32, 3), 16, 3)
    x = b.add(x, b.conv(b.conv(x, 16, 3), 16, 3))
    for channels in (32, 64):
        y = b.conv(b.conv(x, channels, 3, 2), channels, 3)
        x = b.add(b.conv(x, channels, 1, 2), y)
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 10)))


def mobile_net(name: str, size: int, width: float, classes: int) -> Net:
    """MobileNetV1 for an image of `size` pixels squared, with `width` as channel multiplier."""
    b = Builder(name)

    def channels(count: int) -> int:
        return max(8, int(count * width))

    x = b.conv(b.input(1, size, size, 3), channels(32), 3, 2)
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for count, stride in plan:
        x = b.conv(b.depthwise(x, 3, stride), channels(count))
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), classes)))


def wake_word_net() -> Net:
    """The shape of MLPerf Tiny's visual wake words."""
    return mobile_net("vww", 96, 0.25, 2)


def autoencoder() -> Net:
    """The shape of MLPerf Tiny's anomaly detection."""
    b = Builder("ad")
    x = b.input(1, 640)
    for outputs in (128, 128, 128, 128, 8, 128, 128, 128, 128, 640):
        x = b.dense(x, outputs)
    return b.net(x)


def small_mobilenet() -> Net:
    """A MobileNet whose constants and activations exceed the memory of a PE."""
    b = Builder("mobilenet")
    x = b.conv(b.input(1, 40, 40, 3), 16, 3, 2)
    for channels, stride in ((64, 1), (128, 2), (256, 2), (1280, 2)):
        x = b.conv(b.depthwise(x, 3, stride), channels, 1)
    return b.net(b.dense(b.flatten(b.mean(x)), 100))
