"""SmolLM2 as an ONNX network of one token a frame: real weights, keys and values of the last tokens as states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from benchmarks.transformers.package import Model
from benchmarks.transformers.written_onnx import Written, floats
from onnx import TensorProto, helper

UNSEEN = -16.0
"""Value of the mask for an absent token, added to its score."""
LEAST = 2.0**-20
Inputs = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; `tokens`: the tokens within attention."""

    width: int
    heads: int
    groups: int
    wide: int
    blocks: int
    tokens: int
    base: float
    epsilon: float

    @property
    def head(self) -> int:
        return self.width // self.heads


def shape_of(model: Model, tokens: int, blocks: int | None = None) -> Shape:
    told = model.size
    heads, groups = (int(told(f"attention.head_count{end}")) for end in ("", "_kv"))
    width, wide = int(told("embedding_length")), int(told("feed_forward_length"))
    base, epsilon = float(told("rope.freq_base")), float(told("attention.layer_norm_rms_epsilon"))
    return Shape(width, heads, groups, wide, blocks or int(told("block_count")), tokens, base, epsilon)


@dataclass
class Network(Written):
    """SmolLM2, layer by layer."""

    weights: Mapping[str, np.ndarray]
    shape: Shape
    states: dict[str, str] = field(default_factory=dict)
    """The output that replaces each state, by the state's input."""

    def dense(self, x: str, name: str) -> str:
        return self.node("MatMul", x, self.constant(self.weights[f"{name}.weight"].T))

    def norm(self, x: str, name: str) -> str:
        square = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1])
        root = self.node("Sqrt", self.node("Add", square, self.constant(self.shape.epsilon)))
        return self.node("Mul", self.node("Div", x, root), self.constant(self.weights[f"{name}.weight"]))

    def slice(self, x: str, begin: int, end: int, axis: int) -> str:
        return self.node("Slice", x, *(self.constant([value], "int64") for value in (begin, end, axis)))

    def heads(self, x: str, shared: int) -> str:
        sizes = [1, self.shape.groups, shared, self.shape.head]
        return self.node("Reshape", x, self.constant(sizes, "int64"))

    def rotated(self, x: str) -> str:
        half = self.shape.head // 2
        first, second = (self.slice(x, begin, begin + half, 3) for begin in (0, half))
        turned = self.node("Concat", self.node("Neg", second), first, axis=3)
        return self.node("Add", self.node("Mul", x, "cos"), self.node("Mul", turned, "sin"))

    def kept(self, name: str, new: str) -> str:
        """The state `name` with `new` in the current slot."""
        self.states[name] = self.node("Where", "slot", new, name)
        return self.states[name]

    def attention(self, x: str, number: int) -> str:
        block, shape, shared = f"blk.{number}", self.shape, self.shape.heads // self.shape.groups
        query, key, value = (
            self.heads(self.dense(x, f"{block}.attn_{end}"), count)
            for end, count in zip("qkv", (shared, 1, 1), strict=True)
        )
        keys, values = self.kept(f"keys_{number}", self.rotated(key)), self.kept(f"values_{number}", value)
        scaled = self.node("Mul", self.rotated(query), self.constant(shape.head**-0.5))
        scores = self.node("MatMul", scaled, self.node("Transpose", keys, perm=[0, 1, 3, 2]))
        mixed = self.node("MatMul", self.node("Softmax", self.node("Add", scores, "mask"), axis=-1), values)
        flat = self.node("Reshape", mixed, self.constant([1, 1, shape.width], "int64"))
        return self.dense(flat, f"{block}.attn_output")

    def gated(self, x: str, block: str) -> str:
        gate, up = (self.dense(x, f"{block}.ffn_{end}") for end in ("gate", "up"))
        silu = self.node("Mul", gate, self.node("Sigmoid", gate))
        return self.by_rows(self.node("Mul", silu, up), f"{block}.ffn_down")

    def by_rows(self, x: str, name: str) -> str:
        """A dense layer of a token's numbers divided by their largest magnitude, then multiplied by it. Magnitudes
        differ a hundredfold between tokens."""
        largest = self.node("Max", self.node("ReduceMax", self.node("Abs", x), axes=[-1]), self.constant(LEAST))
        return self.node("Mul", self.dense(self.node("Div", x, largest), name), largest)

    def block(self, x: str, number: int) -> str:
        block = f"blk.{number}"
        x = self.node("Add", x, self.attention(self.norm(x, f"{block}.attn_norm"), number))
        return self.node("Add", x, self.gated(self.norm(x, f"{block}.ffn_norm"), block))


def save_model(path: Path, model: Model, shape: Shape, *, head: bool = True) -> dict[str, str]:
    """Write the network from a token's embedding to scores; return the output of each state by its input.

    Without `head` the network ends with the last norm.
    """
    net = Network(model.weights, shape)
    x = "token"
    for number in range(shape.blocks):
        x = net.block(x, number)
    x = net.norm(x, "output_norm")
    if head:
        x = net.dense(x, "token_embd")
    kept, turns = [1, shape.groups, shape.tokens, shape.head], [1, 1, 1, shape.head]
    sizes = {"token": [1, 1, shape.width], "cos": turns, "sin": turns, "mask": [1, 1, 1, shape.tokens]}
    slot = helper.make_tensor_value_info("slot", TensorProto.BOOL, [1, 1, shape.tokens, 1])
    results = {x: [1, 1, len(model.weights["token_embd.weight"]) if head else shape.width]}
    results |= dict.fromkeys(net.states.values(), kept)
    net.save(path, [*floats(sizes), slot, *floats(dict.fromkeys(net.states, kept))], floats(results))
    return net.states


def frames(model: Model, shape: Shape, tokens: Sequence[int]) -> Inputs:
    """The network's inputs for each token: embeddings, cosines, sines, masks, slots."""
    places = np.arange(len(tokens))[:, None]
    half = places / shape.base ** (np.arange(0, shape.head, 2) / shape.head)
    angles = np.concatenate([half, half], axis=1)[:, None, None, None]
    slots = np.arange(shape.tokens)
    mask = np.where(slots > places, UNSEEN, 0)[:, None, None, None]
    embedded = model.weights["token_embd.weight"][list(tokens)][:, None, None]
    floats = tuple(each.astype(np.float32) for each in (embedded, np.cos(angles), np.sin(angles), mask))
    return *floats, (slots == places % shape.tokens)[:, None, None, :, None]
