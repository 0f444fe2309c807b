"""Loops over the pixels and the elements of layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from npukit.codegen.tir_ops.layout import Layout
from npukit.codegen.tvm_door import Expr, loop


@contextmanager
def each_pixel(layout: Layout) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Image, row and pixel."""
    with loop("n", 0, layout.images) as n, loop("y", 0, layout.rows) as y, loop("x", 0, layout.pixels) as x:
        yield n, y, x


@contextmanager
def each_element(layouts: Sequence[Layout]) -> Iterator[list[Expr]]:
    """Index in each layout of the elements that correspond; all have the same shape."""
    if all(layout.dense for layout in layouts):
        with loop("i", 0, layouts[0].elements) as i:
            yield [i] * len(layouts)
        return
    with each_pixel(layouts[0]) as (n, y, x), loop("c", 0, layouts[0].channels) as c:
        yield [layout.index(n, y, x, c) for layout in layouts]
