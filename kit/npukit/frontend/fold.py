"""Constant folding during import, for all formats: a call of constants becomes a constant.

Exporters write sizes as chains of ops on shapes, and masks as arithmetic on constants. Quantising operators stay,
because they say how weights are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, IRModule

from npukit.net.importer.expressions import TitledBuilder, callee, dtype_of, shape_of
from npukit.net.limits import TENSOR_BYTES, check_shape

make_call: Any = Call

UNFOLDED = (ArithmeticError, IndexError, ValueError)
"""Faults of values, such as a division by zero. The call stays in the model."""


class FoldingBuilder(TitledBuilder):
    """The builder of a model's function. Computes calls of constants at once."""

    def __init__(self) -> None:
        super().__init__()
        self.halves: dict[Any, list[Any]] = {}
        """Upper and lower bytes of 16-bit data, by the data."""
        self._bytes = 0

    def emit(self, expr: Any, name_hint: str = "") -> Any:
        folded = self.folded(expr)
        return folded if _replaces(folded, expr) else super().emit(folded, name_hint)

    def normalize(self, expr: Any) -> Any:
        folded = self.folded(expr)
        return folded if _replaces(folded, expr) else super().normalize(folded)

    def folded(self, expression: Any) -> Any:
        """The expression with all calls of constants computed."""
        if isinstance(expression, relax.Tuple):
            fields = [self.folded(part) for part in expression.fields]
            changed = any(one is not other for one, other in zip(fields, expression.fields, strict=True))
            return relax.Tuple(fields) if changed else expression
        if isinstance(expression, relax.TupleGetItem):
            whole = self.folded(expression.tuple_value)
            return whole.fields[cast(Any, expression).index] if isinstance(whole, relax.Tuple) else expression
        if callee(expression) == "shape_of":
            sizes: Any = getattr(expression.args[0].ty, "shape", None)
            return expression if sizes is None or _known(sizes) is None else sizes
        if not isinstance(expression, Call) or callee(expression) not in FUNCTIONS:
            return expression
        call = cast(Any, expression)
        arguments = [self.folded(argument) for argument in call.args]
        if any(one is not other for one, other in zip(arguments, call.args, strict=True)):
            call = make_call(call.op, arguments, call.attrs, call.ty_args)
        known = [_known(argument) for argument in arguments]
        return call if any(each is None for each in known) else self._computed(super().normalize(call), known)

    def _computed(self, call: Any, known: list[Any]) -> Any:
        """The result of a call of known arguments; the call itself if numpy cannot compute it."""
        kinds: list[Any] = list(cast(Any, call.ty).fields) if isinstance(call.ty, relax.TupleType) else [call.ty]
        for kind in kinds:
            shape = tuple(int(size) for size in kind.shape)
            check_shape(shape, "what it computes")
            self._bytes += int(np.prod(shape, dtype=np.int64)) * np.dtype(str(kind.dtype)).itemsize
            TENSOR_BYTES.check(self._bytes, "the model up to here")
        try:
            with np.errstate(all="ignore"):
                made = FUNCTIONS[callee(call)](call, *known)
        except UNFOLDED:
            return call
        values = [np.asarray(each) for each in (made if len(kinds) > 1 else [made])]
        if any(value.shape != tuple(map(int, kind.shape)) for value, kind in zip(values, kinds, strict=True)):
            return call
        results = [constant_of(value, str(kind.dtype)) for value, kind in zip(values, kinds, strict=True)]
        return results[0] if len(kinds) == 1 else relax.Tuple(results)


def _replaces(folded: Any, expression: Any) -> bool:
    """True if a call was computed, or if the expression is a constant."""
    is_several = isinstance(expression, Call) and isinstance(folded, relax.Tuple | relax.ShapeExpr)
    return value_of(folded) is not None or is_several


@relax.expr_functor.mutator
class _Folding(relax.PyExprMutator):
    """Replaces calls of constants by their results."""

    def __init__(self, module: IRModule) -> None:
        super().__init__(module)
        self._builder = FoldingBuilder()

    def visit_call_(self, op: Any) -> Any:
        made: Any = self.visit_expr_post_order(op)
        arguments = [self._resolved(argument) for argument in made.args]
        folded = self._builder.folded(make_call(made.op, arguments, made.attrs, made.ty_args))
        return made if isinstance(folded, Call) else folded

    def _resolved(self, argument: Any) -> Any:
        """The constant of a variable that is bound to a constant; other arguments as they are."""
        if isinstance(argument, relax.Tuple):
            return relax.Tuple([self._resolved(part) for part in argument.fields])
        bound = self.lookup_binding(argument) if isinstance(argument, relax.Var) else None
        return bound if isinstance(bound, Constant) else argument


def with_folds(module: IRModule) -> IRModule:
    """The module with all calls of constants in `main` computed."""
    main: Any = module["main"]
    module["main"] = _Folding(module).visit_expr(main)
    return module


def constant_of(value: np.ndarray, dtype: str = "") -> relax.Expr:
    """An array as a constant. Without a stated type, Relax would narrow 64-bit numbers."""
    dtype = dtype or str(value.dtype)
    return cast(Any, relax).const(np.ascontiguousarray(value).astype(dtype).reshape(value.shape), dtype)


def value_of(expression: Any) -> np.ndarray | None:
    """The array of a constant; None for other expressions."""
    value: Any = getattr(expression, "value", None) if isinstance(expression, Constant) else None
    return value.numpy() if hasattr(value, "numpy") else None  # a literal number is a constant too


