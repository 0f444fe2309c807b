"""Queries on Relax expressions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, IRModule, Op

from npukit.errors import NpukitError
from npukit.net.tensor import Quantization

Definitions = Mapping[Any, Any]
"""The expression bound to each variable of the dataflow block."""


REARRANGED = ("expand_dims", "permute_dims", "reshape")
"""Moves of a constant that are evaluated at import."""


TFLITE = "npukit.tflite"
TITLES = "npukit.titles"
_LAYER = re.compile(r"layer(\d+)_\d*")


class TitledBuilder(relax.BlockBuilder):
    """Builder of a model's function that names variables after the file's layers."""

    def __init__(self) -> None:
        super().__init__()
        self._titles: list[str] = []

    def begin_layer(self, title: str) -> None:
        """Begin a layer. Later variables get its name; of several names joined by TFLite's fusion, the first."""
        self._titles.append(title.split(";")[0])

    def emit(self, expr: Any, name_hint: str = "") -> Any:
        return super().emit(expr, name_hint or self._name())

    def emit_output(self, output: Any, name_hint: str = "") -> Any:
        return super().emit_output(output, name_hint or self._name())

    def _name(self) -> str:
        return f"layer{len(self._titles) - 1}_" if self._titles else ""

    def titled(self, module: IRModule) -> IRModule:
        """The module with the layer names attached."""
        return with_titles(module, self._titles)


def with_titles(module: IRModule, titles: Sequence[str]) -> IRModule:
    return module.with_attr(TITLES, list(titles)) if titles else module


def as_tflite(module: IRModule) -> IRModule:
    """The module, marked: int8 functions of one number follow TensorFlow Lite's integer algorithms."""
    return module.with_attr(TFLITE, True)


def is_as_tflite(module: Any) -> bool:
    return bool(module.attrs and TFLITE in module.attrs)


def titles_of(module: Any) -> list[str]:
    """The names of the file's layers, by number."""
    return [str(title) for title in module.attrs[TITLES]] if module.attrs and TITLES in module.attrs else []


def title_of(variable: Any, titles: Sequence[str]) -> str:
    """The name of a variable's layer, or empty."""
    found = _LAYER.fullmatch(variable.name)
    return titles[int(found[1])] if found and int(found[1]) < len(titles) else ""


def callee(expression: Any) -> str:
    """The operator's name: `nn.conv2d` for a call of relax.nn.conv2d, empty for other expressions. A part of a tuple is
    `split_part`, because only split has several results here."""
    if isinstance(expression, relax.TupleGetItem):
        return "split_part"
    operator = expression.op if isinstance(expression, Call) else None
    return cast(Any, operator).name.removeprefix("relax.") if isinstance(operator, Op) else ""


def shape_of(expression: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in expression.ty.shape)


def dtype_of(expression: Any) -> str:
    return str(expression.ty.dtype)


def constant_value(expression: Any, definitions: Definitions) -> np.ndarray | None:
    """The value of a literal constant, with later transpositions and reshapes applied. None if not constant."""
    found, moves = _before_moves(expression, definitions)
    if not isinstance(found, Constant):
        return None
    value = cast(Any, found).value.numpy()
    for move in moves:
        value = value.transpose(axes_of(move)) if callee(move) == "permute_dims" else value.reshape(shape_of(move))
    return value


def _before_moves(expression: Any, definitions: Definitions) -> tuple[Any, list[Any]]:
    """The source behind transpositions and reshapes, and these calls in execution order."""
    found, moves = resolve(expression, definitions), []
    while callee(found) in REARRANGED:
        moves.append(found)
        found = resolve(found.args[0], definitions)
    return found, moves[::-1]


def resolve(expression: Any, definitions: Definitions) -> Any:
    """The expression behind variables and parts of known tuples."""
    while True:
        if isinstance(expression, relax.Var) and expression in definitions:
            expression = definitions[expression]
            continue
        whole = resolve(expression.tuple_value, definitions) if isinstance(expression, relax.TupleGetItem) else None
        if not isinstance(whole, relax.Tuple):
            return expression
        expression = whole.fields[cast(Any, expression).index]


def operands(value: Any) -> Iterator[Any]:
    """The operands of a binding's value. Tuples are expanded."""
    if isinstance(value, relax.Tuple):
        for part in value.fields:
            yield from operands(part)
    elif isinstance(value, relax.TupleGetItem):
        yield value.tuple_value
    elif isinstance(value, Call):
        for argument in value.args:
            yield from operands(argument)
    elif isinstance(value, relax.Var | Constant):
        yield value


def bindings(module: Any) -> list[tuple[Any, Any]]:
    """Variable and value of each binding of `main`, in order."""
    return [(binding.var, binding.value) for block in module["main"].body.blocks for binding in block.bindings]


