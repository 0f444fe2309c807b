"""Kernels of TVM in several loops: made row by row, so that PEs may share them, without a bit of difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tvm import relax

from npukit.net.c_code.rows import rows_of
from npukit.net.importer import lowering
from npukit.net.importer.expressions import shape_of
from npukit.net.importer.lowering import code_of
from npukit.net.importer.schedules import ISLAND
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor

relax_ir: Any = relax
nn: Any = relax.op.nn
op: Any = relax.op
Shape = tuple[int, ...]
ROWS = (1, 3, 6, 8)


def shuffled(x: Any, weights: Any) -> Any:
    """A channel shuffle behind a convolution: the rows of the result are not those of the sums."""
    made = op.reshape(nn.conv2d(x, weights, padding=1), (1, 2, 4, 6, 8))
    return op.permute_dims(made, (0, 2, 1, 3, 4))


def heads(x: Any, weights: Any) -> Any:
    """The product of an attention, by heads."""
    return op.permute_dims(op.reshape(op.matmul(x, weights), (6, 3, 16)), (1, 0, 2))


def windows(x: Any, y: Any) -> Any:
    """The product of an attention in windows as an exporter writes it: TVM cannot solve its places."""
    made = op.permute_dims(op.reshape(op.matmul(x, y), (16, 2, 4, 1, 1, 16)), (4, 0, 1, 2, 5, 3))
    apart = op.permute_dims(op.reshape(made, (1, 16, 2, 4, 16)), (0, 1, 3, 2, 4))
    return nn.relu(op.reshape(apart, (1, 16, 4, 32)))


KERNELS: dict[str, tuple[Callable[..., Any], tuple[Shape, ...]]] = {
    "softmax": (lambda x: nn.softmax(x, axis=-1), (ROWS,)),
    "softmax of channels": (lambda x: nn.softmax(x, axis=1), (ROWS,)),
    "layer norm": (lambda x, s, t: nn.layer_norm(x, s, t, axes=[-1]), (ROWS, (8,), (8,))),
    "channel shuffle": (shuffled, (ROWS, (8, 3, 3, 3))),
    "heads": (heads, ((6, 1, 16), (16, 48))),
    "windows": (windows, ((32, 4, 4), (32, 4, 16))),
}
WHOLE = ("softmax of channels",)
"""Kernels that take numbers of all rows for each."""


def net_of(compute: Callable[..., Any], shapes: tuple[Shape, ...]) -> Net:
    """A net of the kernel alone."""
    names = [f"x{place}" for place in range(len(shapes))]
    builder = relax.BlockBuilder()
    given = [relax.Var(name, relax_ir.TensorType(shape, "float32")) for name, shape in zip(names, shapes, strict=True)]
    with builder.function(ISLAND, given):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(compute(*given)))
        builder.emit_func_output(result)
    code = code_of(builder.finalize())
    tensors = {name: Tensor(name, shape, "float32") for name, shape in zip(names, shapes, strict=True)}
    tensors["r"] = Tensor("r", shape_of(result), "float32")
    attributes = TvmCode("o", code.body, code.work_bytes, cycles=code.cycles, loop=code.loop, rows=code.rows)
    kernel = Op("o", attributes, tuple(names), ("r",))
    return Net("net", tuple(names), ("r",), (kernel,), tensors, {})


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_rows_are_divided_and_no_bit_of_them_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = net_of(*KERNELS[name])
    monkeypatch.setattr(lowering, "row_by_row", lambda function: None)
    as_written = net_of(*KERNELS[name])
    assert rows_of(as_written, as_written.ops[0]) is None
    assert (rows_of(by_rows, by_rows.ops[0]) is None) == (name in WHOLE)
    random = np.random.default_rng(2)
    given = [random.standard_normal(shape).astype(np.float32) for shape in KERNELS[name][1]]
    np.testing.assert_array_equal(run_reference(by_rows, given)[0], run_reference(as_written, given)[0])
