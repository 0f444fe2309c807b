"""The spec of an op kind: all facts about the kind except its arithmetic."""

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
"""Maximum number of inputs of any op."""


class Scales(Enum):
    """Constraint of an op kind on the scales and zero points of inputs and output."""

    ONE = "one scale and one zero point each"
    EQUAL = "all inputs and the output quantised alike"
    FREE = "nothing"
    EQUAL_OR_NONE = "quantised alike, or not at all"


@dataclass(frozen=True)
class Example:
    """A minimal net of an op kind, as text. `call` computes `y` from the input `x` and constants."""

    call: str
    result: str = IMAGE
    source: str = IMAGE
    constants: str = ""
    before: str = ""
    """Lines of ops before the call."""
    more: str = ""
    """Lines of further inputs."""

    def text(self, kind: str) -> str:
        lines = (f"net {kind}", f"input x: {self.source}", self.more, self.before, f"op y: {self.result} = {self.call}")
        return "".join(f"{line}\n" for line in (*lines, "output y", self.constants) if line)


@dataclass(frozen=True)
class FormatNames:
    """The names in each model format of the ops imported as a given kind."""

    tflite: tuple[str, ...] = ()
    onnx: tuple[str, ...] = ()


def names(tflite: str, onnx: str) -> FormatNames:
    return FormatNames(tuple(tflite.split()), tuple(onnx.split()))


def no_products(net: Net, op: Op) -> int:
    """Zero: the multiply-accumulates of an op without any."""
    return 0


@dataclass(frozen=True)
class OpSpec:
    """The facts of an op kind.

    `shape`: the output's shape, or an error that explains the mismatch. `operands`: minimum and maximum number of
    inputs. `weights`: all inputs after the first must be constant. `constant_first`: the first input may be constant.
    `field` and `cuttable`: receptive field and axes to cut along, the basis of all tiling. `products`: number of
    multiply-accumulates.

    `core_cycles`: cycles of the C kernel on the core, per output element, per product of an element, and per start of
    the innermost loop. The figures are fitted to random shapes compiled by both compilers:
    `benchmarks/core/core_predictions.py` measures them and the residual error. Compilers unroll and vectorise loops of
    pure data movement differently, so figures of data movement are right on average only.
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