def reads_of(module: Any) -> Counter[Any]:
    """The number of reads of each variable of `main`, including reads by the function's result."""
    values = *(value for _, value in bindings(module)), module["main"].body.body
    return Counter(operand for value in values for operand in operands(value) if isinstance(operand, relax.Var))


def split_span(split: Any, part: int) -> tuple[int, int, int]:
    """The axis along which a split cuts, and the begin and the end of one of its parts."""
    axis = int(split.attrs.axis) % len(shape_of(split.args[0]))
    sizes = [int(each.shape[axis]) for each in split.ty.fields]
    begin = sum(sizes[:part])
    return axis, begin, begin + sizes[part]


def before_dequantize(argument: Any) -> Any:
    """The integers of a dequantized argument, or the argument."""
    return argument.args[0] if callee(argument) == "dequantize" else argument


@dataclass(frozen=True)
class IntegerConstant:
    """A constant as integers with their quantisation."""

    value: np.ndarray
    quantization: Quantization

    def transposed(self, axes: Sequence[int]) -> IntegerConstant:
        given = self.quantization
        axis = None if given.axis is None else axes.index(given.axis)
        return IntegerConstant(self.value.transpose(axes), replace(given, axis=axis))

    @property
    def real(self) -> np.ndarray:
        return self.quantization.real(self.value)


def quantization_of(call: Any, definitions: Definitions) -> Quantization:
    """The scales and zero points of a quantize or dequantize call."""
    scales, zero_points = (constant_value(argument, definitions) for argument in call.args[1:3])
    if scales is None or zero_points is None:
        raise NpukitError("its scale or zero point is computed at run time")
    if not np.all(np.isfinite(scales) & (scales > 0)):
        raise NpukitError("its scale is zero, negative or not a number")
    zero_points = np.broadcast_to(zero_points, scales.shape)
    values = tuple(map(float, np.ravel(scales))), tuple(map(int, np.ravel(zero_points)))
    if len(values[0]) == 1:
        return Quantization(*values)
    axis = int(call.attrs.axis) % len(call.args[0].ty.shape)
    return Quantization(*values, axis)


def integer_constant(expression: Any, definitions: Definitions) -> IntegerConstant | None:
    """A dequantised constant, with later transpositions and reshapes applied. None if not constant."""
    found, moves = _before_moves(expression, definitions)
    constant = _dequantized(found, definitions) if callee(found) == "dequantize" else None
    for move in moves:
        if constant is None:
            break
        permuted = callee(move) == "permute_dims"
        constant = constant.transposed(axes_of(move)) if permuted else _reshaped(constant, shape_of(move))
    return constant


def _dequantized(call: Any, definitions: Definitions) -> IntegerConstant | None:
    quantization = quantization_of(call, definitions)
    source = resolve(call.args[0], definitions)
    if callee(source) == "quantize":
        real = constant_value(source.args[0], definitions)
        return None if real is None else IntegerConstant(_quantized(real, quantization, dtype_of(source)), quantization)
    value = constant_value(source, definitions)
    return None if value is None else IntegerConstant(value, quantization)


def _quantized(real: np.ndarray, quantization: Quantization, dtype: str) -> np.ndarray:
    """A float weight quantised like ONNX's QuantizeLinear."""
    (scales, zero_points), limits = quantization.arrays(real.ndim), np.iinfo(np.dtype(dtype))
    return np.clip(np.rint(real / scales.astype(np.float32)) + zero_points, limits.min, limits.max).astype(dtype)


def axes_of(call: Any) -> list[int]:
    """The axes of a transposition. By default, all axes reversed."""
    rank = len(shape_of(call))
    return [int(axis) % rank for axis in call.attrs.axes] if call.attrs.axes is not None else list(range(rank))[::-1]


def _reshaped(inner: IntegerConstant, shape: tuple[int, ...]) -> IntegerConstant | None:
    given = inner.quantization
    if given.axis is None:
        return IntegerConstant(inner.value.reshape(shape), given)
    places = [axis for axis, size in enumerate(shape) if size == inner.value.size]
    if len(given.scales) != inner.value.size or not places:
        return None
    return IntegerConstant(inner.value.reshape(shape), replace(given, axis=places[0]))


CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
TRANSPOSED = ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")


def macs_of(call: Any) -> int:
    """Multiply-accumulates of a call, padding included; 0 for ops other than matrix products and convolutions."""
    name = callee(call)
    if name == "matmul":
        return prod(shape_of(call)) * shape_of(call.args[0])[-1]
    if name in CONVOLUTIONS:
        return prod(shape_of(call)) * _per_channel(call, "O")
    if name in TRANSPOSED:
        return prod(shape_of(call.args[0])) * _per_channel(call, "I")
    return 0


def _per_channel(call: Any, letter: str) -> int:
    """The number of weights per channel. `letter`: the channel's axis in the layout."""
    layout = str(call.attrs.kernel_layout)
    return prod(size for axis, size in zip(layout, shape_of(call.args[1]), strict=True) if axis != letter)
