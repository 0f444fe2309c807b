"""A TFLite model built op by op, with random scales and zero points, in any type of activations."""

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
    dtype: str = "int8"
    """Type of activations: int8, uint8, int16 or float32. Makers state scales and zero points of int8."""
    four_bits: bool = False
    """True if int8 layers have weights of 4 bits."""

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
        return self.fitting(Quantized(float(np.float32(scale)), self.pick(-128, 127)))

    def fitting(self, given: Quantized) -> Quantized:
        """The range of int8 in the type of activations."""
        if self.dtype == "int16":
            return Quantized(given.scale * max(128 - given.zero, 128 + given.zero) / 32768, 0)
        return Quantized(given.scale, given.zero + 128) if self.dtype == "uint8" else given

    def values(self, shape: Shape, dtype: str = "") -> np.ndarray:
        dtype = dtype or self.dtype
        if dtype == "float32":
            return self.random.normal(0, 3, shape).astype(np.float32)
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def name(self) -> str:
        return f"t{len(self.model.entries)}"

    def tensor(self, shape: Shape, given: Quantized | None, dtype: str = "") -> str:
        """A tensor of the type of activations, or of `dtype`."""
        dtype = dtype or self.dtype
        scale, zero = (given.scale, given.zero) if given and dtype != "float32" else ((), 0)
        return self.model.tensor(self.name(), shape, scale, zero, dtype=dtype)

    def offered(self, least: int, most: int) -> Shape | None:
        """The shape of an earlier result with `least` to `most` axes, if ops are chained."""
        return None

    def input(self, shape: Shape, given: Quantized | None = None, dtype: str = "") -> str:
        name = self.tensor(shape, given or self.quantized(), dtype)
        self.model.inputs.append(name)
        self.data.append(self.values(shape, dtype))
        return name

    def real_input(self, shape: Shape) -> str:
        return self.input(shape, Quantized(1, 0), "float32")

    def constant(self, value: np.ndarray, scales: Any = (), zero: int = 0, axis: int = 0) -> str:
        return self.model.constant(self.name(), value, scales, zero, axis)

    def activation(self, shape: Shape, given: Quantized) -> str:
        """A random constant of the type of activations."""
        return self.constant(self.values(shape), () if self.dtype == "float32" else given.scale, given.zero)

    def places(self, *values: int) -> str:
        """An int32 constant."""
        return self.constant(np.array(values, np.int32))

    def between(self, shape: Shape) -> str:
        """A tensor between two ops."""
        return self.tensor(shape, self.quantized())

    def output(self, shape: Shape, given: Quantized | None = None, dtype: str = "") -> str:
        name = self.tensor(shape, given, dtype)
        self.results.append((self.maker, name))
        return name

    def op(
        self, code: str, inputs: Sequence[str], outputs: str | Sequence[str], table: str = "", **options: Any
    ) -> None:
        self.model.op(code, inputs, [outputs] if isinstance(outputs, str) else outputs, table, **options)

    def bytes(self) -> bytes:
        return self.model.bytes([name for _, name in self.results])


def some_shape(bundle: Bundle, least: int = 1, most: int = 4) -> Shape:
    return bundle.offered(least, most) or bundle.sizes(1, 6, bundle.pick(least, most))


def some_image(bundle: Bundle, channels: int | None = None) -> Shape:
    image = None if channels else bundle.offered(4, 4)
    return image or (bundle.pick(1, 2), *bundle.sizes(3, 9, 2), channels or bundle.pick(1, 9))
