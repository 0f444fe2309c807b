"""Lowering of Relax operators to C without a runtime: legalised, fused to one function, inlined and printed by TVM."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any, cast

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, s_tir, tirx
from tvm.ir import IRModule, PointerType, PrimType

from npukit.errors import NpukitError, first_line
from npukit.net.c_code.function import INT8_OF, INT8_OF_RATIO, MATH
from npukit.net.importer import loops
from npukit.net.importer.calls import kernel_of, module_of
from npukit.net.importer.legal.images import OWN
from npukit.net.importer.loops import AS_WRITTEN, LoopArrangement, LoopKernel, LoopsInC
from npukit.net.importer.schedules import ISLAND, name_of, opened, row_by_row, scheduled
from npukit.net.importer.tir.cycles import cycles
from npukit.net.importer.tir.rows import nest_of, rows_of_loops
from npukit.net.net import Net
from npukit.net.ops import TvmCode

transforms: Any = relax.transform
backend: Any = relax.backend
schedules: Any = s_tir.transform
passes: Any = tirx.transform

LARGEST_LOCAL = 128
"""Maximum bytes of an array on the stack. Larger arrays lie in the workspace."""
_ALIGNMENT = 8

_AGAIN = ("build again",)

_BODY = re.compile(rf"^[^\n]*\b{ISLAND}\([^\n]*\) \{{\n(.*?)^\}}", re.M | re.S)
_WORK = re.compile(r"(\w+)\* (\w+) = \(\(\1\*\)\(\(void\*\)\(\(char\*\)work \+ (\d+)\)\)\);")
_NUMBER = re.compile(r"FLOAT_OF\((-?\d+)\)")


def code_of(module: IRModule) -> LoopsInC:
    """The C code of the Relax function `island` with tensor parameters. Equal functions are compiled once."""
    made, alike = loops.current().made, tvm.ir.save_json(module)
    if alike not in made:
        with _faults_told():
            kernel = kernel_of(module)
            function = _fused(module_of(kernel) if kernel else module)
            tuning = loops.current()
            key = key_of(function, tuning.board)
            code = _arranged(function, tuning.arrangement(key))
            if kernel:
                tuning.kernels[key] = replace(kernel, name=name_of(opened(function)))
                tuning.code[key] = code.body
            made[alike] = code
    return made[alike]


@contextmanager
def _faults_told() -> Iterator[None]:
    """Turn TVM's faults into one-line errors."""
    try:
        yield
    except NpukitError:
        raise
    except Exception as fault:
        raise NpukitError(f"TVM cannot make code of it: {first_line(fault)!r}") from fault


def code_again(kernel: LoopKernel, arrangement: LoopArrangement) -> LoopsInC:
    """The code of a kernel in another arrangement of its loops."""
    with _faults_told():
        return _arranged(function_of(kernel), arrangement)


def _arranged(function: Any, arrangement: LoopArrangement) -> LoopsInC:
    """The code in an arrangement of its loops. A tuned arrangement is never replaced."""
    code = _printed(scheduled(function, arrangement))
    return _divisible(function, code) if arrangement == AS_WRITTEN else code


def _divisible(function: Any, code: LoopsInC) -> LoopsInC:
    """The code, or an equal row-by-row version if only the latter can be divided into tiles."""
    by_rows = None if code.rows else row_by_row(function)
    other = _printed(by_rows) if by_rows else code
    return other if other.rows else code


def function_of(kernel: LoopKernel) -> Any:
    """The loops of a kernel as written by TVM."""
    with _faults_told():
        return _fused(module_of(kernel))


