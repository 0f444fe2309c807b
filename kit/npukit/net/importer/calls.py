"""Data form of a kernel: a list of operator calls and their operands. TVM rebuilds the kernel call by call.

A kernel file is untrusted. Nothing in it has a format of TVM's own, and TVM infers all result types and shapes itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, Constant, IRModule, Op, make_node

from npukit.errors import NpukitError
from npukit.net.importer.loops import Attribute, LoopKernel, Operand, Single, Step
from npukit.net.importer.schedules import ISLAND

relax_ir: Any = relax
make_call: Any = Call

_RELAX, _FORMS = "relax.", "relax.attrs."
_LOOPS = "FLegalize"
"""Attribute of operators with a lowering to loops in TVM."""
NUMBER_TYPES = {int: "int64", float: "float64"}
"""Types of numbers in place of tensors. Functions with numbers of other types are no data."""
_SCANS = frozenset(("argsort", "cumprod", "cumsum", "sort", "topk"))
"""Operators that TVM lowers to loops in a separate pass."""


def kernel_of(module: IRModule) -> LoopKernel | None:
    """The Relax function `island` as data. None if the function contains anything but operator calls."""
    function: Any = module[ISLAND]
    values = {parameter: place for place, parameter in enumerate(function.params)}
    steps: list[Step] = []
    for binding in (each for block in function.body.blocks for each in block.bindings):
        try:
            steps.append(_step(binding.value, values))
        except (KeyError, TypeError):
            return None
        values[binding.var] = len(values)
    parameters = ((str(each.ty.dtype), tuple(map(int, each.ty.shape))) for each in function.params)
    return LoopKernel(ISLAND, tuple(parameters), tuple(steps))


def _step(call: Any, values: Mapping[Any, int]) -> Step:
    if not isinstance(call, Call) or not isinstance(call.op, Op) or call.ty_args:
        raise TypeError("no call of an operator")
    operator, given = cast(Any, call.op), cast(Any, call.attrs)
    form = type(given).__tvm_ffi_type_info__ if given is not None else None
    attributes = {name: _attribute(getattr(given, name)) for name in _fields(form)}
    operands = tuple(_operand(operand, values) for operand in call.args)
    return Step(operator.name.removeprefix(_RELAX), operands, form and form.type_key.removeprefix(_FORMS), attributes)


def _operand(operand: Any, values: Mapping[Any, int]) -> Operand:
    if isinstance(operand, relax_ir.Var):
        return values[operand]
    if isinstance(operand, relax_ir.Tuple):
        return [values[part] for part in operand.fields]
    if isinstance(operand, relax_ir.ShapeExpr):
        return {"shape": [int(size) for size in operand.values]}
    if isinstance(operand, tirx.IntImm | tirx.FloatImm):
        if str(operand.ty) != NUMBER_TYPES[type(operand.value)]:
            raise TypeError("a number of a type that is not kept")
        return {"number": operand.value}
    if isinstance(operand, Constant):
        value = cast(Any, operand).value.numpy()
        return cast(Any, {str(value.dtype): value.item()})
    raise TypeError("no operand that is data")


def _fields(form: Any) -> Iterator[str]:
    """The field names of an attribute type, including inherited fields."""
    while form is not None:
        yield from (field.name for field in form.fields or ())
        form = form.parent_type_info


def _attribute(value: Any) -> Attribute:
    return [_single(part) for part in value] if isinstance(value, tvm_ffi.Array) else _single(value)


def _single(value: Any) -> Single:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):  # or a type, accepted by TVM as text
        return str(value)
    raise TypeError("no attribute that is data")


def module_of(kernel: LoopKernel) -> IRModule:
    """The Relax function `island` rebuilt from a kernel's data."""
    builder = relax_ir.BlockBuilder()
    values = [
        relax_ir.Var(f"p{place}", relax_ir.TensorType(shape, dtype))
        for place, (dtype, shape) in enumerate(kernel.parameters)
    ]
    with builder.function(ISLAND, list(values)):
        with builder.dataflow():
            for step in kernel.steps[:-1]:
                values.append(builder.emit(_call(step, values)))
            result = builder.emit_output(builder.normalize(_call(kernel.steps[-1], values)))
        builder.emit_func_output(result)
    return builder.finalize()


def _call(step: Step, values: Sequence[Any]) -> Any:
    operator: Any = Op.get(f"{_RELAX}{step.operator}")
    if operator.get_attr(_LOOPS) is None and step.operator not in _SCANS:
        raise NpukitError(f"TVM makes no loops of {step.operator}")
    attributes = None if step.form is None else make_node(f"{_FORMS}{step.form}", **step.attributes)
    return make_call(operator, [_value(operand, values) for operand in step.operands], attributes)


def _value(operand: Operand, values: Sequence[Any]) -> Any:
    if isinstance(operand, int):
        return values[operand]
    if isinstance(operand, list):
        return relax_ir.Tuple([values[place] for place in operand])
    ((kind, value),) = operand.items()
    if kind == "shape":
        return relax_ir.ShapeExpr(value)
    if kind == "number":
        return tirx.const(value, NUMBER_TYPES[type(value)])
    return relax_ir.const(np.array(value, kind), kind)
