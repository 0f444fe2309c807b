"""The core's kernels as C: a function for each tile on the core, equal functions once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from textwrap import indent

from npukit.accel.core_filters import VECTOR_WEIGHTS
from npukit.accel.core_writes import apart_from_output
from npukit.accel.interface import ConstantArray, Tile
from npukit.codegen.tir import ops
from npukit.codegen.tir.c_text import function_bodies, tidied_body, wrapped
from npukit.codegen.tir.door import TirFunction, TirParameter, define, print_c
from npukit.codegen.tir.ops.fixed_point import helper_functions
from npukit.codegen.tir.ops.vectors import IN_VECTORS
from npukit.errors import NpukitError
from npukit.net.c_code.function import C_TYPES, declaration, pointers
from npukit.net.c_code.rows import part_of, rows_of
from npukit.net.ops import TvmCode
from npukit.net.ops.table import modules_of

KERNELS: Mapping[str, Callable[..., None]] = {
    kind: body for module in modules_of(ops) for kind, body in getattr(module, "KERNELS", {}).items()
}
"""The writer of each kind's statements, from every module: (tile, inputs..., constants..., output)."""

_INPUT_NAMES = {1: ["input"], 2: ["first", "second"]}


@dataclass(frozen=True)
class TirKernel:
    """A tile on the core as a TIR function, or None if the op is C already."""

    tile: Tile
    function: TirFunction | None


@dataclass(frozen=True)
class CFunction:
    """A C function with its comment. `of_halves`: another body, for cores whose products have 32 bits."""

    name: str
    signature: str
    body: str
    comment: str
    of_halves: str = ""


def kernel(tile: Tile, constants: Iterable[ConstantArray]) -> TirKernel:
    """The kernel of a tile of any kind that the core supports."""
    if isinstance(tile.op.attributes, TvmCode):
        return TirKernel(tile, None)
    if tile.op.kind not in KERNELS:
        raise NpukitError(f"{tile.op.name}: the core has no kernel for {tile.op.kind}", tries=["npukit ops"])
    operands = apart_from_output(tile)
    names = _INPUT_NAMES.get(len(operands)) or [f"input_{i}" for i in range(len(operands))]
    parameters = [TirParameter(name, x.tensor.dtype) for name, x in zip(names, operands, strict=True)]
    parameters += [TirParameter(c.symbol.removeprefix(f"{tile.name}_"), str(c.values.dtype)) for c in constants]
    parameters += [TirParameter("output", tile.output.tensor.dtype, "write")]
    in_lanes = any(each.name == VECTOR_WEIGHTS for each in parameters)
    body = (IN_VECTORS if in_lanes else KERNELS)[tile.op.kind]
    return TirKernel(tile, define(tile.name, parameters, lambda *arrays: body(tile, *arrays)))


def helpers_as_c() -> list[CFunction]:
    """The arithmetic functions shared by all kernels."""
    described = helper_functions()
    functions = [each for helper in described for each in (helper.function, helper.of_halves) if each]
    bodies = function_bodies(print_c(functions))
    return [
        CFunction(
            helper.function.name,
            signature(helper.function),
            bodies[helper.function.name],
            helper.comment,
            bodies[helper.of_halves.name] if helper.of_halves else "",
        )
        for helper in described
    ]


def kernels_as_c(kernels: list[TirKernel]) -> tuple[list[CFunction], dict[str, str]]:
    """The distinct kernels, and the kernel's name for each tile's name."""
    made = [each.function for each in kernels if each.function]
    bodies = function_bodies(print_c(made)) if made else {}
    alike: dict[tuple[str, str], list[TirKernel]] = {}
    for each in kernels:
        alike.setdefault(_nameless(each, bodies), []).append(each)
    functions = []
    for (_, body), same in alike.items():
        comment = "\n".join(describe(each.tile, "the core") for each in same)
        functions.append(CFunction(same[0].tile.name, _signature(same[0]), body, comment))
    return functions, {each.tile.name: same[0].tile.name for same in alike.values() for each in same}


def nameless(kernel: TirKernel) -> tuple[str, str]:
    """The parameters and the statements of a kernel as C."""
    return _nameless(kernel, function_bodies(print_c([kernel.function])) if kernel.function else {})


def _nameless(kernel: TirKernel, bodies: Mapping[str, str]) -> tuple[str, str]:
    _, _, parameters = _signature(kernel).partition("(")
    if kernel.function:
        body = bodies[kernel.function.name]
        body = _unread((each.name for each in kernel.function.parameters), body, "    ") + body
    else:
        body = _given_body(kernel.tile)
    return " ".join(parameters.split()), body


def _given_body(tile: Tile) -> str:
    """The part of an op's C that computes a tile: its rows. Each array begins with the first row in memory."""
    op, names = tile.op.of(TvmCode), [each.name for each in pointers(tile.net, tile.op)]
    rows = rows_of(tile.net, tile.op)
    text = part_of(op.code, rows, tile.output.box) if rows else op.code
    if op.given:
        return wrapped(indent(_unread(names, text, "") + text, "    "))
    body = tidied_body(text)
    return _unread(names, body, "    ") + body


def _unread(names: Iterable[str], body: str, indent: str) -> str:
    """Statements for unread parameters, as in a tile of padding alone, or for an axis of size 1."""
    return "".join(f"{indent}(void){name};\n" for name in names if not re.search(rf"\b{name}\b", body))


def _signature(kernel: TirKernel) -> str:
    if kernel.function:
        return signature(kernel.function)
    parameters = (declaration(p.dtype, p.name, written=p.written) for p in pointers(kernel.tile.net, kernel.tile.op))
    return wrapped(f"void {kernel.tile.name}({', '.join(parameters)})")


def describe(tile: Tile, engine: str) -> str:
    """A line with the op, the shapes and the engine."""
    shapes = " and ".join(_shape(operand.box.shape) for operand in tile.inputs)
    part = "" if tile.output.box.elements == prod(tile.output.tensor.shape) else f", the part {tile.output.box}"
    return f"{tile.op.name}: {tile.op.title}, {shapes} to {_shape(tile.output.box.shape)}{part}; on {engine}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def signature(function: TirFunction) -> str:
    parameters = list[str]()
    for each in function.parameters:
        pointer = declaration(each.dtype, each.name, written=each.access == "write")
        parameters.append(f"{C_TYPES[each.dtype]} {each.name}" if each.access == "value" else pointer)
    result = C_TYPES[function.result] if function.result else "void"
    return wrapped(f"{result} {function.name}({', '.join(parameters) or 'void'})")