def check_kernels(kernels: Mapping[str, LoopKernel], net: Net, board: str) -> None:
    """Raise an error if a kernel, perhaps from an untrusted file, does not match its layers' operands or its key."""
    operands = {
        op.name: tuple((net.tensor(name).dtype, net.tensor(name).shape) for name in op.inputs)
        for op in net.ops
        if isinstance(op.attributes, TvmCode)
    }
    for key, kernel in kernels.items():
        if {operands.get(name) for name in kernel.layers} != {kernel.parameters}:
            raise NpukitError(f"{loops.FILE}: {kernel.name} does not compute {kernel.layers}", tries=_AGAIN)
        if key_of(function_of(kernel), board) != key:
            raise NpukitError(f"{loops.FILE}: {kernel.name} is not the kernel {key}", tries=_AGAIN)


def key_of(function: Any, board: str) -> str:
    """The key of a kernel for a board: a hash of both. The kernel's shapes and types are part of it."""
    module = IRModule({ISLAND: function.with_attr("global_symbol", ISLAND)})
    return hashlib.sha256(f"{board} {module.script()}".encode()).hexdigest()[:32]


def legalized(module: IRModule) -> IRModule:
    """The module with operators replaced by loops: npukit's own if defined, else TVM's for the current target."""
    begun = transforms.LegalizeOps(OWN, skip_ops=SORTS)(module)
    return _from_begin(transforms.LegalizeOps(OWN)(backend.DispatchSortScan()(begun)))


def _from_begin(module: IRModule) -> IRModule:
    """The module with tensors that begin where their buffers begin. TVM leaves this open in loops of scatters."""
    found: list[tuple[Any, Any]] = list(module.functions_items())
    for name, function in found:
        if isinstance(function, tirx.PrimFunc):
            kinds = [(each, each.ty) for each in cast(Any, function).params]
            at_begin = {
                each: tirx.decl_buffer(kind.shape, kind.dtype, each.name)
                for each, kind in kinds
                if isinstance(getattr(kind, "elem_offset", None), relax.Var | tirx.Var)
            }
            module[name] = cast(Any, function).specialize(at_begin) if at_begin else function
    return module


SORTS = ["relax.argsort", "relax.sort", "relax.topk"]
"""Operators whose loops depend on the target."""


def _fused(module: IRModule) -> Any:
    """The whole module as one TIR function."""
    island: Any = module[ISLAND]
    builder = relax.BlockBuilder(module)
    arguments: list[Any] = [relax.Var(parameter.name, parameter.ty) for parameter in island.params]
    with builder.function("main", arguments):
        with builder.dataflow():
            result = builder.emit_output(tvm.ir.Call(module.get_global_var(ISLAND), arguments))
        builder.emit_func_output(result)
    whole = builder.finalize()
    whole[ISLAND] = island.with_attr("Primitive", True)
    with tvm.target.Target("c"):
        fused = transforms.FuseTIR()(legalized(whole))
    function = fused[ISLAND]
    if not isinstance(function, tirx.PrimFunc):
        raise NpukitError("TVM does not make loops of it")
    return function


def _printed(module: IRModule) -> LoopsInC:
    target = tvm.target.Target("c")
    for own in loops.current().own:
        module = own(module)
    begun = tvm.transform.Sequential([passes.BindTarget(target), *_LOWERING_OF_BLOCKS])(module)
    looped = tvm.transform.Sequential(_LOWERING_OF_LOOPS)(begun)
    loop, rows = rows_of_loops(looped[ISLAND], nest_of(begun[ISLAND]))
    lowered = tvm.transform.Sequential([passes.CommonSubexprElim(), passes.VerifyMemory()])(looped)
    function, work_bytes = _unpacked(lowered[ISLAND])
    ready = tvm.transform.Sequential([passes.LowerTVMBuiltin(), passes.LowerIntrin()])(IRModule({ISLAND: function}))
    whole = _with_steps(_with_functions(_with_narrow_results(ready[ISLAND])))
    exact = IRModule({ISLAND: _with_scopes(_with_exact_numbers(whole))})
    source = tvm.get_global_func("target.build.c")(exact, target).inspect_source()
    found = _BODY.search(source)
    if found is None:
        raise NpukitError("TVM prints no function for it")
    body = _WORK.sub(r"\1 *\2 = (\1 *)(void *)(work + \3);", _NUMBER.sub(_spelled, found[1]))
    return LoopsInC(body, work_bytes, cycles(whole), loop, rows)


