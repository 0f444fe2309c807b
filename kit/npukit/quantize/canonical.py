"""Prepares a float module for quantisation: folds constants, merges scales and shifts into convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError, first_line
from npukit.net.importer.expressions import bindings, callee, shape_of
from npukit.net.tensor import along
from npukit.quantize.function import constant, count_reads, make_call, outputs, rewritten, substituted, variables
from npukit.quantize.spelling import respelled

operators: Any = relax.op
transforms: Any = relax.transform
FOLDINGS = 2
LINEAR = ("matmul", "nn.conv2d", "nn.conv2d_transpose")


def canonical(module: IRModule) -> IRModule:
    """The same function with batch norms, biases and constant scales merged into convolutions and dense layers."""
    try:
        simple = _folded(module, transforms.DecomposeOpsForInference())
        return _Folding(_folded(respelled(simple))).module()
    except (NpukitError, MemoryError):
        raise
    except Exception as fault:
        raise NpukitError(f"the float model cannot be simplified: TVM says {first_line(fault)!r}") from fault


def _folded(module: IRModule, *before: Any) -> IRModule:
    """The module with constants folded and unread values removed. TVM's folding first lowers every operator to loops,
    so it is applied only if there is something to fold."""
    canonical = tvm.transform.Sequential([*before, transforms.CanonicalizeBindings()])(module)
    for _ in range(FOLDINGS):
        computed = (value for _, value in bindings(canonical) if callee(value) or isinstance(value, relax.Tuple))
        if any(not variables(value) for value in computed):
            canonical = transforms.CanonicalizeBindings()(transforms.FoldConstant()(canonical))
    return transforms.DeadCodeElimination(["main"])(canonical)


def is_bias(call: Any, amounts: Any) -> bool:
    """True if a constant added to a linear op's result is a single number for each channel."""
    values = constant(amounts) if foldable(call) else None
    return values is not None and Linear(call, constant(call.args[1])).by_channel(values) is not None


@dataclass(frozen=True)
class Linear:
    """A convolution or dense layer with constant weights. `bias`: a number for each channel."""

    call: Any
    weights: np.ndarray
    bias: np.ndarray | None = None

    @property
    def axis(self) -> int:
        return channel_axis_of(self.call)

    @property
    def weight_axis(self) -> int:
        return weight_axis(self.call, self.weights.ndim)

    @property
    def channels(self) -> int:
        return shape_of(self.call)[self.axis]

    def scaled(self, factors: np.ndarray) -> Linear:
        bias = None if self.bias is None else self.bias * factors
        return replace(self, weights=self.weights * along(factors, self.weights.ndim, self.weight_axis), bias=bias)

    def shifted(self, amounts: np.ndarray) -> Linear:
        return replace(self, bias=amounts if self.bias is None else self.bias + amounts)

    def by_channel(self, values: np.ndarray) -> np.ndarray | None:
        """A constant operand as a number for each channel; None if it varies along other axes."""
        shape = (1,) * (len(shape_of(self.call)) - values.ndim) + values.shape
        if any(size != 1 for axis, size in enumerate(shape) if axis != self.axis):
            return None
        return np.broadcast_to(values.ravel(), self.channels)


def channel_axis_of(call: Any) -> int:
    """The axis of channels in a linear op's result."""
    if callee(call) == "matmul":
        return len(shape_of(call)) - 1
    return str(call.attrs.out_layout or call.attrs.data_layout).index("C")


def weight_axis(call: Any, rank: int) -> int:
    """The axis of output channels in a linear op's weights."""
    return rank - 1 if callee(call) == "matmul" else str(call.attrs.kernel_layout).index("O")


def foldable(call: Any) -> bool:
    """True if scaling a linear op's weights can scale its channels."""
    weights = constant(call.args[1]) if callee(call) in LINEAR else None
    if weights is None or (callee(call) == "nn.conv2d_transpose" and int(call.attrs.groups) != 1):
        return False
    return callee(call) != "matmul" or weights.ndim == 2


class _Folding:
    """Merges constants into linear ops. A linear op waits to be emitted until all its constants are merged."""

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._reads = count_reads(module)
        self._known: dict[Any, Any] = {}
        self._waiting: dict[Any, Linear] = {}

    def module(self) -> IRModule:
        ends = outputs(self._module)
        return rewritten(self._module, self._emit, lambda builder: [self._settled(builder, end) for end in ends])

    def _emit(self, builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        linear = self._linear(value)
        if linear is not None:
            self._settled(builder, linear.call.args[0])
            self._waiting[variable] = linear
            return
        for read in variables(value):
            self._settled(builder, read)
        if not isinstance(value, relax.Tuple):
            self._known[variable] = builder.emit(substituted(value, self._known), variable.name)

    def _linear(self, value: Any) -> Linear | None:
        """The linear op of a binding, or the preceding linear op with the binding merged in; None otherwise."""
        if foldable(value):
            return Linear(value, constant(value.args[1]))
        if callee(value) not in FOLDS:
            return None
        first, second = value.args
        if callee(value) in ("add", "multiply") and first not in self._waiting:
            first, second = second, first
        linear, amounts = self._waiting.get(first), constant(second)
        if linear is None or amounts is None or self._reads[first] != 1:
            return None
        channels = linear.by_channel(amounts)
        return None if channels is None else FOLDS[callee(value)](linear, channels)

    def _settled(self, builder: relax.BlockBuilder, variable: Any) -> Any:
        """The expression for a variable in the new function. Emits a waiting linear op."""
        if variable in self._waiting and variable not in self._known:
            linear = self._waiting[variable]
            data, weights = self._settled(builder, linear.call.args[0]), relax.const(linear.weights.astype(np.float32))
            result = make_call(linear.call.op, [data, weights], linear.call.attrs, linear.call.ty_args)
            if linear.bias is not None:
                bias = along(linear.bias, len(shape_of(linear.call)), linear.axis)
                bias = relax.const(np.ascontiguousarray(bias, np.float32))
                result = operators.add(builder.emit(result, variable.name), bias)
            self._known[variable] = builder.emit(result, variable.name)
        return self._known.get(variable, variable)


FOLDS: dict[str, Callable[[Linear, np.ndarray], Linear]] = {
    "add": lambda linear, amounts: linear.shifted(amounts),
    "subtract": lambda linear, amounts: linear.shifted(-amounts),
    "multiply": lambda linear, factors: linear.scaled(factors),
    "divide": lambda linear, factors: linear.scaled(1 / factors),
}
