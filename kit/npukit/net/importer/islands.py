"""Float islands: expressions without an integer op, compiled to C by TVM. Islands read and write integer or float
tensors.

An island is one costly operator, with dequantizes of its inputs before it and simple functions of its result after it,
or a run of simple functions. A value with other readers, or of another size, is a tensor of its own.

Islands wait on a list for the tensors they read, not by recursion, so a graph may have any depth.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, GlobalVar

from npukit.errors import NpukitError, first_line
from npukit.net.c_code.function import C_TYPES
from npukit.net.c_code.rows import Steps, stated_cycles, stated_rows
from npukit.net.importer.assembly import AxesView, Order, straight
from npukit.net.importer.elementwise import compared
from npukit.net.importer.expressions import (
    before_dequantize,
    callee,
    constant_value,
    dtype_of,
    macs_of,
    quantization_of,
    resolve,
    shape_of,
    split_span,
)
from npukit.net.importer.few_rows import REDUCTIONS, RowSteps
from npukit.net.importer.given import is_given
from npukit.net.importer.linear import SUMMED, in_sums
from npukit.net.importer.lowering import ISLAND, code_of
from npukit.net.importer.movement import RESHAPES, picked
from npukit.net.importer.unary import FUNCTIONS, WITH_ATTRIBUTES, condition
from npukit.net.ops import Reshape, TvmCode
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

operators: Any = relax.op
make_call: Any = Call
tensor_type: Any = relax.TensorType

SIMPLE = frozenset((*FUNCTIONS, *WITH_ATTRIBUTES, *RESHAPES, "permute_dims", "dequantize", "quantize", "flip"))
"""Cheap operators whose result has one number for each number of an operand."""

ANYWHERE = SIMPLE - {*RESHAPES, "permute_dims", "flip"}
"""Operators that may run on axes in any memory order."""
UNORDERED = {"max", "min"}
"""Reductions whose result does not depend on the order of terms."""

PICKS = frozenset(("broadcast_to", "gather_elements", "gather_nd", "repeat", "take", "tile"))
"""Operators whose results are values of the first operand."""
TAKE_NUMBERS = frozenset(
    ("add", "subtract", "multiply", "divide", "maximum", "minimum", "less", "less_equal", "greater", "greater_equal")
)
"""Operators into which TVM can compile a scalar constant."""

COPIED = "the model's output is constant"
"""Reason recorded in an op that copies a constant."""
GIVEN = "it is given as C"
"""Reason recorded in an op given as C code."""
MOST_OPERATORS = 50
"""Maximum number of operators in an island, because TVM and the importer recurse over its expressions. Longer runs get
a tensor in between."""


@dataclass
class Islands:
    """The float islands of a module. `reads`: number of reads of each variable."""

    walk: Walk
    module: Any
    reads: Counter[Any]
    _tensors: dict[Any, AxesView] = field(default_factory=dict)
    _sums: dict[Any, tuple[AxesView, Quantization] | None] = field(default_factory=dict)
    """Cached integer sums by layer."""
    _begun: dict[Any, _Island] = field(default_factory=dict)
    """Islands that wait for their operands, by their result variable."""

    def __post_init__(self) -> None:
        self._steps = RowSteps(self.walk.definitions, self.reads)

    def quantized(self, call: Any, quantization: Quantization, why: str, dtype: str = "int8") -> AxesView:
        """The integer tensor of a quantized float expression, computed by an island."""
        value = self.variable(call.args[0])
        island = _Island(self, why)
        real = island.inside(value)
        for read in island.reads:
            self.tensor(read, why)
        scale, zero = np.array(quantization.scale, np.float32), np.array(quantization.zero_point, dtype)
        result = operators.quantize(real, relax.const(scale), relax.const(zero), axis=-1, out_dtype=dtype)
        return island.finished(result, quantization)

    def moved(self, call: Any) -> AxesView:
        """The int8 tensor of a call in `PICKS`, of int8 values. Other operands are whole numbers."""
        walk, island = self.walk, _Island(self, "it moves values")
        source, constant = resolve(call.args[0], walk.definitions), walk.constant(call.args[0])
        if constant is None:
            view = self.moved(source) if callee(source) in PICKS else walk.activation(call.args[0])
            places = constant_value(call.args[1], walk.definitions) if callee(call) == "take" else None
            if places is not None and places.ndim == 1 and call.attrs.axis is not None:
                return picked(walk, view, int(call.attrs.axis), places)
            integers, quantization = (
                island.activation(view, shape_of(source), "int8"),
                walk.assembly.quantization(view.name),
            )
        elif constant.value.dtype == np.int8 and constant.quantization.axis is None:
            integers, quantization = island.parameter(constant.value, constant.quantization), constant.quantization
        else:
            raise NpukitError(f"it moves constants of {constant.value.dtype}, or with a scale for each channel")
        arguments = (island.argument(call, argument) for argument in call.args[1:])
        result = make_call(call.op, [integers, *arguments], call.attrs, call.ty_args)
        for read in island.reads:
            self.tensor(read, island.why)
        island.runs(callee(call))
        return island.finished(result, quantization)

    def tensor(self, expression: Any, why: str) -> AxesView:
        """The tensor of the net for an expression, in the expression's own type."""
        wanted = [self.variable(expression)]
        while wanted:
            missing = [] if wanted[-1] in self._tensors else self._missing(wanted[-1], why)
            if missing:
                wanted += reversed(missing)
            else:
                wanted.pop()
        return self._tensors[self.variable(expression)]

    def known(self, variable: Any) -> AxesView:
        """The existing tensor of a variable."""
        return self._tensors[variable]

    def _missing(self, variable: Any, why: str) -> list[Any]:
        """Variables whose tensors are missing for this variable's tensor. If there are none, makes the tensor."""
        value, held = resolve(variable, self.walk.definitions), self._held(variable)
        if held is not None:
            missing, make = [], lambda: held
        elif callee(value) in RESHAPES and isinstance(value.args[0], relax.Var):
            source = self.variable(value.args[0])
            missing, make = [source], lambda: self._reshaped(value, self._tensors[source])
        elif isinstance(value, Constant):
            missing, make = [], lambda: self._copied(value)
        elif (looked_up := self._condition(value)) is not None:
            missing, make = [], lambda: looked_up
        elif is_given(value):
            missing, make = self._read_by(value), lambda: self._given(value)
        else:
            island = self._begun.get(variable) or self._begin(variable, value, why)
            missing, make = island.reads, lambda: island.finished(island.result, None)
        missing = [read for read in missing if read not in self._tensors]
        if not missing:
            self.walk.assembly.title = self.walk.title(value) or self.walk.assembly.title
            self._tensors[variable] = make()
        return missing

    def _condition(self, value: Any) -> AxesView | None:
        """The lookup of a condition on one tensor, or of the difference of two; None for others."""
        if not isinstance(value, Call) or not isinstance(value.ty, tensor_type) or dtype_of(value) != "bool":
            return None
        for kind in (condition, compared):
            with suppress(NpukitError):
                return kind(self.walk, value)
        return None

    def _read_by(self, call: Any) -> list[Any]:
        """The variables read by an op given as C code."""
        values = map(self.variable, call.args[1].fields)
        return [each for each in values if not isinstance(resolve(each, self.walk.definitions), Constant)]

    def _copied(self, value: Any) -> AxesView:
        """Add an op that copies a constant to an output of the model. An op reads at least one activation: the first
        input, which has no effect."""
        assembly, (first, *_), shape = self.walk.assembly, self.module["main"].params, shape_of(value)
        name, size = assembly.new_name("copy"), prod(shape)
        source = assembly.constant(f"{name}_constant", value.value.numpy(), None)
        code = f"(void)p0;\nfor (int32_t at = 0; at < {size}; ++at) {{\n    output[at] = p1[at];\n}}\n"
        attributes = TvmCode("copy", code, 0, COPIED, cycles=8 * size, given=True)
        read = self.walk.views[first].name, source
        return AxesView(assembly.op(attributes, read, shape, dtype_of(value), name=name), straight(len(shape)))

    def _given(self, call: Any) -> AxesView:
        """Add an op given as C code."""
        assembly, told, shape = self.walk.assembly, call.attrs, shape_of(call)
        name = assembly.new_name(_plain(told["what"]))
        given = enumerate(call.args[1].fields)
        operands = [self._operand(each, f"{name}_constant_{place}") for place, each in given]
        steps = Steps(*json.loads(told["steps"]))
        rows = stated_rows(steps, shape, list(map(assembly.shape, operands)))
        code, work_bytes = told["code"], int(told["work_bytes"])
        cycles = stated_cycles(steps, shape)
        attributes = TvmCode(
            told["what"], code, work_bytes, GIVEN, cycles=cycles, given=True, loop=steps.loop, rows=rows
        )
        return AxesView(assembly.op(attributes, operands, shape, dtype_of(call), name=name), straight(len(shape)))

    def _operand(self, expression: Any, name: str) -> str:
        """The tensor of an operand of an op given as C code. `name`: name for a constant."""
        value: Any = resolve(expression, self.walk.definitions)
        if isinstance(value, Constant):
            return self.walk.assembly.constant(name, cast(Any, value).value.numpy(), None)
        return self.walk.assembly.straightened(self._tensors[self.variable(expression)])

    def _held(self, variable: Any) -> AxesView | None:
        """The existing view of a variable, checked to have the model's type."""
        view = self.walk.view(variable)
        if view is None:
            return None
        if self.walk.assembly.tensors[view.name].dtype != dtype_of(variable):
            raise NpukitError(f"the integers of {view.name} are read as {dtype_of(variable)}")
        return view

    def _begin(self, variable: Any, value: Any, why: str) -> _Island:
        """Begin the island of a variable and find its reads."""
        if isinstance(value, Constant):
            raise NpukitError("it is a constant, which no network need compute")
        island = self._begun[variable] = _Island(self, why)
        island.result = island.inside(variable)
        if variable in island.reads:
            raise NpukitError(f"it is a {type(value).__name__}, which no tensor holds")
        return island

    def _reshaped(self, call: Any, source: AxesView) -> AxesView:
        """The same bytes with another shape."""
        assembly = self.walk.assembly
        made = assembly.derive(Reshape(), assembly.straightened(source), shape_of(call))
        return AxesView(made, straight(len(shape_of(call))))

    def variable(self, expression: Any) -> Any:
        """The first variable bound to an expression, behind its aliases. A function of few rows becomes steps."""
        while isinstance(self.walk.definitions.get(expression), relax.Var):
            expression = self.walk.definitions[expression]
        return expression if self.walk.view(expression) else self._steps.last(expression)

    def sums(self, value: Any) -> tuple[AxesView, Quantization] | None:
        """A layer's integer sums and their quantisation. None if the layer cannot be computed in integers."""
        if callee(value) in SUMMED and value not in self._sums:
            try:
                self._sums[value] = in_sums(self.walk, value)
            except NpukitError:
                self._sums[value] = None
        return self._sums.get(value)

    def belongs(self, reader: Any, read: Any, *, free: bool) -> bool:
        """True if `read` can be computed inside its reader. `free`: the island has no costly operator yet."""
        read = self.variable(read)
        value = resolve(read, self.walk.definitions)
        if self.reads[read] != 1 or self.walk.view(read) is not None or not isinstance(value, Call) or is_given(value):
            return False
        if not all(isinstance(each.ty, tensor_type) for each in (reader, value)):
            return False
        if callee(reader) in REDUCTIONS:
            return callee(value) in SIMPLE
        same, simple = _elements(reader) == _elements(value), callee(value) in SIMPLE or self.sums(value)
        return same and callee(reader) in SIMPLE and bool(free or simple)