_LOWERING_OF_BLOCKS = (
    schedules.CanonicalizeLoop(),
    schedules.LowerInitBlock(),
    schedules.PlanAndUpdateBufferAllocationLocation(),
    schedules.ConvertBlocksToOpaque(),
    schedules.CompactBufferAllocation(),
    schedules.LowerMatchBuffer(),
    schedules.StmtSimplify(),
    schedules.LowerOpaqueBlock(),
    passes.FlattenBuffer(),
    passes.NarrowDataType(32),
    schedules.LoopPartition(),
    passes.VectorizeLoop(False),
)
"""TVM's lowering passes in TVM's order, except passes of its runtime. Each local array is in the loops that use it."""
_LOWERING_OF_LOOPS = (
    passes.StorageRewrite(),
    schedules.HoistIfThenElse(),
    passes.UnrollLoop(),
    schedules.RenormalizeSplitPattern(),
    passes.StmtSimplify(),
    passes.RemoveNoOp(),
    schedules.RewriteUnsafeSelect(),
)
"""The next passes, which move local arrays out of the loops."""


def _unpacked(function: Any) -> tuple[Any, int]:
    """The function with pointers instead of buffers, and the size of its workspace in bytes."""
    body, work, work_bytes = _with_workspace(function.body)
    names = [*(f"p{index}" for index in range(len(function.params) - 1)), "output"]
    pointers = [
        tirx.Var(name, PointerType(PrimType(str(given.ty.dtype.dtype))))
        for name, given in zip(names, function.params, strict=True)
    ]
    declared = [tirx.DeclBuffer(given, data=new) for given, new in zip(function.params, pointers, strict=True)]
    parameters = [*pointers, *([work] if work_bytes else [])]
    whole = tirx.stmt_seq(*declared, body)
    return tirx.PrimFunc(parameters, whole, ret_type=function.ret_type, attrs=function.attrs), work_bytes


def _with_workspace(body: Any) -> tuple[Any, Any, int]:
    """The body with large local arrays moved to one workspace, the workspace pointer, and its size in bytes."""
    used, work = 0, tirx.Var("work", PointerType(PrimType("uint8")))

    def placed(node: Any) -> Any:
        nonlocal used
        kind = node.buffer.ty
        size = prod(map(int, kind.shape)) * np.dtype(str(kind.dtype.dtype)).itemsize
        if size <= LARGEST_LOCAL:
            return node
        start, used = used, -(-(used + size) // _ALIGNMENT) * _ALIGNMENT
        return tirx.DeclBuffer(node.buffer, data=tirx.handle_add_byte_offset(work, start))

    return tvm_ffi.structural_map(body, (tirx.AllocBuffer, placed)), work, used


def _with_functions(function: Any) -> Any:
    """The function with libm calls for functions that TVM cannot print as C."""

    def named(call: Any) -> Any:
        name = getattr(call.op, "name", "").removeprefix("tirx.") + "f"
        return tirx.call_extern("float32", name, *call.args) if name in MATH else call

    return _changed(function, tvm.ir.Call, named)


_INT8 = 127.0, -128.0


def _with_steps(function: Any) -> Any:
    """The function with a call for each real number that is rounded to int8: few instructions on a core with floats."""

    def called(cast: Any) -> Any:
        limits = [
            each for each in (cast.value, getattr(cast.value, "a", None)) if isinstance(each, tirx.Min | tirx.Max)
        ]
        if str(cast.ty.dtype) != "int8" or [getattr(each.b, "value", None) for each in limits[::-1]] != [*_INT8]:
            return cast
        rounded, zero = limits[-1].a, 0
        if isinstance(rounded, tirx.Add) and isinstance(rounded.b, tirx.FloatImm):
            rounded, zero = rounded.a, int(rounded.b.value)
        if not isinstance(rounded, tvm.ir.Call) or getattr(rounded.args[0], "value", "") != "nearbyintf":
            return cast
        steps = _ratio(rounded.args[1]) or (INT8_OF, rounded.args[1])
        return tirx.Cast("int8", tirx.call_extern("int32", *steps, tirx.const(zero, "int32")))

    return _changed(function, tirx.Cast, called)


def _ratio(value: Any) -> tuple[Any, ...] | None:
    """A quotient by a number whose inverse is no end of a float, as a call's first arguments."""
    step = getattr(value.b, "value", 0.0) if isinstance(value, tirx.Div) else 0.0
    if not _LEAST_STEP <= step <= 1 / _LEAST_STEP:
        return None
    inverse = np.float32(1) / np.float32(step)
    return INT8_OF_RATIO, value.a, value.b, tirx.const(float(inverse), "float32")


_LEAST_STEP = 2.0**-100
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Mod, tirx.Min, tirx.Max)
_NARROW = ("int8", "int16", "uint8", "uint16")


