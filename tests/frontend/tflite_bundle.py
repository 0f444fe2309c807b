"""A TFLite model built op by op, with random scales and zero points. The ops are independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from frontend.tflite_models import Model

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Quantized:
    """A scale and a zero point."""

    scale: float
    zero: int


@dataclass
class Bundle:
    """A model under construction, with the values of the inputs and the descriptions of the outputs."""

    random: np.random.Generator
    model: Model = field(default_factory=Model)
    data: list[np.ndarray] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    """The maker and the name of each output."""
    maker: str = ""

    def pick(self, low: int, high: int) -> int:
        """A random number with low <= number <= high."""
        return int(self.random.integers(low, high + 1))

    def often(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.pick(0, len(choices) - 1)]

    def sizes(self, low: int, high: int, count: int) -> Shape:
        return tuple(self.pick(low, high) for _ in range(count))

    def quantized(self, low: float = 0.005, high: float = 0.5) -> Quantized:
        scale = np.exp(self.random.uniform(np.log(low), np.log(high)))
        return Quantized(float(np.float32(scale)), self.pick(-128, 127))

    def integers(self, shape: Shape, dtype: str = "int8") -> np.ndarray:
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def name(self) -> str:
        return f"t{len(self.model.entries)}"

    def input(self, shape: Shape, given: Quantized | None = None, dtype: str = "int8") -> str:
        given = given or self.quantized()
        name = self.model.tensor(self.name(), shape, given.scale, given.zero, dtype=dtype)
        self.model.inputs.append(name)
        self.data.append(self.integers(shape, dtype))
        return name

    def real_input(self, shape: Shape) -> str:
        name = self.model.tensor(self.name(), shape, dtype="float32")
        self.model.inputs.append(name)
        self.data.append(self.random.normal(0, 3, shape).astype(np.float32))
        return name

    def constant(self, value: np.ndarray, scales: Any = (), zero: int = 0, axis: int = 0) -> str:
        return self.model.constant(self.name(), value, scales, zero, axis)

    def places(self, *values: int) -> str:
        """An int32 constant."""
        return self.constant(np.array(values, np.int32))

    def between(self, shape: Shape) -> str:
        """A tensor between two ops."""
        given = self.quantized()
        return self.model.tensor(self.name(), shape, given.scale, given.zero)

    def output(self, shape: Shape, given: Quantized | None = None, dtype: str = "int8") -> str:
        name = self.model.tensor(
            self.name(), shape, given.scale if given else (), given.zero if given else 0, dtype=dtype
        )
        self.results.append((self.maker, name))
        return name

    def op(
        self, code: str, inputs: Sequence[str], outputs: str | Sequence[str], table: str = "", **options: Any
    ) -> None:
        self.model.op(code, inputs, [outputs] if isinstance(outputs, str) else outputs, table, **options)

    def bytes(self) -> bytes:
        return self.model.bytes([name for _, name in self.results])


def some_shape(bundle: Bundle, least: int = 1, most: int = 4) -> Shape:
    return bundle.sizes(1, 6, bundle.pick(least, most))


def some_image(bundle: Bundle, channels: int | None = None) -> Shape:
    return (bundle.pick(1, 2), *bundle.sizes(3, 9, 2), channels or bundle.pick(1, 9))
