"""Small single-op nets, for tests of engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add, AveragePool, Conv2d, Dense, DepthwiseConv2d
from npukit.net.tensor import Quantization, Tensor

ACTIVATION = Quantization((0.05,), (3,))
OUTPUT = Quantization((0.11,), (-7,))


def filter_net(op: Op, shape: tuple[int, ...], result: tuple[int, ...], weights: np.ndarray, bias: np.ndarray) -> Net:
    """A single-op net with weights and bias. Per-channel scales differ."""
    axis = 3 if op.kind == DepthwiseConv2d.kind else 0
    scales = tuple(float(s) for s in np.linspace(0.001, 0.02, weights.shape[axis]))
    tensors = [
        Tensor("x", shape, "int8", ACTIVATION),
        Tensor("w", weights.shape, "int8", Quantization(scales, (0,) * len(scales), axis)),
        Tensor("b", bias.shape, "int32", Quantization(scales, (0,) * len(scales), 0)),
        Tensor("y", result, "int8", OUTPUT),
    ]
    return Net("one", ("x",), ("y",), (op,), {t.name: t for t in tensors}, {"w": weights, "b": bias})


def conv(height: int, width: int, cin: int, cout: int, kernel: int = 3, *, seed: int = 0, bias: int = 2000) -> Net:
    """A convolution of stride 1; height and width stay the same."""
    rng = np.random.default_rng(seed)
    pad = kernel // 2
    op = Op("conv", Conv2d(padding=(pad, pad, pad, pad)), ("x", "w", "b"), ("y",))
    weights = rng.integers(-127, 128, (cout, kernel, kernel, cin)).astype(np.int8)
    biases = rng.integers(-bias, bias, cout).astype(np.int32)
    return filter_net(op, (1, height, width, cin), (1, height, width, cout), weights, biases)


def depthwise(height: int, width: int, channels: int) -> Net:
    rng = np.random.default_rng(1)
    op = Op("dw", DepthwiseConv2d(padding=(1, 1, 1, 1)), ("x", "w", "b"), ("y",))
    weights = rng.integers(-127, 128, (1, 3, 3, channels)).astype(np.int8)
    shape = (1, height, width, channels)
    return filter_net(op, shape, shape, weights, np.zeros(channels, np.int32))


def dense(depth: int, units: int) -> Net:
    rng = np.random.default_rng(2)
    op = Op("fc", Dense(), ("x", "w", "b"), ("y",))
    weights = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    return filter_net(op, (1, depth), (1, units), weights, np.zeros(units, np.int32))


def add(height: int, width: int, channels: int) -> Net:
    shape = (1, height, width, channels)
    op = Op("sum", Add(), ("a", "b"), ("y",))
    tensors = [Tensor(n, shape, "int8", q) for n, q in (("a", ACTIVATION), ("b", OUTPUT), ("y", OUTPUT))]
    return Net("one", ("a", "b"), ("y",), (op,), {t.name: t for t in tensors})


def add_constant(shape: tuple[int, ...], *, first: bool = False) -> Net:
    """The sum of an input and a constant; `first` puts the constant first."""
    op = Op("sum", Add((-100, 90)), ("c", "a") if first else ("a", "c"), ("y",))
    tensors = [Tensor(n, shape, "int8", q) for n, q in (("a", ACTIVATION), ("c", OUTPUT), ("y", OUTPUT))]
    values = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    return Net("one", ("a",), ("y",), (op,), {t.name: t for t in tensors}, {"c": values})


def pool(height: int, width: int, channels: int, *, output: Quantization = ACTIVATION) -> Net:
    op = Op("pool", AveragePool((height, width)), ("x",), ("y",))
    tensors = [
        Tensor("x", (1, height, width, channels), "int8", ACTIVATION),
        Tensor("y", (1, 1, 1, channels), "int8", output),
    ]
    return Net("one", ("x",), ("y",), (op,), {t.name: t for t in tensors})


def loud(net: Net, seed: int = 0) -> Net:
    """The same filter with weights of 127 and -127, and scales at which sums still change the output."""
    weights = np.where(np.random.default_rng(seed).integers(0, 2, net.constants["w"].shape) == 0, 127, -127)
    depth = weights.size // net.tensor("y").shape[-1]
    scales = tuple(0.05 / depth * factor for factor in np.linspace(0.1, 1, weights.shape[0]))
    tensor = replace(net.tensor("w"), quantization=Quantization(scales, (0,) * len(scales), 0))
    constants = {**net.constants, "w": weights.astype(np.int8)}
    return replace(net, tensors={**net.tensors, "w": tensor}, constants=constants)