def _elements(expression: Any) -> int:
    return int(np.prod(shape_of(expression), dtype=np.int64))


@dataclass
class _Island:
    """A function under construction: nested Relax expressions over parameters."""

    islands: Islands
    why: str
    names: list[str] = field(default_factory=list)
    macs: int = 0
    _kinds: set[str] = field(default_factory=set)
    """Names of the island's operators."""
    result: Any = None
    _activations: dict[Any, Any] = field(default_factory=dict)
    """Activation parameters by view or variable."""
    _constants: list[tuple[Any, np.ndarray, Quantization | None]] = field(default_factory=list)
    _by_columns: set[Any] = field(default_factory=set)
    """Right operands of products. A constant is stored column by column: PEs that share the columns of a single row
    hold only their own."""
    _functions: list[Any] = field(default_factory=list)
    _free: bool = True

    def inside(self, expression: Any) -> Any:
        """The expression in terms of the island's parameters."""
        walk, expression = self.islands.walk, self.islands.variable(expression)
        value = resolve(expression, walk.definitions)
        if isinstance(value, Constant):
            return self._constant(value)
        view = self._integers(expression)
        if view is not None:
            integers = self.activation(view, shape_of(expression), "int8")
            return self._real(integers, walk.assembly.scaled(view.name), "int8")
        if callee(value) == "dequantize":
            return self._dequantized(value)
        if is_given(value) or walk.view(expression) is not None or not isinstance(value, Call | relax.TupleGetItem):
            return self._read(expression)
        return self._part(value) if isinstance(value, relax.TupleGetItem) else self._call(value)

    def _call(self, call: Any) -> Any:
        sums = self.islands.sums(call)
        if sums:
            view, quantization = sums
            return self._real(self.activation(view, shape_of(call), "int32"), quantization, "int32")
        self.runs(callee(call), call.args[0].name_hint if callee(call) == "call_tir" else "")
        self.macs += macs_of(call)
        self._free = self._free and callee(call) in SIMPLE
        if callee(call) == "call_tir":
            return self._loops(call)
        arguments = [self.argument(call, argument) for argument in call.args]
        if callee(call) == "matmul":
            self._by_columns.add(before_dequantize(arguments[1]))
        return make_call(call.op, arguments, call.attrs, call.ty_args)

    def _loops(self, call: Any) -> Any:
        """A call of loops (TIR) from TVM's importer."""
        function = self.islands.module[call.args[0]].without_attr("global_symbol")
        variable = GlobalVar(f"loops_{len(self._functions)}")
        self._functions.append((variable, function))
        arguments = relax.Tuple([self.argument(call, argument) for argument in call.args[1].fields])
        return make_call(call.op, [variable, arguments], call.attrs, call.ty_args)

    def argument(self, reader: Any, argument: Any) -> Any:
        if isinstance(argument, relax.Tuple):
            return relax.Tuple([self.argument(reader, part) for part in argument.fields])
        if not isinstance(argument, relax.Var | Constant | Call):
            return argument
        value = resolve(argument, self.islands.walk.definitions)
        if isinstance(value, Constant):
            return self._constant(value, reader)
        literal = constant_value(argument, self.islands.walk.definitions)
        if literal is not None:
            return self.parameter(literal, None)
        moved = self.islands.walk.constant(argument)
        if moved is not None:
            return self._real(self.parameter(moved.value, moved.quantization), moved.quantization, moved.value.dtype)
        inside = len(self.names) < MOST_OPERATORS and self.islands.belongs(reader, argument, free=self._free)
        if inside or callee(value) == "dequantize" or self._integers(argument) is not None:
            return self.inside(argument)
        if isinstance(value, relax.Tuple):
            return self.argument(reader, value)
        return self._read(argument)

    def _part(self, value: Any) -> Any:
        """One result of a call with several results."""
        whole = resolve(value.tuple_value, self.islands.walk.definitions)
        if callee(whole) == "nn.dropout":
            return self.argument(whole, whole.args[0])
        if callee(whole) != "split":
            return relax.TupleGetItem(self._call(whole), value.index)
        self.runs("split")
        axis, begin, end = split_span(whole, value.index)
        return operators.strided_slice(self.argument(whole, whole.args[0]), [axis], [begin], [end])

    def _integers(self, expression: Any) -> AxesView | None:
        """The int8 tensor behind an expression, seen through moves. None if there is none."""
        try:
            return self.islands.walk.operand(expression)
        except NpukitError:
            return None

    def _dequantized(self, call: Any) -> Any:
        """A dequantize inside the island, of any integer type."""
        walk, given = self.islands.walk, quantization_of(call, self.islands.walk.definitions)
        held = constant_value(call.args[0], walk.definitions)
        if held is not None:
            return self._real(self.parameter(held, given), given, str(held.dtype))
        return self._real(self._read(call.args[0]), given, dtype_of(call.args[0]))

    def _real(self, integers: Any, given: Quantization, dtype: Any) -> Any:
        if given.axis is None:
            scale, zero = relax.const(np.array(given.scale, np.float32)), relax.const(np.array(given.zero_point, dtype))
            return operators.dequantize(integers, scale, zero, axis=-1)
        scales, zeros = np.array(given.scales, np.float32), np.array(given.zero_points, dtype)
        scale, alike = self.parameter(scales, None), len({*given.zero_points}) == 1
        zero = relax.const(zeros[0]) if alike else self.parameter(zeros, None)
        return operators.dequantize(integers, scale, zero, axis=given.axis)

    def _constant(self, constant: Any, reader: Any = None) -> Any:
        """A constant. A scalar stays in the code if its reader allows; an array becomes a parameter."""
        if not hasattr(constant.value, "numpy"):
            return constant
        value = constant.value.numpy()
        stays = value.ndim == 0 and callee(reader) in TAKE_NUMBERS
        return relax.const(value, str(value.dtype)) if stays else self.parameter(value, None)

    def parameter(self, value: np.ndarray, quantization: Quantization | None) -> Any:
        """A constant as a parameter."""
        variable = relax.Var(f"constant_{len(self._constants)}", tensor_type(value.shape, str(value.dtype)))
        self._constants.append((variable, value, quantization if value.dtype == np.int8 else None))
        return variable

    def runs(self, kind: str, name: str = "") -> None:
        """Record an operator of the island, and its name if it has one of its own."""
        self.names.append(name or kind)
        self._kinds.add(kind)

    @property
    def reads(self) -> list[Any]:
        """The variables read by the island. Their tensors may not exist yet."""
        return [source for source in self._activations if not isinstance(source, AxesView)]

    def _read(self, expression: Any) -> Any:
        """The parameter of a variable, whose tensor may not exist yet."""
        return self.activation(self.islands.variable(expression), shape_of(expression), dtype_of(expression))

    def activation(self, source: Any, shape: tuple[int, ...], dtype: str) -> Any:
        """The parameter of a view or variable, with axes in the model's order."""
        if source not in self._activations:
            self._activations[source] = relax.Var(f"activation_{len(self._activations)}", tensor_type(shape, dtype))
        return self._activations[source]

    def _views(self) -> list[AxesView]:
        """The net's tensor for each activation parameter."""
        known = self.islands.known
        return [source if isinstance(source, AxesView) else known(source) for source in self._activations]

    def _orders(self) -> Iterator[Order]:
        """The memory order of the result's axes, then of each parameter's axes. An elementwise result takes the memory
        order of its largest operand, so nothing has to be transposed."""
        views, shapes = self._views(), [shape_of(each) for each in (*self._activations.values(), *self._variables())]
        anywhere, unordered = self._kinds <= ANYWHERE, self._kinds - ANYWHERE <= UNORDERED
        made = max(shapes[: len(views)], key=lambda shape: (len(shape), prod(shape)), default=())
        alike = (view.order for view, shape in zip(views, shapes, strict=False) if shape == made)
        order = next(alike, ()) if anywhere and max(map(len, shapes), default=0) == len(made) else ()
        yield order
        own = [view.order if unordered and not anywhere else () for view in views]
        own += [(1, 0) if each in self._by_columns and len(each.ty.shape) == 2 else () for each in self._variables()]
        for each, shape in zip_longest(own, shapes, fillvalue=()):
            yield each or (order if order and len(shape) == len(order) else straight(len(shape)))

    def _variables(self) -> list[Any]:
        return [variable for variable, _, _ in self._constants]

    def finished(self, result: Any, quantization: Quantization | None) -> AxesView:
        """Add the island as an op of the net."""
        assembly, (order, *orders) = self.islands.walk.assembly, self._orders()
        operands = [assembly.arranged(view, each) for view, each in zip(self._views(), orders, strict=False)]
        of_constants = orders[len(operands) :]
        try:
            module, made = self._module(result, operands, order, orders)
        except Exception as fault:
            raise NpukitError(f"TVM does not take it: {first_line(fault)}") from fault
        shape, dtype = shape_of(made), dtype_of(made)
        unknown = {dtype, *(str(value.dtype) for _, value, _ in self._constants)} - set(C_TYPES)
        if unknown:
            raise NpukitError(f"it computes in {unknown.pop()}, which npukit does not")
        code = code_of(module)
        costly = [each for each in self.names if each not in SIMPLE]
        name = assembly.new_name(_plain((costly or self.names or ["quantize"])[0]))
        constants = [
            assembly.constant(f"{name}_constant_{index}", value.transpose(each), _of_axes(given, each))
            for index, ((_, value, given), each) in enumerate(zip(self._constants, of_constants, strict=True))
        ]
        work = code.work_bytes if re.search(r"\bwork\b", code.body) else 0
        names = " ".join(reversed(self.names))
        attributes = TvmCode(names, code.body, work, self.why, self.macs, code.cycles, loop=code.loop, rows=code.rows)
        made = assembly.op(attributes, [*dict.fromkeys(operands), *constants], shape, dtype, quantization, name)
        return AxesView(made, order if order else straight(len(shape)))

    def _module(self, result: Any, operands: Sequence[str], order: Order, orders: Sequence[Order]) -> tuple[Any, Any]:
        """The function's module and its result. Parameters of the same tensor are merged."""
        builder, first = relax.BlockBuilder(), dict[Any, Any]()
        known = {variable: builder.add_func(function, variable.name_hint) for variable, function in self._functions}
        names, parameters = [*operands, *self._variables()], [*self._activations.values(), *self._variables()]
        for name, parameter, each in zip(names, parameters, orders, strict=True):
            known[parameter] = _seen(first.setdefault(name, _held(parameter, each)), each)
        with builder.function(ISLAND, list(first.values())):
            with builder.dataflow():
                whole = builder.normalize(_replaced(result, known))
                made = builder.emit_output(
                    operators.permute_dims(whole, order) if order != straight(len(order)) else whole
                )
            builder.emit_func_output(made)
        return builder.finalize(), made