def _known(argument: Any) -> Any:
    """The value of an argument: an array, a number, a shape, or a list of values. None if known only at run time."""
    if (array := value_of(argument)) is not None:
        return array
    if isinstance(argument, relax.Tuple):
        parts = [_known(part) for part in argument.fields]
        return None if any(part is None for part in parts) else parts
    if isinstance(argument, relax.ShapeExpr):
        sizes = [_known(size) for size in argument.values]
        return None if any(size is None for size in sizes) else tuple(sizes)
    value = getattr(argument, "value", None)
    return value if isinstance(value, int | float) else None  # an open size is a variable


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays alone."""
    return lambda call, *values: function(*values)


def _sized(call: Any, data: np.ndarray, *_: Any) -> np.ndarray:
    return data.reshape(shape_of(call))


def _over_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(call: Any, data: np.ndarray) -> Any:
        axes, keeps = call.attrs.axis, bool(call.attrs.keepdims)
        return function(data, axis=None if axes is None else tuple(map(int, axes)), keepdims=keeps)

    return reduced


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    def found(call: Any, data: np.ndarray) -> Any:
        axis, keeps = call.attrs.axis, bool(call.attrs.keepdims)
        return function(data, axis=None if axis is None else int(axis), keepdims=keeps)

    return found


def _divide(first: np.ndarray, second: np.ndarray) -> Any:
    """A quotient. Integers lose the fraction, towards zero."""
    if first.dtype.kind == "f":
        return first / second
    _check_divisor(second)
    return np.abs(first) // np.abs(second) * np.sign(first) * np.sign(second)


def _floor_divide(first: np.ndarray, second: np.ndarray) -> Any:
    if first.dtype.kind == "f":
        return np.floor(first / second)
    _check_divisor(second)
    return first // second


def _floor_mod(first: np.ndarray, second: np.ndarray) -> Any:
    return first - _floor_divide(first, second) * second


def _check_divisor(divisor: np.ndarray) -> None:
    if not np.all(divisor):
        raise ZeroDivisionError


def _strided_slice(call: Any, data: np.ndarray, axes: Any, begins: Any, ends: Any, steps: Any = None) -> Any:
    parts = [slice(None)] * data.ndim
    for axis, begin, end, step in zip(axes, begins, ends, steps or [1] * len(axes), strict=True):
        parts[axis] = slice(begin, end, step)
    return data[tuple(parts)]


def _take(call: Any, data: np.ndarray, indices: np.ndarray) -> Any:
    axis = call.attrs.axis
    mode = "clip" if str(call.attrs.mode) == "clip" else "raise"
    return np.take(data, indices, None if axis is None else int(axis), mode=mode)


def _split(call: Any, data: np.ndarray) -> Any:
    places: Any = call.attrs.indices_or_sections
    places = [int(place) for place in places] if hasattr(places, "__iter__") else int(places)
    return np.split(data, places, int(call.attrs.axis))


def _pad(call: Any, data: np.ndarray) -> Any:
    if str(call.attrs.pad_mode) != "constant":
        raise ValueError
    around = np.array([int(width) for width in call.attrs.pad_width]).reshape(-1, 2)
    return np.pad(data, around, constant_values=float(call.attrs.pad_value))


def _cumsum(call: Any, data: np.ndarray) -> Any:
    axis = call.attrs.axis
    sums = np.cumsum(data, None if axis is None else int(axis), dtype=dtype_of(call))
    return sums - data.reshape(sums.shape) if bool(call.attrs.exclusive) else sums


_IN_NUMPY = """abs add ceil cos equal exp floor greater greater_equal less less_equal log logical_and logical_not
    logical_or logical_xor maximum minimum multiply negative not_equal power sign sin sqrt square subtract tanh where
    zeros_like"""
ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _IN_NUMPY.split()},
    "divide": _divide,
    "floor_divide": _floor_divide,
    "floor_mod": _floor_mod,
    "round": np.rint,
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "sigmoid": lambda value: 1 / (1 + np.exp(-value)),
}
"""Functions of single elements, by Relax's name."""
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: _one(function) for name, function in ELEMENTWISE.items()},
    **{name: _over_axes(getattr(np, name)) for name in ("max", "mean", "min", "prod", "sum")},
    **{name: _place(getattr(np, name)) for name in ("argmax", "argmin")},
    **dict.fromkeys(("expand_dims", "reshape", "squeeze"), _sized),
    "arange": lambda call, *ends: np.arange(*ends),
    "astype": lambda call, data: data.astype(dtype_of(call)),
    "broadcast_to": lambda call, data, shape: np.broadcast_to(data, shape),
    "clip": lambda call, data, low, high: np.clip(data, low, high),
    "concat": lambda call, parts: np.concatenate(parts, int(call.attrs.axis)),
    "cumsum": _cumsum,
    "flip": lambda call, data: np.flip(data, int(call.attrs.axis)),
    "full": lambda call, shape, value: np.full(shape, value),
    "nn.pad": _pad,
    "permute_dims": lambda call, data: data.transpose(call.attrs.axes and [int(axis) for axis in call.attrs.axes]),
    "shape_to_tensor": lambda call, shape: np.array(shape, np.int64),
    "split": _split,
    "strided_slice": _strided_slice,
    "take": _take,
}
"""The function of each folded operator, from a call and the values of its arguments. Each is fast for the size of its
result."""
