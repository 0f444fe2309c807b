"""A Relax function as a list of bindings, and the rewriting of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from tvm import relax
from tvm.ir import Call, Constant, IRModule

from npukit.errors import NpukitError, first_line
from npukit.net.importer.expressions import bindings, callee, operands, titles_of, with_titles

Variables = Mapping[Any, Any]
"""Expressions of the new function by the variables of the old function."""

Emit = Callable[[relax.BlockBuilder, Any, Any], None]
"""Emits a binding, given as variable and value, into the new function."""

make_call: Any = Call


def parameters(module: IRModule) -> list[Any]:
    main: Any = module["main"]
    return list(main.params)


def outputs(module: IRModule) -> list[Any]:
    """The variables returned by `main`."""
    main: Any = module["main"]
    result, values = main.body.body, dict(bindings(module))
    while isinstance(result, relax.Var) and isinstance(values.get(result), relax.Var | relax.Tuple):
        result = values[result]
    return list(result.fields) if isinstance(result, relax.Tuple) else [result]


def variables(value: Any) -> list[Any]:
    return [operand for operand in operands(value) if isinstance(operand, relax.Var)]


def constant(expression: Any) -> Any:
    """The array of a constant or a literal number; None for other expressions."""
    if not isinstance(expression, Constant):
        return None
    value = cast(Any, expression).value
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def count_reads(module: IRModule) -> Counter[Any]:
    """The number of reads of each variable, the function's own result included."""
    reads = Counter(variable for _, value in bindings(module) for variable in variables(value))
    reads.update(output for output in outputs(module) if isinstance(output, relax.Var))
    return reads


def substituted(value: Any, known: Variables) -> Any:
    """The value with its variables replaced."""
    if isinstance(value, relax.Var):
        return known.get(value, value)
    if isinstance(value, relax.Tuple):
        return relax.Tuple([substituted(part, known) for part in value.fields])
    if isinstance(value, relax.TupleGetItem):
        return relax.TupleGetItem(substituted(value.tuple_value, known), value.index)
    if isinstance(value, Call) and callee(value):
        arguments = [substituted(argument, known) for argument in value.args]
        return make_call(value.op, arguments, value.attrs, value.ty_args)
    return value


def changed(module: IRModule, change: Callable[[relax.BlockBuilder, Any, Any], Any]) -> tuple[IRModule, dict[Any, Any]]:
    """The function with a change of each value, and the new variables by the old. `change` has the builder, the old
    variable and its value in new variables."""
    known: dict[Any, Any] = {}

    def emit(builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        if not isinstance(value, relax.Tuple):
            known[variable] = builder.emit(change(builder, variable, substituted(value, known)), variable.name)

    ends = outputs(module)
    return rewritten(module, emit, lambda _: [known.get(end, end) for end in ends]), known


def rewritten(
    module: IRModule, emit: Emit, results: Callable[[relax.BlockBuilder], list[Any]], more: Sequence[Any] = ()
) -> IRModule:
    """`main` with its parameters and `more`. `emit` writes each binding; `results` gives the returned variables."""
    functions: Any = module
    others = {name: function for name, function in functions.functions.items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(IRModule(others))
    with builder.function("main", [*parameters(module), *more]):
        with builder.dataflow():
            for variable, value in bindings(module):
                try:
                    emit(builder, variable, value)
                except (NpukitError, MemoryError):
                    raise
                except Exception as fault:
                    told = f"op {callee(value) or 'none'} ({variable.name}) has no int8 form"
                    raise NpukitError(f"{told}: {type(fault).__name__}: {first_line(fault)}") from fault
            result = builder.emit_output(relax.Tuple(results(builder)))
        builder.emit_func_output(result)
    return with_titles(builder.finalize(), titles_of(module))
