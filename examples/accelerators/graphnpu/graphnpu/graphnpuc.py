"""graphnpuc SUBGRAPH COMPILED: the network compiler of the graph NPU.

An independent program in place of a chip maker's existing compiler. The two files are the only link to npukit
(docs/plug-in.md). The program needs nothing but Python. The blob is described in graphnpu.md.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

MAGIC = 0x4E504247
KINDS = {"conv2d": 1, "dense": 1, "depthwise_conv2d": 2, "add": 3, "average_pool": 4, "max_pool": 5}
HEADER_WORDS, LAYER_WORDS = 4, 24
BLOB, SCRATCH, OUTPUT, INPUT = range(4)
"""Bases; further inputs follow the first."""

ALIGNMENT = 16


class Refusal(Exception):
    """A refusal, with the reason for the user."""


@dataclass
class Layer:
    """A layer of the blob, without the places of its operands."""

    op: dict[str, Any]
    sources: list[str]
    target: str
    weights: bytes = b""
    channels: bytes = b""
    weights_at: int = 0
    channels_at: int = 0


@dataclass
class Compiler:
    """Compiles a subgraph and places its tensors."""

    graph: dict[str, Any]
    places: dict[str, int] = field(default_factory=dict)
    scratch_bytes: int = 0

    def compile(self) -> dict[str, Any]:
        names = self._storage()
        layers = [self._layer(op, names) for op in self.graph["ops"] if op["kind"] != "reshape"]
        self._place(layers, names)
        if self.scratch_bytes > self.graph["figures"]["scratch_limit"]:
            raise Refusal(f"it needs {self.scratch_bytes:,} bytes of scratch memory")
        blob, cycles = self._blob(layers)
        return {"blob": base64.b64encode(blob).decode(), "cycles": cycles, "scratch_bytes": self.scratch_bytes}

    def _storage(self) -> dict[str, str]:
        """The tensor whose memory each tensor uses. A reshape shares its input's memory, but the output has its own."""
        names = {name: name for name in self.graph["tensors"]}
        for op in self.graph["ops"]:
            if op["kind"] == "reshape":
                names[op["outputs"][0]] = names[op["inputs"][0]]
        output = self.graph["outputs"][0]
        if names[output] in self.graph["inputs"]:
            raise Refusal("its output is its input")
        return {name: output if home == names[output] else home for name, home in names.items()}

    def _layer(self, op: dict[str, Any], names: dict[str, str]) -> Layer:
        constants = self.graph["constants"]
        layer = Layer(op, [name for name in op["inputs"] if name not in constants], op["outputs"][0])
        if op["kind"] == "add":
            layer.channels = self._addition(op)
        elif KINDS[op["kind"]] < KINDS["add"]:
            layer.weights, layer.channels = self._filter(op)
        return layer

    # --- places

    def _place(self, layers: list[Layer], names: dict[str, str]) -> None:
        """Places all tensors but inputs and output in scratch memory, each at the lowest free place."""
        for index, name in enumerate(self.graph["inputs"]):
            self.places[name] = (INPUT + index) << 24
        self.places[self.graph["outputs"][0]] = OUTPUT << 24
        lives = dict(self._lives(layers, names))
        taken: list[tuple[int, int, tuple[int, int]]] = []
        for name in sorted(lives, key=lambda name: (-self._bytes(name), name)):
            start = self._lowest(self._bytes(name), lives[name], taken)
            taken.append((start, start + self._bytes(name), lives[name]))
            self.places[name] = (SCRATCH << 24) + start
        self.scratch_bytes = max((stop for _, stop, _ in taken), default=0)
        self.places = {name: self.places[home] for name, home in names.items() if home in self.places}

    def _lives(self, layers: list[Layer], names: dict[str, str]) -> Iterator[tuple[str, tuple[int, int]]]:
        for home in sorted(set(names.values()) - set(self.places) - set(self.graph["constants"])):
            uses = [i for i, each in enumerate(layers) if home in [names[n] for n in (*each.sources, each.target)]]
            yield home, (min(uses), max(uses))

    @staticmethod
    def _lowest(size: int, life: tuple[int, int], taken: list[tuple[int, int, tuple[int, int]]]) -> int:
        place = 0
        for start, stop, (first, last) in sorted(taken):
            if first <= life[1] and life[0] <= last and place + size > start:
                place = max(place, -(-stop // ALIGNMENT) * ALIGNMENT)
        return place

    # --- constants

    def _values(self, name: str) -> tuple[int, ...]:
        raw, code = base64.b64decode(self.graph["constants"][name]), {"int8": "b", "int32": "i"}
        kind = code[self.graph["tensors"][name]["dtype"]]
        return struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)

    def _zero(self, name: str) -> int:
        return self.graph["tensors"][name]["zero_points"][0]

    def _shape(self, name: str) -> list[int]:
        return self.graph["tensors"][name]["shape"]

    def _bytes(self, name: str) -> int:
        return prod(self._shape(name))

    def _filter(self, op: dict[str, Any]) -> tuple[bytes, bytes]:
        """The weights channel by channel, and the bias, multiplier and shift of each channel."""
        shape, values = self._shape(op["inputs"][1]), self._values(op["inputs"][1])
        source, channels = self._shape(op["inputs"][0])[-1], self._shape(op["outputs"][0])[-1]
        if op["kind"] == "depthwise_conv2d":
            if source != channels:
                raise Refusal(f"{op['name']} has a depth multiplier")
            rows = [values[c::channels] for c in range(channels)]
        else:
            if shape[-1] != source:
                raise Refusal(f"{op['name']} has groups")
            depth = len(values) // channels
            rows = [values[c * depth : (c + 1) * depth] for c in range(channels)]
        biases = self._values(op["inputs"][2]) if len(op["inputs"]) > 2 else (0,) * channels
        zero = self._zero(op["inputs"][0])
        words = b"".join(
            struct.pack("<Iii", (bias - zero * sum(row)) & 0xFFFFFFFF, factor["multiplier"], factor["shift"])
            for bias, row, factor in zip(biases, rows, op["factors"], strict=True)
        )
        return b"".join(struct.pack(f"<{len(row)}b", *row) for row in rows), words

    def _addition(self, op: dict[str, Any]) -> bytes:
        zeros = [self._zero(name) for name in op["inputs"]]
        words = zip((*zeros, 0), op["factors"], strict=True)
        return b"".join(struct.pack("<3i", zero, f["multiplier"], f["shift"]) for zero, f in words)

    # --- the blob

    def _blob(self, layers: list[Layer]) -> tuple[bytes, int]:
        start = 4 * (HEADER_WORDS + LAYER_WORDS * len(layers))
        data = bytearray()
        for layer in layers:
            layer.channels_at, data = start + len(data), data + layer.channels
        for layer in layers:
            layer.weights_at, data = start + len(data), data + layer.weights
        figures = self.graph["figures"]
        cycles = figures["setup_cycles"] + sum(self._cycles(layer) for layer in layers)
        head = struct.pack("<4I", MAGIC, len(layers), cycles, 0)
        body = b"".join(struct.pack("<24i", *self._words(layer)) for layer in layers)
        padding = bytes(-len(data) % 4)
        return head + body + bytes(data) + padding, cycles

    def _words(self, layer: Layer) -> list[int]:
        sources = [self.places[name] for name in layer.sources]
        return [
            KINDS[layer.op["kind"]],
            sources[0],
            sources[-1],
            self.places[layer.target],
            *_plane(self._shape(layer.sources[0])),
            *_plane(self._shape(layer.target)),
            *self._window(layer.op),
            self._zero(layer.sources[0]),
            self._zero(layer.target),
            *layer.op["attributes"]["clamp"],
            layer.weights_at,
            layer.channels_at,
        ]

    def _window(self, op: dict[str, Any]) -> list[int]:
        attributes = op["attributes"]
        if op["kind"] in ("dense", "add"):
            return [1, 1, 1, 1, 1, 1, 0, 0]
        kernel = attributes["window"] if "window" in attributes else self._shape(op["inputs"][1])[1:3]
        return [*kernel, *attributes["strides"], *attributes.get("dilation", (1, 1)), *attributes["padding"][:2]]

    def _cycles(self, layer: Layer) -> int:
        window, result, figures = self._window(layer.op), self._bytes(layer.target), self.graph["figures"]
        depth = self._shape(layer.sources[0])[-1] if KINDS[layer.op["kind"]] == KINDS["conv2d"] else 1
        products = result * window[0] * window[1] * depth
        moved = sum(map(self._bytes, layer.sources)) + result + len(layer.weights) + len(layer.channels)
        work = -(-products // figures["products_per_cycle"]) + -(-moved // figures["bytes_per_cycle"])
        return figures["layer_cycles"] + work


def _plane(shape: list[int]) -> list[int]:
    """Height, width, channels."""
    return list(shape[1:]) if len(shape) == 4 else [1, prod(shape[:-1]), shape[-1]]


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    graph = json.loads(source.read_text(encoding="utf-8"))
    if (graph["format"], graph["version"]) != ("npukit-subgraph", 1):
        sys.exit(f"{source} is {graph['format']} {graph['version']}, this compiler reads npukit-subgraph 1")
    try:
        answer = Compiler(graph).compile()
    except Refusal as refusal:
        answer = {"refusal": str(refusal)}
    target.write_text(json.dumps({"format": "npukit-blob", "version": 1, **answer}), encoding="utf-8")


if __name__ == "__main__":
    main()
