"""The spec of a kind of op: what the whole of npukit knows of it besides its arithmetic, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from npukit.net.net import Net, Op
from npukit.net.ops import Attributes
from npukit.net.specs.fields import InputRule, everything, nowhere
from npukit.net.specs.shapes import Shape

IMAGE = "int8[1,2,2,4] scale 0.5 zero 0"

MANY = 1 << 16
"""The most inputs that any op takes."""


class Scales(Enum):
    """The demands of a kind on the scales and zero points of its first input and its output."""

    ONE = "one scale and one zero point each"
    EQUAL = "all inputs and the output quantised alike"
    FREE = "nothing"
    EQUAL_OR_NONE = "quantised alike, or not at all"


@dataclass(frozen=True)
class Example:
    """A smallest net of a kind, as text: the call that makes `y` of the input `x` and constants."""

    call: str
    result: str = IMAGE
    source: str = IMAGE
    constants: str = ""
    before: str = ""
    """Ops that come first."""
    more: str = ""
    """Further inputs."""

    def text(self, kind: str) -> str:
        lines = (f"net {kind}", f"input x: {self.source}", self.more, self.before, f"op y: {self.result} = {self.call}")
        return "".join(f"{line}\n" for line in (*lines, "output y", self.constants) if line)


@dataclass(frozen=True)
class FormatNames:
    """The formats' names of the ops that npukit reads as one kind."""

    tflite: tuple[str, ...] = ()
    onnx: tuple[str, ...] = ()


def names(tflite: str, onnx: str) -> FormatNames:
    return FormatNames(tuple(tflite.split()), tuple(onnx.split()))


def no_products(net: Net, op: Op) -> int:
    """The multiply-accumulates of an op without any."""
    return 0


@dataclass(frozen=True)
class OpSpec:
    """The facts of a kind of op.

    `shape` gives the output's shape, or an error that says what does not suit. `operands` are the least and the most
    inputs. Only kinds with `weights` have constants behind their first input that must be constant; the first input
    itself may be one of those that have `constant_first`. `field` and `cuttable` are what all splitting follows from.
    `products` counts multiply-accumulates.

    `core_cycles` are those of a kernel in C on the core: of each element of the output, of each product in it, and of
    each time that its innermost loop begins. They are fitted to random shapes by both compilers:
    `benchmarks/core/core_predictions.py` measures them, with the error that is left. Compilers unroll and vectorise
    loops that only move values, each in its own way: those are right on average alone.
    """

    attributes: type[Attributes]
    shape: Callable[[Net, Op], Shape]
    example: Example
    operands: tuple[int, int] = (1, 1)
    weights: bool = False
    constant_first: bool = False
    scales: Scales = Scales.ONE
    elementwise: bool = False
    field: Callable[[Net, Op], list[InputRule]] = everything
    cuttable: Callable[[Net, Op], tuple[int, ...]] = nowhere
    products: Callable[[Net, Op], int] = no_products
    core_cycles: tuple[float, float, float] = (0, 0, 0)
    names: FormatNames = FormatNames()

    @property
    def kind(self) -> str:
        return self.attributes.kind
