"""Loops over the pixels of images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from npukit.codegen.tir.door import Expr, loop
from npukit.codegen.tir.ops.layout import Layout


@contextmanager
def each_pixel(layout: Layout) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Loops over image, row and pixel."""
    with loop("n", 0, layout.images) as n, loop("y", 0, layout.rows) as y, loop("x", 0, layout.pixels) as x:
        yield n, y, x
