"""The spec of an op kind: all facts about the kind except its kernel on the core (`codegen/tir/ops`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from npukit.net.attributes import Attributes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.fields import Constant, InputRule, Operand, boxed_axes, constant_operands, everything
from npukit.net.ops.shapes import Shape

LOW, HIGH, ROUNDED, TWICE = "clamped low", "clamped high", "first rounding", "rounding twice"
CLOSE, HALF, TIES = "close to the next rounding", "second rounding", "negative ties"
PADDING, ENTRIES, POOLED, BORDER = "padding", "table entries", "mean's rounding", "padding that never counts"

Events = Iterator[tuple[str, np.ndarray]]
"""Kinds of event, each with a mask [case, place] of the reached events."""

Reference = Callable[[Net, Op, Sequence[np.ndarray]], np.ndarray]
"""Function that computes an op's output from its inputs. Activations have a leading case axis, constants have none."""

Watched = Callable[[Net, Op, Sequence[np.ndarray], np.ndarray], Events]
"""Function from an op's inputs and output to the reached events."""

_IMAGE = "int8[1,2,2,4] scale 0.5 zero 0"

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
    result: str = _IMAGE
    source: str = _IMAGE
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


def read_of_an_output(net: Net, op: Op, output: Box) -> int:
    """Input elements per output element."""
    return net.tensor(op.inputs[0]).elements // net.tensor(op.output).elements


def loop_of_each_row(net: Net, op: Op, output: Box) -> int:
    """Starts of an innermost loop that runs along the last axis."""
    return output.elements // output.shape[-1] if output.shape else 1


@dataclass(frozen=True)
class OpSpec:
    """The facts of an op kind.

    `shape`: the output's shape, or an error that explains the mismatch. `reference`: the arithmetic. `operands`:
    minimum and maximum number of inputs. `weights`: all inputs after the first must be constant. `constant_first`: the
    first input may be constant. `check`: an error if types do not suit, or if a number can leave 32 bits. `window`:
    rows, columns and channels of the window that an output reads, checked against the limits. `events`: further events
    of golden inputs. `keeps_range`: whether each channel of the output has the range of the input's channel.

    `field`: the receptive field, the basis of all tiling. PEs share an op along the axes that its field allows, without
    the axes `uncut` that its kernel needs whole; or along the axes `cuttable`. `operand`: the part of a
    constant operand that a tile needs. `constants`: the constants of a tile, by default the parts of the constant
    operands. `by_channel`: the constants of a tile depend on its channels alone. `products`: number of
    multiply-accumulates.

    `core_cycles`: cycles of the C kernel on the core, per output element, per step of an element, and per start of the
    innermost loop. `steps`: steps of an element, by default its products. `loops`: starts of the innermost loop. The
    cycles are fitted to random shapes compiled by both compilers: `benchmarks/core/core_predictions.py` measures them
    and the residual error. Compilers unroll and vectorise loops of pure data movement differently, so cycles of data
    movement are right on average only.
    """

    attributes: type[Attributes]
    shape: Callable[[Net, Op], Shape]
    reference: Reference
    example: Example
    operands: tuple[int, int] = (1, 1)
    weights: bool = False
    constant_first: bool = False
    scales: Scales = Scales.ONE
    check: Callable[[Net, Op], None] = lambda net, op: None
    window: Callable[[Net, Op], Shape] = lambda net, op: ()
    events: Watched = lambda net, op, operands, result: iter(())
    keeps_range: Callable[[Net, Op], bool] = lambda net, op: False
    elementwise: bool = False
    field: Callable[[Net, Op], list[InputRule]] = everything
    cuttable: Callable[[Net, Op], tuple[int, ...]] | None = None
    uncut: Callable[[Net, Op], tuple[int, ...]] = lambda net, op: ()
    operand: Operand = lambda net, op, name, output: Box.whole(net.tensor(name).shape)
    constants: Callable[[Net, Op, Box], Iterable[Constant]] | None = None
    by_channel: bool = False
    products: Callable[[Net, Op], int] = lambda net, op: 0
    core_cycles: tuple[float, float, float] = (0, 0, 0)
    steps: Callable[[Net, Op, Box], float] | None = None
    loops: Callable[[Net, Op, Box], int] = loop_of_each_row
    names: FormatNames = FormatNames()

    @property
    def kind(self) -> str:
        return self.attributes.kind

    def axes_to_cut(self, net: Net, op: Op) -> tuple[int, ...]:
        """The axes of the output along which the op can be cut."""
        if self.cuttable or self.field is everything:
            return self.cuttable(net, op) if self.cuttable else ()
        fixed = {*self.uncut(net, op)}
        for name, rule in zip(net.activations(op), self.field(net, op), strict=True):
            boxed = boxed_axes(net.tensor(name).shape)
            fixed |= {each.axis for axis, each in enumerate(rule) if each.axis is not None and axis not in boxed}
        return tuple(axis for axis in boxed_axes(net.tensor(op.output).shape) if axis not in fixed)

    def constants_of(self, net: Net, op: Op, output: Box) -> Iterable[Constant]:
        """The constants of the kernel for a box of the op's output, in the order of the arguments."""
        if self.constants:
            return self.constants(net, op, output)
        return constant_operands(net, op, output, self.operand)

    def cycles_in_c(self, net: Net, op: Op, output: Box) -> float:
        """Cycles of the C kernel for a box of the output."""
        per_output, per_step, per_loop = self.core_cycles
        whole = net.tensor(op.output).elements
        steps = self.steps(net, op, output) if self.steps else self.products(net, op) / whole
        return output.elements * (per_output + per_step * steps) + per_loop * self.loops(net, op, output)


def any_of(events: np.ndarray) -> np.ndarray:
    return np.asarray(events.reshape(len(events), -1).any(axis=1, keepdims=True))


def used(entries: np.ndarray, size: int) -> np.ndarray:
    """Mask of the used entries of a table of `size` entries."""
    return np.stack([np.bincount(each.ravel(), minlength=size) > 0 for each in entries])