def _with_narrow_results(function: Any) -> Any:
    """The function with casts after narrow arithmetic: C computes as int, but TVM expects results to wrap."""

    def narrow(node: Any) -> Any:
        dtype = str(node.ty.dtype)
        if dtype not in _NARROW:
            return node
        wide = (tirx.Cast("int32", operand) for operand in (node.a, node.b))
        return tirx.Cast(dtype, type(node)(*wide))

    return _changed(function, _ARITHMETIC, narrow)


def _with_exact_numbers(function: Any) -> Any:
    """The function with exact float literals. TVM prints only seven digits."""

    def exact(node: Any) -> Any:
        if str(node.ty.dtype if hasattr(node.ty, "dtype") else node.dtype) != "float32":
            raise NpukitError(f"it computes in {node.ty}; npukit computes in float32")
        bits = np.float32(node.value).view(np.int32)
        return tirx.call_extern("float32", "FLOAT_OF", tirx.const(int(bits), "int32"))

    return _changed(function, tirx.FloatImm, exact)


def _with_scopes(function: Any) -> Any:
    """The function with a scope around a running maximum or minimum outside its loop, as of a single number. TVM prints
    its operands as variables, and would take their old values in the next statements of the same scope."""

    def scoped(sequence: Any) -> Any:
        always = tirx.const(1, "int32")
        return tirx.SeqStmt(
            [tirx.IfThenElse(always, each, None) if _accumulates(each) else each for each in sequence.seq]
        )

    return _changed(function, tirx.SeqStmt, scoped)


def _accumulates(statement: Any) -> bool:
    value = statement.value if isinstance(statement, tirx.BufferStore) else None
    return isinstance(value, (tirx.Min, tirx.Max)) and any(
        isinstance(each, tvm.ir.TensorLoad) and each.source.same_as(statement.buffer) for each in (value.a, value.b)
    )


def _changed(function: Any, kinds: Any, change: Callable[[Any], Any]) -> Any:
    """The function with `change` of each node of the kinds."""
    body = tvm_ffi.structural_map(function.body, (kinds, change))
    return tirx.PrimFunc(function.params, body, ret_type=function.ret_type, attrs=function.attrs)


def _spelled(bits: re.Match[str]) -> str:
    """A float literal in C with as many digits as necessary, in parentheses if negative."""
    value = np.int32(bits[1]).view(np.float32)
    if np.isnan(value):
        return "(0.0f / 0.0f)"
    if np.isinf(value):
        return "(1.0f / 0.0f)" if value > 0 else "(-1.0f / 0.0f)"
    digits = str(value) if "." in str(value) else str(value).replace("e", ".0e")
    return f"{digits}f" if value >= 0 else f"({digits}f)"
