"""The core's kernels as C: one function for each tile the core computes, equal functions once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

from npukit.accel.interface import ConstantArray, Tile
from npukit.codegen.c_text import function_bodies, wrapped
from npukit.codegen.tir_ops import blend, elementwise, filters, movement, pooling, softmax, transposed
from npukit.codegen.tir_ops.fixed_point import helper_functions
from npukit.codegen.tvm_door import Function, Parameter, define, print_c
from npukit.errors import NpukitError

KERNELS: Mapping[str, Callable[..., None]] = {
    "add": elementwise.add,
    "argmax": movement.argmax,
    "average_pool": pooling.average_pool,
    "concat": movement.concat,
    "conv2d": filters.conv2d,
    "dense": filters.dense,
    "depthwise_conv2d": filters.depthwise_conv2d,
    "lookup": elementwise.lookup,
    "matmul": transposed.matmul,
    "max_pool": pooling.max_pool,
    "maximum": elementwise.maximum,
    "mean": blend.mean,
    "minimum": elementwise.minimum,
    "multiply": elementwise.multiply,
    "pad": movement.pad,
    "prelu": elementwise.prelu,
    "quantize": elementwise.quantize,
    "requantize": elementwise.requantize_op,
    "resize_bilinear": blend.resize_bilinear,
    "resize_nearest": blend.resize_nearest,
    "slice": movement.slice_,
    "softmax": softmax.softmax,
    "subtract": elementwise.subtract,
    "top_k": movement.top_k,
    "transpose": movement.transpose,
    "transpose_conv2d": transposed.transpose_conv2d,
}
"""For each kind, what writes a kernel's statements: (tile, inputs..., constants..., output)."""

_INPUT_NAMES = {1: ["input"], 2: ["first", "second"]}

C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float32": "float",
}


@dataclass(frozen=True)
class Kernel:
    """A tile the core computes, as a TIR function."""

    tile: Tile
    function: Function


@dataclass(frozen=True)
class CFunction:
    """A function as C. `comment` says what it is."""

    name: str
    signature: str
    body: str
    comment: str


def kernel(tile: Tile, constants: Iterable[ConstantArray]) -> Kernel:
    """The kernel of a tile of any kind the core has."""
    if tile.op.kind not in KERNELS:
        raise NpukitError(f"{tile.op.name}: the core has no kernel for {tile.op.kind}", tries=["npukit ops"])
    body = KERNELS[tile.op.kind]
    parameters = _parameters(tile, constants)
    return Kernel(tile, define(tile.name, parameters, lambda *arrays: body(tile, *arrays)))


def _parameters(tile: Tile, constants: Iterable[ConstantArray]) -> list[Parameter]:
    names = _INPUT_NAMES.get(len(tile.inputs)) or [f"input_{i}" for i in range(len(tile.inputs))]
    inputs = [Parameter(name, x.tensor.dtype) for name, x in zip(names, tile.inputs, strict=True)]
    given = [Parameter(c.symbol.removeprefix(f"{tile.name}_"), str(c.values.dtype)) for c in constants]
    return [*inputs, *given, Parameter("output", tile.output.tensor.dtype, "write")]


def helpers_as_c() -> list[CFunction]:
    """The arithmetic all kernels share."""
    described = helper_functions()
    bodies = function_bodies(print_c([function for _, function in described]))
    return [CFunction(f.name, signature(f), bodies[f.name], comment) for comment, f in described]


def kernels_as_c(kernels: list[Kernel]) -> tuple[list[CFunction], dict[str, str]]:
    """The distinct kernels, and for every tile's name the kernel that computes it."""
    bodies = function_bodies(print_c([k.function for k in kernels])) if kernels else {}
    alike: dict[tuple[str, str], list[Kernel]] = {}
    for each in kernels:
        name = each.function.name
        alike.setdefault((signature(each.function).replace(name, "", 1), bodies[name]), []).append(each)
    functions = [_shared(same, body) for (_, body), same in alike.items()]
    return functions, {k.function.name: same[0].function.name for same in alike.values() for k in same}


def _shared(same: list[Kernel], body: str) -> CFunction:
    first = same[0].function
    comment = "\n".join(describe(each.tile, "the core") for each in same)
    return CFunction(first.name, signature(first), body, comment)


def describe(tile: Tile, engine: str) -> str:
    """One line: the op, its shapes, its engine."""
    shapes = " and ".join(_shape(operand.box.shape) for operand in tile.inputs)
    part = "" if tile.output.box.elements == prod(tile.output.tensor.shape) else f", the part {tile.output.box}"
    return f"{tile.op.name}: {tile.op.title}, {shapes} to {_shape(tile.output.box.shape)}{part}; on {engine}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def signature(function: Function) -> str:
    parameters = ", ".join(_declaration(parameter) for parameter in function.parameters) or "void"
    result = C_TYPES[function.result] if function.result else "void"
    return wrapped(f"{result} {function.name}({parameters})")


def _declaration(parameter: Parameter) -> str:
    kind = C_TYPES[parameter.dtype]
    if parameter.access == "value":
        return f"{kind} {parameter.name}"
    return f"{'const ' if parameter.access == 'read' else ''}{kind} *restrict {parameter.name}"
