"""The only interface to TVM in the code generator: it builds TIR functions, and TVM's C code generator prints them.

The rest of `codegen/` uses this module's terms: arrays, locals, loops, calls. Expressions are TVM's own and take
Python's operators, except `//` and `%`: see `quotient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

import tvm
from tvm import tirx
from tvm.script import tirx as script
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder

from npukit.codegen.tir.c_text import PLACE_OF

Expr = Any
"""A TIR expression, or a Python integer."""

Access = Literal["value", "place", "read", "write"]


@dataclass(frozen=True)
class TirParameter:
    """A parameter of a function: a number, or a pointer to numbers that the function reads or writes. `place`: a
    pointer whose address alone is used. There may be hundreds of places, while TVM expects few pointers."""

    name: str
    dtype: str
    access: Access = "read"


@dataclass(frozen=True)
class TirFunction:
    """A TIR function. `result`: the return type, if any."""

    name: str
    parameters: tuple[TirParameter, ...]
    result: str | None
    tir: Any

    def __str__(self) -> str:
        return self.tir.script()


class Pointed:
    """The array behind a pointer parameter."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __getitem__(self, index: Expr) -> Expr:
        return self._buffer[index]

    def __setitem__(self, index: Expr, value: Expr) -> None:
        script.buffer_store(self._buffer, value, [index])

    @property
    def dtype(self) -> str:
        return str(self._buffer.dtype)

    def address(self, offset: Expr) -> Expr:
        return script.address_of(self._buffer[offset])


class PointedPlace:
    """The address in a place parameter."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def address(self, offset: int) -> Expr:
        return script.call_extern("handle", PLACE_OF, self._variable, offset)


class Local:
    """A mutable local variable."""

    def __init__(self, name: str, dtype: str, value: Expr) -> None:
        self._buffer, self._place = script.alloc_buffer((1,), dtype), 0
        IRBuilder.name(name, self._buffer)
        self.set(value)

    @classmethod
    def in_a_row(cls, name: str, dtype: str, values: Sequence[Expr]) -> list[Self]:
        """Variables in the elements of an array."""
        buffer = script.alloc_buffer((len(values),), dtype)
        IRBuilder.name(name, buffer)
        made = [cls.__new__(cls) for _ in values]
        for place, (each, value) in enumerate(zip(made, values, strict=True)):
            each._buffer, each._place = buffer, place
            each.set(value)
        return made

    @property
    def value(self) -> Expr:
        return self._buffer[self._place]

    @property
    def address(self) -> Expr:
        return script.address_of(self.value)

    def set(self, value: Expr) -> None:
        script.buffer_store(self._buffer, value, [self._place])


def define(
    name: str, parameters: Sequence[TirParameter], body: Callable[..., None], *, result: str | None = None
) -> TirFunction:
    """Build a TIR function. `body` emits statements, given an array or a number for each parameter."""
    with IRBuilder() as made, builder.prim_func():
        builder.func_name(name)
        builder.func_attr({"global_symbol": name})
        kinds = [getattr(script, p.dtype)() if p.access == "value" else script.handle(p.dtype) for p in parameters]
        variables = [builder.arg(p.name, kind) for p, kind in zip(parameters, kinds, strict=True)]
        if result is not None:
            builder.func_ret(tvm.ir.PrimType(result))
        body(*(_inside(p, v) for p, v in zip(parameters, variables, strict=True)))
    return TirFunction(name, tuple(parameters), result, made.get())


def _inside(parameter: TirParameter, variable: Any) -> Any:
    if parameter.access == "value":
        return variable
    if parameter.access == "place":
        return PointedPlace(variable)
    # TIR requires a length. Nothing checks it, and the C has only the pointer.
    return Pointed(script.decl_buffer((1 << 30,), parameter.dtype, data=variable))


@contextmanager
def loop(name: str, start: Expr, stop: Expr) -> Iterator[Expr]:
    """`for (name = start; name < stop; name++)`, or no loop at all for a single iteration."""
    if isinstance(start, int) and isinstance(stop, int) and stop - start == 1:
        yield start
        return
    with script.serial(start, stop) as variable:
        IRBuilder.name(name, variable)
        yield variable


@contextmanager
def when(condition: Expr) -> Iterator[None]:
    with script.If(condition), script.Then():
        yield


def if_else(condition: Expr, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    with script.If(condition):
        with script.Then():
            then()
        with script.Else():
            otherwise()


def let(name: str, value: Expr) -> Expr:
    """A named immutable value. Numbers and variables stay as they are."""
    if isinstance(value, int | tirx.IntImm | tirx.Var):
        return value
    variable = script.Bind(value)
    IRBuilder.name(name, variable)
    return variable


def give(value: Expr) -> None:
    """Return a value."""
    builder.Return(value)


def call(function: str, *arguments: Expr) -> Expr:
    """A call of a C function by name: TIR's call_extern."""
    return script.call_extern("int32", function, *arguments)


def do(expression: Expr) -> None:
    """Evaluate an expression for its side effect."""
    script.evaluate(expression)


def cast(dtype: str, value: Expr) -> Expr:
    return script.Cast(dtype, value)


def number(dtype: str, value: int) -> Expr:
    return tirx.const(value, dtype)


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`condition ? yes : no`, resolved if the condition is a Python bool."""
    if isinstance(condition, bool):
        return yes if condition else no
    return script.Select(condition, yes, no)


def quotient(value: Expr, divisor: Expr) -> Expr:
    """C's `/`. Two Python integers must both be at least 0."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor
    return script.truncdiv(value, divisor)


def print_c(functions: Sequence[TirFunction]) -> str:
    """C as TVM prints it, with the prelude."""
    target = tvm.target.Target("c")
    module = tvm.IRModule({function.name: function.tir for function in functions})
    lowered = tvm.transform.Sequential([tirx.transform.BindTarget(target), tirx.transform.LowerIntrin()])(module)
    return tvm.get_global_func("target.build.c")(lowered, target).inspect_source()
