"""Vision transformers as PyTorch exports them to ONNX: norms, GELU and attention in small ops, weights from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Sizes:
    """An image of `side` x `side` pixels in square patches, numbers per token, heads, blocks, and usual figures of
    small transformers. A feed-forward layer has `widen` times as many numbers as a token."""

    side: int
    width: int
    heads: int
    blocks: int = 2
    patch: int = 2
    channels: int = 1
    widen: int = 2
    classes: int = 10

    @property
    def tokens(self) -> int:
        return (self.side // self.patch) ** 2

    @property
    def image(self) -> tuple[int, int, int, int]:
        return 1, self.channels, self.side, self.side


@dataclass
class Network:
    """Nodes in order of creation; each method returns the name of its result."""

    random: np.random.Generator
    sizes: Sizes
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.random.normal(size=shape) / np.sqrt(np.prod(shape[1:]) or 1))

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        product = self.node("MatMul", x, self.constant(self.random.normal(size=(inputs, outputs)) / np.sqrt(inputs)))
        return self.node("Add", self.constant(self.random.normal(size=outputs) / 4), product)

    def norm(self, x: str) -> str:
        centred = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", centred, self.constant(2)), axes=[-1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.constant(1e-5)))
        scales, shifts = 1 + self.random.normal(size=(2, self.sizes.width)) / 8
        scaled = self.node("Mul", self.node("Div", centred, deviation), self.constant(scales))
        return self.node("Add", scaled, self.constant(shifts - 1))

    def gelu(self, x: str) -> str:
        error = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", error, self.constant(1))), self.constant(0.5))

    def heads(self, x: str, order: list[int]) -> str:
        shape = [1, self.sizes.tokens, self.sizes.heads, self.sizes.width // self.sizes.heads]
        split = self.node("Reshape", x, self.constant(shape, "int64"))
        return self.node("Transpose", split, perm=order)

    def attention(self, x: str) -> str:
        width = self.sizes.width
        query, key, value = (
            self.heads(self.dense(x, width, width), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = self.node("Div", self.node("MatMul", query, key), self.constant(np.sqrt(width / self.sizes.heads)))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), value)
        joined = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        flat = self.node("Reshape", joined, self.constant([1, self.sizes.tokens, width], "int64"))
        return self.dense(flat, width, width)

    def block(self, x: str) -> str:
        width, x = self.sizes.width, self.node("Add", x, self.attention(self.norm(x)))
        wide = self.sizes.widen * width
        inner = self.gelu(self.dense(self.norm(x), width, wide))
        return self.node("Add", x, self.dense(inner, wide, width))

    def tokens(self, image: str) -> str:
        width, tokens, window = self.sizes.width, self.sizes.tokens, [self.sizes.patch] * 2
        weights = self.weights(width, self.sizes.channels, *window)
        patches = self.node("Conv", image, weights, kernel_shape=window, strides=window)
        flat = self.node("Reshape", patches, self.constant([1, width, tokens], "int64"))
        return self.node("Add", self.node("Transpose", flat, perm=[0, 2, 1]), self.weights(1, tokens, width))


def save_model(path: Path, sizes: Sizes) -> None:
    net = Network(np.random.default_rng(11), sizes)
    tokens = net.tokens("image")
    for _ in range(sizes.blocks):
        tokens = net.block(tokens)
    scores = net.dense(net.node("ReduceMean", net.norm(tokens), axes=[1], keepdims=0), sizes.width, sizes.classes)
    ends = [helper.make_tensor_value_info("image", TensorProto.FLOAT, sizes.image)]
    results = [helper.make_tensor_value_info(scores, TensorProto.FLOAT, (1, sizes.classes))]
    graph = helper.make_graph(net.nodes, "vit", ends, results, net.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def save_samples(path: Path, sizes: Sizes, count: int = 40) -> None:
    """Images for calibration."""
    images = np.random.default_rng(12).normal(size=(count, *sizes.image))
    np.savez(path, in0=images.astype(np.float32))
