"""Single-op nets of each kind in subgraph files, and whole nets fused to a single op."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npukit.net.net import Net, Op, fuse
from npukit.net.ops import (
    Add,
    Attributes,
    AveragePool,
    Concat,
    Conv2d,
    DepthwiseConv2d,
    Maximum,
    MaxPool,
    Mean,
    Minimum,
    Multiply,
    Pad,
    Requantize,
    Slice,
    Softmax,
    Subtract,
    Transpose,
)
from npukit.net.tensor import Quantization, Tensor
from plan.networks import Builder

IMAGE = (1, 7, 9, 6)
PLAIN, OTHER, SOFT = Quantization((0.05,), (3,)), Quantization((0.07,), (-9,)), Quantization((1 / 256,), (-128,))


def one_op(attributes: Attributes, shape: tuple[int, ...], known: Quantization = OTHER, operands: int = 1) -> Net:
    """A single-op net without weights."""
    names = tuple(f"x{index}" for index in range(operands))
    tensors = {name: Tensor(name, IMAGE, "int8", PLAIN) for name in names}
    tensors["y"] = Tensor("y", shape, "int8", known)
    return Net("one", names, ("y",), (Op("y", attributes, names, ("y",)),), tensors)


def filtered(attributes: Conv2d | DepthwiseConv2d, shape: tuple[int, ...], kernel: tuple[int, int]) -> Net:
    """A single-convolution net, plain or depthwise."""
    b = Builder("filtered", seed=4)
    depth = IMAGE[-1] if isinstance(attributes, Conv2d) else 1
    b.input(*IMAGE)
    mixes = isinstance(attributes, Conv2d)
    parts = b._filter((shape[-1], *kernel, depth) if mixes else (1, *kernel, shape[-1]), shape[-1])
    return b.net(b._op(attributes, ("input0", *parts), shape, "cpu"))


NETS: Mapping[str, Net] = {
    "add": one_op(Add(), IMAGE, operands=2),
    "subtract": one_op(Subtract(), IMAGE, operands=2),
    "multiply, clamped": one_op(Multiply((-100, 77)), IMAGE, operands=2),
    "minimum": one_op(Minimum(), IMAGE, PLAIN, operands=2),
    "maximum": one_op(Maximum(), IMAGE, PLAIN, operands=2),
    "concat": one_op(Concat(3), (1, 7, 9, 12), PLAIN, operands=2),
    "requantize": one_op(Requantize(), IMAGE),
    "softmax": one_op(Softmax(), IMAGE, SOFT),
    "mean": one_op(Mean((1, 2)), (1, 1, 1, 6)),
    "transpose": one_op(Transpose((0, 3, 1, 2)), (1, 6, 7, 9), PLAIN),
    "pad": one_op(Pad((0, 1, 0, 2), (0, 0, 3, 1), -7), (1, 8, 12, 9), PLAIN),
    "slice": one_op(Slice((0, 1, 2, 0), (1, 7, 9, 5), (1, 2, 3, 1)), (1, 3, 3, 5), PLAIN),
    "average pool, the same size": one_op(AveragePool((3, 3), (1, 1), (1, 1, 1, 1)), IMAGE, PLAIN),
    "max pool, padded on one side": one_op(MaxPool((2, 2), (2, 2), (1, 0, 0, 1)), (1, 4, 5, 6), PLAIN),
    "convolution, valid": filtered(Conv2d((2, 2)), (1, 3, 4, 5), (3, 3)),
    "convolution, the same size": filtered(Conv2d((1, 1), (1, 1, 1, 1)), (1, 7, 9, 5), (3, 3)),
    "convolution, padded on one side, dilated": filtered(Conv2d((1, 1), (2, 0, 0, 2), (2, 2)), (1, 5, 7, 5), (3, 3)),
    "convolution, relu6": filtered(Conv2d((1, 1), clamp=(3, 123)), (1, 7, 9, 5), (1, 1)),
    "convolution, clamped otherwise": filtered(Conv2d((1, 1), clamp=(-20, 30)), (1, 7, 9, 5), (1, 1)),
    "depthwise": filtered(DepthwiseConv2d((2, 2), (1, 1, 1, 1)), (1, 4, 5, 6), (3, 3)),
    "depthwise, multiplied": filtered(DepthwiseConv2d((1, 1)), (1, 5, 7, 12), (3, 3)),
}


def whole(net: Net) -> Op:
    return fuse([replace(op, engine="cpu") for each in net.ops for op in each.parts], whole=True)
