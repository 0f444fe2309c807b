"""Constants and shapes are computed at import: TFLite's against LiteRT, single operators against numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from tvm import relax

from frontend.tflite_models import Model, run_litert
from npukit.errors import NpukitError
from npukit.frontend.fold import FoldingBuilder, constant_of, value_of
from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

SHAPE = (2, 3, 4)
operators: Any = relax.op


def flattened(folder: Path) -> Path:
    """A dense layer on the last axis, as Keras writes it: the shape around the layer is computed from the input's. The
    batch is open; declared sizes are those of a batch of one."""
    model = Model()
    model.inputs.append(model.tensor("x", (1, 3, 4), dtype="float32"))
    for name, value in (("kept", [0, 1]), ("zero", [0]), ("last", [2]), ("begin", [0]), ("end", [1]), ("one", [1])):
        model.constant(name, np.array(value, np.int32))
    for name, shape in (
        ("shape", (3,)),
        ("outer", (2,)),
        ("count", ()),
        ("rows", (1,)),
        ("batch", ()),
        ("width", (1,)),
    ):
        model.tensor(name, shape, dtype="int32")
    model.op("SHAPE", ["x"], ["shape"], "Shape", OutType=tflite.TensorType.INT32)
    model.op("GATHER", ["shape", "kept"], ["outer"], "Gather")
    model.op("REDUCE_PROD", ["outer", "zero"], ["count"], "Reducer")
    model.op("GATHER", ["shape", "last"], ["width"], "Gather")
    model.op("PACK", ["count"], ["rows"], "Pack", ValuesCount=1)
    model.op("CONCATENATION", ["rows", "width"], [model.tensor("flat", (2,), dtype="int32")], "Concatenation")
    model.op("RESHAPE", ["x", "flat"], [model.tensor("lines", (1, 4), dtype="float32")], "Reshape")
    model.constant("w", np.random.default_rng(1).normal(0, 1, (2, 4)).astype(np.float32))
    model.op("FULLY_CONNECTED", ["lines", "w"], [model.tensor("made", (1, 2), dtype="float32")], "FullyConnected")
    model.op("STRIDED_SLICE", ["shape", "begin", "end", "one"], ["batch"], "StridedSlice", ShrinkAxisMask=1)
    for name, value in (("three", 3), ("two", 2)):
        model.constant(name, np.array(value, np.int32))
    model.tensor("whole", (3,), dtype="int32")
    model.op("PACK", ["batch", "three", "two"], ["whole"], "Pack", ValuesCount=3)
    model.op("RESHAPE", ["made", "whole"], [model.tensor("y", (1, 3, 2), dtype="float32")], "Reshape")
    model.signatures |= {"x": (-1, 3, 4), "lines": (-1, 4), "made": (-1, 2), "y": (-1, 3, 2)}
    (folder / "model.tflite").write_bytes(model.bytes(["y"]))
    return folder / "model.tflite"


def test_sizes_computed_from_an_open_batch(tmp_path: Path) -> None:
    path, data = flattened(tmp_path), np.random.default_rng(2).normal(0, 1, (1, 3, 4)).astype(np.float32)
    (got,) = run_reference(load_model(path, in_float=True).net, [data])
    np.testing.assert_allclose(got, run_litert(path, [data])[0], rtol=1e-5)
    several = load_model(path, in_float=True, input_shapes={"x": (5, 3, 4)}).net
    assert several.tensor(several.outputs[0]).shape == (5, 3, 2)


A = np.arange(24, dtype=np.int64).reshape(SHAPE) - 9
B = np.where(A == 0, 1, A).astype(np.float32)
CALLS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "power of 40": (lambda a, b: operators.multiply(a, constant_of(np.array(1 << 40))), A * (1 << 40)),
    "nested": (lambda a, b: operators.add(operators.abs(a), operators.negative(a)), np.abs(A) - A),
    "integers": (lambda a, b: operators.divide(a, constant_of(np.array(4))), np.trunc(A / 4).astype(np.int64)),
    "floors": (lambda a, b: operators.floor_divide(a, constant_of(np.array(-4))), A // -4),
    "rests": (lambda a, b: operators.floor_mod(a, constant_of(np.array(-4))), A % -4),
    "sum": (lambda a, b: operators.sum(a, [0, 2]), A.sum((0, 2))),
    "product": (lambda a, b: operators.prod(b, [1], True), B.prod(1, keepdims=True)),
    "backwards": (lambda a, b: operators.strided_slice(a, [2, 1], [3, 0], [-(1 << 31), 2], [-2, 1]), A[:, :2, ::-2]),
    "taken": (lambda a, b: operators.take(a, constant_of(np.array([2, 9, -1])), 1, mode="clip"), A[:, [2, 2, 0]]),
    "cut": (lambda a, b: operators.split(a, [1], 1)[1], A[:, 1:]),
    "joined": (lambda a, b: operators.concat([a, a], -1), np.concatenate([A, A], -1)),
    "around": (lambda a, b: operators.nn.pad(b, [0, 0, 1, 2, 0, 0]), np.pad(B, ((0, 0), (1, 2), (0, 0)))),
    "sums": (lambda a, b: operators.cumsum(a, 1), A.cumsum(1)),
    "whole": (lambda a, b: operators.astype(b, "int32"), B.astype(np.int32)),
    "place": (lambda a, b: operators.argmax(a, 1), A.argmax(1)),
    "turned": (lambda a, b: operators.permute_dims(a, [2, 0, 1]), A.transpose(2, 0, 1)),
    "flipped": (lambda a, b: operators.flip(a, 2), A[..., ::-1]),
    "broadcast": (lambda a, b: operators.broadcast_to(a, [5, *SHAPE]), np.broadcast_to(A, (5, *SHAPE))),
    "chosen": (lambda a, b: operators.where(operators.greater(a, constant_of(np.array(0))), a, a), A),
    "counted": (lambda a, b: operators.arange(3, 9, 2, "int64"), np.array([3, 5, 7])),
    "limited": (lambda a, b: operators.clip(b, -2.5, 3), np.clip(B, np.float32(-2.5), 3)),
}


def emitted(call: Callable[[], Any]) -> Any:
    """The result of emitting a call in a function."""
    builder = FoldingBuilder()
    with builder.function("main", []):
        with builder.dataflow():
            made = builder.emit(call())
            last = builder.emit_output(constant_of(A))
        builder.emit_func_output(last)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_constants(name: str) -> None:
    call, wanted = CALLS[name]
    made = value_of(emitted(lambda: call(constant_of(A), constant_of(B))))
    assert made is not None
    assert made.dtype == wanted.dtype
    assert np.array_equal(made, wanted)


def test_a_division_by_zero_stays() -> None:
    made = emitted(lambda: operators.floor_divide(constant_of(A), constant_of(np.array(0))))
    assert isinstance(made, relax.Var)


def test_constants_of_any_size_are_refused() -> None:
    """A few bytes can ask for a constant of gigabytes."""
    with pytest.raises(NpukitError, match="elements"):
        emitted(lambda: operators.broadcast_to(constant_of(A), [1 << 30, *SHAPE]))
