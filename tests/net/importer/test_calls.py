"""Kernels as data: TVM is given the same operators again, and nothing that a file says is taken for more than data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from tvm import relax, tirx

from npukit.errors import NpukitError
from npukit.host.budget import MODEL
from npukit.host.parallel import apart
from npukit.net.importer.calls import kernel_of, module_of
from npukit.net.importer.loops import FILE, LoopKernel, Step, load_kernels, save_kernels
from npukit.net.importer.lowering import function_of

R: Any = relax
GIVEN = ("float32", (4, 8))


def module(make: Callable[[Any, Any], list[Any]]) -> Any:
    """A function of two arrays, each result of `make` a variable of its own."""
    builder, given = R.BlockBuilder(), [R.Var(name, R.TensorType((4, 8), "float32")) for name in ("p0", "p1")]
    with builder.function("island", given):
        with builder.dataflow():
            *before, last = make(*given)
            for each in before:
                builder.emit(each)
            result = builder.emit_output(builder.normalize(last))
        builder.emit_func_output(result)
    return builder.finalize()


def scaled(x: Any) -> Any:
    integers = R.op.quantize(x, R.const(0.1, "float32"), R.const(-3, "int8"), axis=-1, out_dtype="int8")
    return R.op.dequantize(integers, R.const(0.1, "float32"), R.const(-3, "int8"), axis=-1)


MADE: dict[str, Callable[[Any, Any], list[Any]]] = {
    "no attributes": lambda x, y: [R.op.add(x, y)],
    "scalars of a type": lambda x, y: [R.op.add(scaled(x), y)],
    "numbers": lambda x, y: [R.op.clip(x, tirx.const(0, "int64"), tirx.const(6.5, "float64"))],
    "a shape": lambda x, y: [R.op.reshape(x, (8, 4))],
    "a tuple": lambda x, y: [R.op.concat([x, y, x], axis=1)],
    "a type": lambda x, y: [R.op.astype(x, "int8")],
    "lists": lambda x, y: [R.op.permute_dims(R.op.matmul(x, R.op.permute_dims(y, [1, 0])), [1, 0])],
    "nothing for a list": lambda x, y: [R.op.sum(x, axis=None, keepdims=True)],
    "an infinity": lambda x, y: [R.op.maximum(x, R.const(float("-inf"), "float32"))],
}


@pytest.mark.parametrize("what", MADE)
def test_it_is_the_same_module_again(what: str, tmp_path: Path) -> None:
    made = module(MADE[what])
    kernel = kernel_of(made)
    assert kernel
    save_kernels({"key": kernel}, tmp_path)
    (read,) = load_kernels(tmp_path).values()
    assert read == kernel
    assert tvm_ffi.structural_equal(module_of(read)["island"], made["island"])


def test_loops_of_an_importer_are_no_data() -> None:
    from tvm import te

    def loops(x: Any, _: Any) -> list[Any]:
        builder = R.BlockBuilder()
        return [builder.call_te(lambda a: te.compute(a.shape, lambda i, j: a[i, j] + tirx.const(1.0, "float32")), x)]

    assert kernel_of(module(loops)) is None


def kernel(*steps: Step) -> LoopKernel:
    return LoopKernel("evil", (GIVEN, GIVEN), steps)


HOSTILE = {
    "no operator": kernel(Step("nothing", (0,), None, {})),
    "another kind of operator": kernel(Step("../tirx.call_extern", (0,), None, {})),
    "a call of whatever has a name": kernel(Step("call_pure_packed", (0,), None, {})),
    "a print": kernel(Step("print", (0,), None, {})),
    "loops of its own": kernel(Step("call_tir", (0, [1]), None, {})),
    "a value that is not there": kernel(Step("add", (0, 7), None, {})),
    "its own result": kernel(Step("add", (0, 2), None, {})),
    "too few operands": kernel(Step("add", (0,), None, {})),
    "no attributes": kernel(Step("nn.softmax", (0,), None, {})),
    "attributes of another": kernel(Step("nn.softmax", (0,), "Conv2DAttrs", {"groups": 1})),
    "attributes of none": kernel(Step("nn.softmax", (0,), "../ir.DictAttrs", {"axis": 1})),
    "an attribute of another type": kernel(Step("nn.softmax", (0,), "SoftmaxAttrs", {"axis": [1]})),
    "an axis that is not there": kernel(Step("nn.softmax", (0,), "SoftmaxAttrs", {"axis": 9})),
    "several results": kernel(Step("split", (0,), "SplitAttrs", {"indices_or_sections": 2, "axis": 0})),
    "no steps": kernel(),
    "no such type": replace(kernel(Step("add", (0, 1), None, {})), parameters=(("handle", (4,)), GIVEN)),
    "a huge result": kernel(Step("full", ({"shape": [1 << 62, 1 << 62]}, 0), None, {})),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_kernel_is_an_error(what: str) -> None:
    with pytest.raises(NpukitError):
        apart(partial(lowered, HOSTILE[what]), FILE, MODEL)


def lowered(hostile: LoopKernel) -> None:
    function_of(hostile)


@pytest.mark.parametrize(
    "text",
    [
        '{"key": {"name": "x", "relax": "{}"}}',
        '{"key": {"name": "x", "parameters": [], "steps": []}}',
        '{"key": {"name": "x", "parameters": [], "steps": [{"operator": "add", "operands": [-1], "form": null}]}}',
        '{"key": {"name": "x", "parameters": [["float32", [9]]], "steps": [{"operator": "add",'
        ' "operands": [{"object": 1}], "form": null, "attributes": {}}]}}',
        "[" * 100_000,
        "null",
    ],
)
def test_a_file_of_other_things_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(NpukitError, match="cannot be read"):
        load_kernels(tmp_path)
