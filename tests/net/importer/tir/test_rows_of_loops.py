"""Rows of TVM's kernels, from TIR: which loops compute rows, and what their steps read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import relax, te, tirx

from npukit.net.importer.lowering import code_of
from npukit.net.importer.schedules import ISLAND
from npukit.net.ops import RowReads

ir: Any = tirx
tensors: Any = te
SHAPE = (1, 6, 4, 1)
COUNT, COLUMNS = (6, 0, 1, 1), (4, 0, 1, 1)
HELD = ((3, 2, 3, 0), (3, 3, 4, 1))
Element = Callable[..., Any]


def rows_of(element: Element, shape: tuple[int, ...] = SHAPE) -> tuple[int, tuple[RowReads, ...]]:
    """The loop and the reads of a kernel that computes each element of an array from one of its shape."""
    relax_ir: Any = relax
    builder, given = relax.BlockBuilder(), relax.Var("x", relax_ir.TensorType(shape, "float32"))
    with builder.function(ISLAND, [given]):
        with builder.dataflow():
            made = builder.emit_te(lambda x: tensors.compute(shape, lambda *at: element(x, *at)), given)
            result = builder.emit_output(made)
        builder.emit_func_output(result)
    code = code_of(builder.finalize())
    return code.loop, code.rows


KERNELS: dict[str, tuple[Element, tuple[tuple[Any, ...], ...], tuple[int, int]]] = {
    "each of its own": (lambda x, n, y, c, k: x[n, y, c, k], ((COUNT,), (COLUMNS,)), (4, 1)),
    "rows around": (
        lambda x, n, y, c, k: ir.if_then_else(ir.all(y >= 1, y < 5), x[n, y - 1, c, k] + x[n, y + 1, c, k], 0.0),
        (((1, 0, 2, 0), (4, 0, 3, 1), (1, 4, 6, 0)),),
        (0, 1),
    ),
    "half as many": (
        lambda x, n, y, c, k: x[n, y // 2, c, k],
        (((2, 0, 1, 0), (2, 1, 2, 0), (2, 2, 3, 0)), (COLUMNS,)),
        (0, 1),
    ),
    "in turn": (lambda x, n, y, c, k: x[n, (y + 1) % 6, c, k], (((5, 1, 2, 1), (1, 0, 1, 0)), (COLUMNS,)), (0, 1)),
    "within bounds": (lambda x, n, y, c, k: x[n, ir.max(y, 2), c, k], (HELD, (COLUMNS,)), (0, 1)),
    "beyond bounds": (lambda x, n, y, c, k: x[n, y, ir.min(c, 2), k], ((COUNT,),), (4, 0)),
    "a place that the data states": (lambda x, n, y, c, k: x[n, x[n, 0, c, k].astype("int32"), c, k], (), (0, 1)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_the_steps_read(name: str) -> None:
    element, spans, moves = KERNELS[name]
    loop, (output, read) = rows_of(element)
    assert (loop, output.spans) == (0, ((COUNT,), (COLUMNS,)))
    assert read == RowReads(spans, moves)


@pytest.mark.parametrize(("shape", "count"), [((1, 3, 8), 2), ((3, 8), 2), ((1, 3, 8, 2), 2), ((3, 4, 8), 1)])
def test_a_row_is_cut_along_its_numbers_where_a_box_may_be(shape: tuple[int, ...], count: int) -> None:
    _, (output, read) = rows_of(lambda x, *at: x[at], shape)
    assert output == read
    assert len(output.spans) == count


def test_loops_whose_steps_differ_in_more_than_subscripts() -> None:
    """A value that depends on the row, a choice by the column, a subscript that does not move evenly."""
    made: dict[tuple[int, int], Element] = {
        (4, 1): lambda x, n, y, c, k: x[n, y, c, k],
        (0, 1): lambda x, n, y, c, k: x[n, y, c, k] + y.astype("float32"),
        (4, 0): lambda x, n, y, c, k: ir.if_then_else(c < 2, x[n, y, c, k], 1.0),
        (0, 0): lambda x, n, y, c, k: x[n, y // 2, c, k] + x[n, y, c // 2, k],
    }
    for moves, element in made.items():
        _, (output, _) = rows_of(element)
        assert output.moves == moves
