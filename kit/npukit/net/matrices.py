"""The matrices of a product of two activations, as its inputs and its output hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from npukit.net.net import Op
from npukit.net.ops import Matmul

Each = TypeVar("Each")


def transposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """One value for each axis of a tensor, for the axes of its transpose; without `axes` as they are."""
    return tuple(values[axis] for axis in axes) if axes else tuple(values)


def untransposed(values: Sequence[Each], axes: Sequence[int]) -> tuple[Each, ...]:
    """One value for each axis of a tensor, given those for the axes of its transpose."""
    return tuple(values[axes.index(axis)] for axis in range(len(axes))) if axes else tuple(values)


def operand_axes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transpositions of both inputs of a product."""
    assert isinstance(op.attributes, Matmul)
    return op.attributes.first, op.attributes.second
