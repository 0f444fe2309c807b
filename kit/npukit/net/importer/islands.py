"""Float islands: what has no integer op becomes C made by TVM, between integer tensors or on float ones.

An island is one operator that takes time, with the simple functions of its result behind it and the dequantizes of its
inputs before it, or a run of simple functions. What others read too, or of another size, is a tensor of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, GlobalVar

from npukit.errors import NpukitError, first_line
from npukit.net.importer.assembly import View, straight
from npukit.net.importer.expressions import callee, constant_value, dtype_of, quantization_of, resolve, shape_of
from npukit.net.importer.lowering import ISLAND, code_of
from npukit.net.importer.products import macs_of
from npukit.net.importer.unary import FUNCTIONS, WITH_ATTRIBUTES
from npukit.net.ops import Reshape, TvmCode
from npukit.net.tensor import Quantization, Tensor

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

operators: Any = relax.op
make_call: Any = Call
tensor_type: Any = relax.TensorType

RESHAPES = ("expand_dims", "flatten", "nn.batch_flatten", "reshape", "squeeze")
SIMPLE = frozenset(
    (
        *FUNCTIONS,
        *WITH_ATTRIBUTES,
        *RESHAPES,
        *("astype", "permute_dims", "dequantize", "quantize", "where", "sign", "isnan", "isinf", "isfinite"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_not", "logical_xor", "floor_divide", "mod", "floor_mod", "flip"),
    )
)
"""Operators whose result has one number for each number of an operand, computed in a few steps."""

TAKE_NUMBERS = frozenset(
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal")
)
"""Operators of which TVM makes code with a number in it."""

TYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float32")


@dataclass
class Islands:
    """`module` is what is walked; `reads` counts who reads each of its variables."""

    walk: Walk
    module: Any
    reads: Counter[Any]
    _tensors: dict[Any, View] = field(default_factory=dict)

    def quantized(self, call: Any, quantization: Quantization, why: str) -> View:
        """The int8 tensor that a quantize makes of a float expression."""
        value = self.variable(call.args[0])
        island = _Island(self, why)
        real = island.inside(value)
        scale, zero = np.array(quantization.scale, np.float32), np.array(quantization.zero_point, np.int8)
        result = operators.quantize(real, relax.const(scale), relax.const(zero), axis=-1, out_dtype="int8")
        return island.finished(result, quantization)

    def tensor(self, expression: Any, why: str) -> View:
        """The tensor of the net that holds the value of an expression, in float or whatever type it has."""
        variable = self.variable(expression)
        if variable not in self._tensors:
            self._tensors[variable] = self._held(variable) or self._computed(variable, why)
        return self._tensors[variable]

    def _held(self, variable: Any) -> View | None:
        """What the walk knows already as the model means it."""
        view = self.walk.view(variable)
        if view is None:
            return None
        if self.walk.assembly.tensors[view.name].dtype != dtype_of(variable):
            raise NpukitError(f"the integers of {view.name} are read as {dtype_of(variable)}")
        return view

    def _computed(self, variable: Any, why: str) -> View:
        value = resolve(variable, self.walk.definitions)
        if isinstance(value, Constant):
            raise NpukitError("it is a constant, which no network need compute")
        if callee(value) in RESHAPES and isinstance(value.args[0], relax.Var):
            return self._reshaped(value, why)
        island = _Island(self, why)
        return island.finished(island.inside(variable), None)

    def _reshaped(self, call: Any, why: str) -> View:
        """The same bytes under another shape."""
        assembly, source = self.walk.assembly, self.tensor(call.args[0], why)
        flat = assembly.arranged(source, straight(len(source.order)))
        return View(assembly.derive(Reshape(), flat, shape_of(call)), straight(len(shape_of(call))))

    def variable(self, expression: Any) -> Any:
        """The variable that an expression is bound to first."""
        while isinstance(self.walk.definitions.get(expression), relax.Var):
            expression = self.walk.definitions[expression]
        return expression

    def belongs(self, reader: Any, read: Any, *, free: bool) -> bool:
        """Whether the expression that is read can be computed inside its reader. `free`: nothing costly is in yet."""
        read = self.variable(read)
        value = resolve(read, self.walk.definitions)
        if self.reads[read] != 1 or self.walk.view(read) is not None or not isinstance(value, Call):
            return False
        if not all(isinstance(each.ty, tensor_type) for each in (reader, value)):
            return False
        same = _elements(reader) == _elements(value)
        return same and callee(reader) in SIMPLE and (free or callee(value) in SIMPLE)


def _elements(expression: Any) -> int:
    return int(np.prod(shape_of(expression), dtype=np.int64))


@dataclass
class _Island:
    """One function: nested expressions of Relax over parameters."""

    islands: Islands
    why: str
    names: list[str] = field(default_factory=list)
    macs: int = 0
    _activations: dict[str, Any] = field(default_factory=dict)
    _constants: list[tuple[Any, np.ndarray, Quantization | None]] = field(default_factory=list)
    _functions: list[Any] = field(default_factory=list)
    _free: bool = True

    def inside(self, expression: Any) -> Any:
        """The expression as the island computes it."""
        walk, expression = self.islands.walk, self.islands.variable(expression)
        value = resolve(expression, walk.definitions)
        if isinstance(value, Constant):
            return self._constant(value)
        view = self._integers(expression)
        if view is not None:
            quantization = walk.assembly.quantization(view.name)
            assert quantization is not None
            return self._real(self._activation(view, "int8"), quantization, "int8")
        if callee(value) == "dequantize":
            return self._dequantized(value)
        if walk.view(expression) is not None or not isinstance(value, Call | relax.TupleGetItem):
            return self._activation(self.islands.tensor(expression, self.why), dtype_of(expression))
        return self._part(value) if isinstance(value, relax.TupleGetItem) else self._call(value)

    def _call(self, call: Any) -> Any:
        self.names.append(self._name(call))
        self.macs += macs_of(call)
        self._free = self._free and callee(call) in SIMPLE
        if callee(call) == "call_tir":
            return self._loops(call)
        arguments = [self._argument(call, argument) for argument in call.args]
        return make_call(call.op, arguments, call.attrs, call.ty_args)

    def _name(self, call: Any) -> str:
        return call.args[0].name_hint if callee(call) == "call_tir" else callee(call)

    def _loops(self, call: Any) -> Any:
        """What TVM's importer made loops of."""
        function = self.islands.module[call.args[0]].without_attr("global_symbol")
        variable = GlobalVar(f"loops_{len(self._functions)}")
        self._functions.append((variable, function))
        arguments = relax.Tuple([self._argument(call, argument) for argument in call.args[1].fields])
        return make_call(call.op, [variable, arguments], call.attrs, call.ty_args)

    def _argument(self, reader: Any, argument: Any) -> Any:
        if isinstance(argument, relax.Tuple):
            return relax.Tuple([self._argument(reader, part) for part in argument.fields])
        if not isinstance(argument, relax.Var | Constant | Call):
            return argument
        value = resolve(argument, self.islands.walk.definitions)
        if isinstance(value, Constant):
            return self._constant(value, reader)
        literal = constant_value(argument, self.islands.walk.definitions)
        if literal is not None:
            return self._parameter(literal, None)
        moved = self.islands.walk.constant(argument)
        if moved is not None:
            return self._real(self._parameter(moved.value, moved.quantization), moved.quantization, moved.value.dtype)
        if self._is_dequantized(argument) or self.islands.belongs(reader, argument, free=self._free):
            return self.inside(argument)
        if isinstance(value, relax.Tuple):
            return self._argument(reader, value)
        return self._activation(self.islands.tensor(argument, self.why), dtype_of(argument))

    def _part(self, value: Any) -> Any:
        """One of several results."""
        whole = resolve(value.tuple_value, self.islands.walk.definitions)
        if callee(whole) == "nn.dropout":
            return self._argument(whole, whole.args[0])
        if callee(whole) != "split":
            return relax.TupleGetItem(self._call(whole), value.index)
        self.names.append("split")
        source, axis = self._argument(whole, whole.args[0]), int(whole.attrs.axis) % len(shape_of(whole.args[0]))
        sizes = [int(part.shape[axis]) for part in whole.ty.fields]
        begin = sum(sizes[: value.index])
        return operators.strided_slice(source, [axis], [begin], [begin + sizes[value.index]])

    def _integers(self, expression: Any) -> View | None:
        """The int8 tensor whose numbers an expression is, perhaps moved."""
        try:
            return self.islands.walk.operand(expression)
        except NpukitError:
            return None

    def _is_dequantized(self, expression: Any) -> bool:
        value = resolve(expression, self.islands.walk.definitions)
        return callee(value) == "dequantize" or self._integers(expression) is not None

    def _dequantized(self, call: Any) -> Any:
        """Integers become real numbers inside, whatever they are stored as."""
        walk, given = self.islands.walk, quantization_of(call, self.islands.walk.definitions)
        held = constant_value(call.args[0], walk.definitions)
        if held is not None:
            return self._real(self._parameter(held, given), given, str(held.dtype))
        source = self._activation(self.islands.tensor(call.args[0], self.why), dtype_of(call.args[0]))
        return self._real(source, given, dtype_of(call.args[0]))

    def _real(self, integers: Any, given: Quantization, dtype: Any) -> Any:
        if given.axis is None:
            scale, zero = relax.const(np.array(given.scale, np.float32)), relax.const(np.array(given.zero_point, dtype))
            return operators.dequantize(integers, scale, zero, axis=-1)
        scales, zeros = np.array(given.scales, np.float32), np.array(given.zero_points, dtype)
        vectors = self._parameter(scales, None), self._parameter(zeros, None)
        return operators.dequantize(integers, *vectors, axis=given.axis)

    def _constant(self, constant: Any, reader: Any = None) -> Any:
        """A single number stays in the code if its reader can take it so, an array is a parameter."""
        if not hasattr(constant.value, "numpy"):
            return constant
        value = constant.value.numpy()
        stays = value.ndim == 0 and callee(reader) in TAKE_NUMBERS
        return relax.const(value, str(value.dtype)) if stays else self._parameter(value, None)

    def _parameter(self, value: np.ndarray, quantization: Quantization | None) -> Any:
        """A constant as a parameter."""
        variable = relax.Var(f"constant_{len(self._constants)}", tensor_type(value.shape, str(value.dtype)))
        self._constants.append((variable, value, quantization if value.dtype == np.int8 else None))
        return variable

    def _activation(self, view: View, dtype: str) -> Any:
        """A tensor of the net as a parameter, its axes as the model has them."""
        assembly = self.islands.walk.assembly
        name = assembly.arranged(view, straight(len(view.order)))
        if name not in self._activations:
            shape = assembly.tensors[name].shape
            self._activations[name] = relax.Var(f"activation_{len(self._activations)}", tensor_type(shape, dtype))
        return self._activations[name]

    def finished(self, result: Any, quantization: Quantization | None) -> View:
        """The island as an op of the net."""
        assembly = self.islands.walk.assembly
        try:
            module, made = self._module(result)
        except Exception as fault:
            raise NpukitError(f"TVM does not take it: {first_line(fault)}") from fault
        shape, dtype = shape_of(made), dtype_of(made)
        unknown = {dtype, *(str(value.dtype) for _, value, _ in self._constants)} - set(TYPES)
        if unknown:
            raise NpukitError(f"it computes in {unknown.pop()}, which npukit does not")
        code = code_of(module)
        name = assembly.new_name(_plain(self._main_name()))
        constants = [
            assembly.constant(f"{name}_constant_{index}", value, given)
            for index, (_, value, given) in enumerate(self._constants)
        ]
        attributes = TvmCode(" ".join(reversed(self.names)), code.body, code.work_bytes, self.why, self.macs)
        output = Tensor(name, shape, dtype, quantization)
        return View(assembly.op(name, attributes, (*self._activations, *constants), output), straight(len(shape)))

    def _main_name(self) -> str:
        """The operator that takes time, or the last one."""
        costly = [name for name in self.names if name not in SIMPLE]
        return (costly or self.names or ["quantize"])[0]

    def _module(self, result: Any) -> tuple[Any, Any]:
        builder = relax.BlockBuilder()
        known = {variable: builder.add_func(function, variable.name_hint) for variable, function in self._functions}
        parameters = [*self._activations.values(), *(variable for variable, _, _ in self._constants)]
        with builder.function(ISLAND, parameters):
            with builder.dataflow():
                made = builder.emit_output(builder.normalize(_with_functions(result, known)))
            builder.emit_func_output(made)
        return builder.finalize(), made


def _with_functions(expression: Any, known: Mapping[Any, Any]) -> Any:
    """The expression with the global variables of a module."""
    if isinstance(expression, GlobalVar):
        return known[expression]
    if isinstance(expression, relax.Tuple):
        return relax.Tuple([_with_functions(part, known) for part in expression.fields])
    if isinstance(expression, relax.TupleGetItem):
        return relax.TupleGetItem(_with_functions(expression.tuple_value, known), expression.index)
    if isinstance(expression, Call):
        arguments = [_with_functions(argument, known) for argument in expression.args]
        return make_call(expression.op, arguments, expression.attrs, expression.ty_args)
    return expression


def _plain(name: str) -> str:
    """The operator's own name: layer_norm for nn.layer_norm."""
    return re.sub(r"\W", "_", name.rpartition(".")[2]).strip("_") or "float"
