"""Language models in ONNX as exporters write them, a token per frame: LLaMA's blocks, weights from a seed.

The inputs are a token's embedding, the cosines and sines of its position, the mask of the tokens not yet seen, and the
token's slot among the kept tokens. Keys and values of the last tokens are states: each frame overwrites the oldest
token's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

UNSEEN = -16.0
"""Mask value added to the score of an absent token."""


@dataclass(frozen=True)
class Sizes:
    """Numbers per token, heads, numbers in the feed-forward layer, blocks, tokens within attention's reach.

    `shared`: heads with the same keys and values; above 1, grouped-query attention.
    """

    width: int
    heads: int
    wide: int
    blocks: int
    tokens: int
    shared: int = 1

    @property
    def head(self) -> int:
        return self.width // self.heads

    @property
    def groups(self) -> int:
        return self.heads // self.shared

    @property
    def weights(self) -> int:
        """All weights of the blocks' dense layers."""
        return self.blocks * self.width * (2 * self.width + 2 * self.groups * self.head + 3 * self.wide)


@dataclass
class Network:
    """Nodes in order of creation; each method returns the name of the new result."""

    random: np.random.Generator
    sizes: Sizes
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    states: dict[str, tuple[str, list[int]]] = field(default_factory=dict)
    """The next output and the shape of each state."""

    def constant(self, value: Any, dtype: str = "float32") -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        weights = self.random.normal(size=(inputs, outputs)) / np.sqrt(inputs)
        return self.node("MatMul", x, self.constant(weights))

    def norm(self, x: str) -> str:
        square = self.node("ReduceMean", self.node("Pow", x, self.constant(2)), axes=[-1])
        root = self.node("Sqrt", self.node("Add", square, self.constant(1e-5)))
        scaled = self.node("Mul", x, self.node("Reciprocal", root))
        return self.node("Mul", self.constant(1 + self.random.normal(size=self.sizes.width) / 8), scaled)

    def slice(self, x: str, begin: int, end: int, axis: int) -> str:
        return self.node("Slice", x, *(self.constant([value], "int64") for value in (begin, end, axis)))

    def heads(self, x: str, shared: int) -> str:
        shape = [1, self.sizes.groups, shared, self.sizes.head]
        return self.node("Reshape", x, self.constant(shape, "int64"))

    def rotated(self, x: str) -> str:
        half = self.sizes.head // 2
        first, second = (self.slice(x, begin, begin + half, 3) for begin in (0, half))
        turned = self.node("Concat", self.node("Neg", second), first, axis=3)
        return self.node("Add", self.node("Mul", x, "cos"), self.node("Mul", turned, "sin"))

    def kept(self, name: str, new: str, shape: list[int]) -> str:
        """The state with `new` in the current slot of axis 2."""
        written = self.node("Where", "slot", new, name)
        self.states[name] = (written, shape)
        return written

    def attention(self, x: str, block: int, mask: str) -> str:
        sizes = self.sizes
        query, key, value = (
            self.heads(self.dense(x, sizes.width, sizes.groups * count * sizes.head), count)
            for count in (sizes.shared, 1, 1)
        )
        shape = [1, sizes.groups, sizes.tokens, sizes.head]
        keys = self.kept(f"keys{block}", self.rotated(key), shape)
        values = self.kept(f"values{block}", value, shape)
        scores = self.node("MatMul", self.rotated(query), self.node("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.constant(1 / np.sqrt(sizes.head)))
        mixed = self.node("MatMul", self.node("Softmax", self.node("Add", scores, mask), axis=-1), values)
        flat = self.node("Reshape", mixed, self.constant([1, 1, sizes.width], "int64"))
        return self.dense(flat, sizes.width, sizes.width)

    def gated(self, x: str) -> str:
        sizes = self.sizes
        gate, up = (self.dense(x, sizes.width, sizes.wide) for _ in range(2))
        silu = self.node("Mul", gate, self.node("Sigmoid", gate))
        return self.dense(self.node("Mul", silu, up), sizes.wide, sizes.width)

    def block(self, x: str, number: int, mask: str) -> str:
        x = self.node("Add", x, self.attention(self.norm(x), number, mask))
        return self.node("Add", x, self.gated(self.norm(x)))


def save_model(path: Path, sizes: Sizes) -> dict[str, str]:
    """Save the model. Returns each state's input name with its output name."""
    net = Network(np.random.default_rng(21), sizes)
    x = "token"
    for number in range(sizes.blocks):
        x = net.block(x, number, "mask")
    x = net.norm(x)
    shapes = {"token": [1, 1, sizes.width], "cos": [1, 1, 1, sizes.head], "sin": [1, 1, 1, sizes.head]}
    shapes["mask"] = [1, 1, 1, sizes.tokens]
    slot = helper.make_tensor_value_info("slot", TensorProto.BOOL, [1, 1, sizes.tokens, 1])
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (*shapes.items(), *((name, shape) for name, (_, shape) in net.states.items()))
    ]
    inputs.insert(len(shapes), slot)
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in ((x, [1, 1, sizes.width]), *net.states.values())
    ]
    graph = helper.make_graph(net.nodes, "llama", inputs, outputs, net.constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return {name: output for name, (output, _) in net.states.items()}


def position(number: int, sizes: Sizes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The cosines, sines, mask and slot of token `number`."""
    half = number / 10000 ** (np.arange(0, sizes.head, 2) / sizes.head)
    angles = np.concatenate([half, half]).astype(np.float32)
    slots = np.arange(sizes.tokens)
    mask = np.where(slots > number, UNSEEN, 0).astype(np.float32)
    return np.cos(angles), np.sin(angles), mask, slots == number % sizes.tokens


def save_samples(path: Path, sizes: Sizes, count: int = 16) -> None:
    """A stream of tokens for calibration."""
    tokens = np.random.default_rng(22).normal(size=(count, 1, 1, sizes.width))
    cosines, sines, masks, slots = map(np.stack, zip(*(position(n, sizes) for n in range(count)), strict=True))
    of_one_row = [each[:, None, None, None] for each in (cosines, sines, masks)]
    arrays = [tokens.astype(np.float32), *of_one_row, slots[:, None, None, :, None]]
    np.savez(path, **{f"in{n}": array for n, array in enumerate(arrays)})  # pyright: ignore[reportArgumentType]
