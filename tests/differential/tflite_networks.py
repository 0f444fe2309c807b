"""Random TFLite networks: an op of each kind, alone or in a chain, in each type, for LiteRT and TFLite Micro."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path

import numpy as np

from differential.networks import (
    AS_IT_IS,
    CALIBRATED,
    CASES,
    FOUR_BITS,
    IN_FLOAT,
    LITERT,
    Arrays,
    Maker,
    Network,
    Oracle,
    Within,
    of_int8,
)
from frontend import random_tflite_further as further
from frontend.random_tflite import MAKERS
from frontend.tflite_bundle import Bundle, Quantized, Shape
from frontend.tflite_models import Entry, run_litert, run_micro

LARGEST = 2000
"""Most elements of a tensor between two ops."""
OF_INT8 = {"cast", "float_ends", "quantize"}
"""Makers that state types themselves."""
BEYOND = {
    "uint8": {"abs", "batch_matmul", "exp", "log", "rsqrt", "squared_difference"},
    "int16": {"arg_max", "arg_min", "depth_to_space", "space_to_depth"},
}
"""Ops that no oracle computes in a type. Such an op is not chained, and `listed.toml` has the reason."""
BEYOND["int16"] |= {"l2_normalization", "hard_swish", "relu_0_to_1", "relu_n1_to_1"}
LAST = {
    "int8": set(further.ROUNDED),
    "uint8": {"average_pool_2d", "l2_normalization", "mean", "resize_bilinear", "softmax"},
    "int16": {"abs", "batch_matmul", "exp", "fully_connected", "gelu", "log", "mean", "prelu", "rsqrt"},
}
"""Ops that npukit rounds otherwise than the oracles, at most 1 apart (`docs/compatibility.md`). Such an op ends a
chain."""
LAST["int16"] |= {"squared_difference"}
WEIGHTED = {"conv_2d", "depthwise_conv_2d", "fully_connected"}
"""Makers of layers with weights of 4 bits in LiteRT."""
BEGINS = {"log", "rsqrt", "top_k"}
"""Makers that choose values of inputs. Such an op begins a chain."""


@dataclass
class Chain(Bundle):
    """A model whose ops mostly take earlier results."""

    free: list[str] = field(default_factory=list)
    """Results that no op takes."""

    def offered(self, least: int, most: int) -> Shape | None:
        shapes = [self._entry(name).shape for name in self.free]
        known = [shape for shape in shapes if least <= len(shape) <= most and prod(shape) <= LARGEST]
        return self.one_of(known) if known and self.often(0.7) else None

    def input(self, shape: Shape, given: Quantized | None = None, dtype: str = "") -> str:
        if dtype or not self.free or self.maker in BEGINS or self.often(0.2):
            return super().input(shape, given, dtype)
        name = self.one_of([name for name in self.free if self._entry(name).shape == shape] or self.free)
        self.free.remove(name)
        if self.often(0.8):
            self.results = [each for each in self.results if each[1] != name]
        return self._fitted(name, shape, given)

    def output(self, shape: Shape, given: Quantized | None = None, dtype: str = "") -> str:
        name = super().output(shape, given, dtype)
        self._made = [*getattr(self, "_made", []), name]
        return name

    def release(self) -> None:
        """Offers the results of the op before to the next."""
        made, self._made = self._made, []
        self.free += [name for name in made if self._entry(name).dtype == self.dtype]

    def _entry(self, name: str) -> Entry:
        return next(each for each in self.model.entries if each.name == name)

    def _fitted(self, name: str, shape: Shape, given: Quantized | None) -> str:
        """The values of `name` in another shape, cut or padded, and with another quantisation."""
        have = self._entry(name)
        now = Quantized(have.scales[0], have.zeros[0]) if have.scales else Quantized(1, 0)
        size, wanted = prod(have.shape), prod(shape)

        def next_(code: str, shape: Shape, *constants: np.ndarray, table: str = "") -> None:
            nonlocal name
            inputs = [name, *map(self.constant, constants)]
            name = self.tensor(shape, now)
            self.op(code, inputs, name, table)

        if size != wanted:
            next_("RESHAPE", (size,), np.array([size], np.int32))
        if size > wanted:
            next_("SLICE", (wanted,), np.zeros(1, np.int32), np.array([wanted], np.int32))
        if size < wanted:
            next_("PAD", (wanted,), np.array([[0, wanted - size]], np.int32), table="Pad")
        if self._entry(name).shape != shape:
            next_("RESHAPE", shape, np.array(shape, np.int32))
        if given and given != now and self.dtype != "float32":
            now = given
            next_("QUANTIZE", shape, table="Quantize")
        return name


def chain_of(random: np.random.Generator, dtype: str, kind: str, *, four_bits: bool) -> tuple[Chain, list[str]]:
    """An op of a kind in a chain of one to four ops, and the kinds of all."""
    chain = Chain(random, dtype=dtype, four_bits=four_bits)
    apart = OF_INT8 | BEYOND.get(dtype, set()) | LAST.get(dtype, set())
    others = [each for each in MAKERS if each not in apart]
    before = 0 if kind in BEGINS | OF_INT8 | BEYOND.get(dtype, set()) else int(random.choice([0, 0, 1, 2]))
    after = 0 if kind in apart else int(random.choice([0, 0, 0, 1]))
    kinds = [str(each) for each in (*random.choice(others, before), kind, *random.choice(others, after))]
    for name in kinds:
        chain.maker = name
        MAKERS[name](chain)
        chain.release()
    return chain, kinds


def litert(path: Path, inputs: Arrays) -> Arrays:
    return run_litert(path, inputs)


def micro(path: Path, inputs: Arrays) -> Arrays:
    return run_micro(path.read_bytes(), [inputs])[0]


def network(random: np.random.Generator, name: str, dtype: str, kind: str, reads: str, within: Within) -> Network:
    chain, kinds = chain_of(random, dtype, kind, four_bits=FOUR_BITS in name)
    if kind in LAST.get(dtype, ()):
        within = Within(steps=1)
    cases = [chain.data]
    if reads == CALIBRATED:
        within = of_int8(kinds)
        cases += [[_other(random, value) for value in chain.data] for _ in range(CASES - 1)]
    oracles: dict[str, Oracle] = {LITERT: litert, "TFLite Micro": micro}
    return Network(name, chain.bytes(), cases, oracles, reads, within)


def _other(random: np.random.Generator, value: np.ndarray) -> np.ndarray:
    """Other values of the same range."""
    return random.permutation(value.ravel()).reshape(value.shape)


CLASSES = {
    "int8": ("int8", AS_IT_IS, Within(relative=1e-6)),
    FOUR_BITS: ("int8", AS_IT_IS, Within(relative=1e-6)),
    "uint8": ("uint8", AS_IT_IS, Within()),
    "int16": ("int16", AS_IT_IS, Within()),
    "float": ("float32", IN_FLOAT, Within(relative=1e-4)),
    "calibrated": ("float32", CALIBRATED, Within()),
}
"""Type of activations, the way of reading, and the accepted difference."""


def cells() -> Iterator[tuple[str, Maker]]:
    for label, (dtype, reads, within) in CLASSES.items():
        for kind in MAKERS:
            if kind in WEIGHTED if label == FOUR_BITS else kind not in OF_INT8 or dtype == "int8":
                name = f"tflite/{label}/{kind}"
                yield name, partial(network, name=name, dtype=dtype, kind=kind, reads=reads, within=within)