def _of_axes(given: Quantization | None, order: Order) -> Quantization | None:
    """The quantisation of a constant after its axes are reordered."""
    return given if given is None or given.axis is None else replace(given, axis=order.index(given.axis))


def _held(variable: Any, order: Order) -> Any:
    """The parameter with its axes in memory order."""
    if order == straight(len(order)):
        return variable
    shape = shape_of(variable)
    return relax.Var(variable.name, tensor_type([shape[axis] for axis in order], dtype_of(variable)))


def _seen(held: Any, order: Order) -> Any:
    """The parameter's values with axes transposed back to the model's order."""
    if order == straight(len(order)):
        return held
    return operators.permute_dims(held, [order.index(axis) for axis in range(len(order))])


def _replaced(expression: Any, known: Mapping[Any, Any]) -> Any:
    """The expression with variables replaced by the module's own functions and parameters."""
    if isinstance(expression, GlobalVar | relax.Var):
        return known.get(expression, expression)
    if isinstance(expression, relax.Tuple):
        return relax.Tuple([_replaced(part, known) for part in expression.fields])
    if isinstance(expression, relax.TupleGetItem):
        return relax.TupleGetItem(_replaced(expression.tuple_value, known), expression.index)
    if isinstance(expression, Call):
        arguments = [_replaced(argument, known) for argument in expression.args]
        return make_call(expression.op, arguments, expression.attrs, expression.ty_args)
    return expression


def _plain(name: str) -> str:
    """The operator's name without its namespace: layer_norm for nn.layer_norm."""
    return re.sub(r"\W", "_", name.rpartition(".")[2]).strip("_") or "float"
