"""The places of an operand's elements, with strides in elements: images and arrays of any rank; loops over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.accel.cpu import operand_box
from npukit.accel.interface import Operand, Tile
from npukit.codegen.tir.door import Expr, Pointed, loop
from npukit.net.box import Box
from npukit.net.tensor import transposed

Shape = tuple[int, ...]

NAMES_OF_AN_IMAGE = ("n", "y", "x", "c")


@dataclass(frozen=True)
class Strided:
    """The layout of an array: shape, strides in elements, and the index of the first element."""

    shape: Shape
    strides: tuple[int, ...]
    base: int = 0

    @classmethod
    def dense(cls, shape: Shape) -> Strided:
        return cls(shape, tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))))

    @classmethod
    def of(cls, operand: Operand) -> Strided:
        """The strides of a box of a tensor."""
        item = np.dtype(operand.tensor.dtype).itemsize
        return cls(operand.box.shape, tuple(stride // item for stride in operand.strides))

    def index(self, position: Sequence[Expr]) -> Expr:
        """The index of an element. Axes of size 1 or stride 0 are left out."""
        index: Expr = self.base
        for place, stride, size in zip(position, self.strides, self.shape, strict=True):
            index = index + place * stride if size > 1 and stride else index
        return index

    def broadcast(self, shape: Shape) -> Strided:
        """The same elements, broadcast to a shape."""
        missing = [0] * (len(shape) - len(self.shape))
        strides = [0 if size == 1 else stride for size, stride in zip(self.shape, self.strides, strict=True)]
        return Strided(shape, (*missing, *strides), self.base)

    def transposed(self, axes: Sequence[int]) -> Strided:
        """The same elements with the axes in another order."""
        return Strided(transposed(self.shape, axes), transposed(self.strides, axes), self.base)

    def part(self, box: Box, held: Box) -> Strided:
        """The layout of `box` in an array that holds the box `held`."""
        base = sum(map(int.__mul__, box.offset_in(held), self.strides))
        return Strided(box.shape, self.strides, self.base + base)

    @property
    def is_dense(self) -> bool:
        """True if the elements are one run from index 0 on."""
        whole = Strided.dense(self.shape).strides
        return self.base == 0 and all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, whole, strict=True))

    @property
    def is_single(self) -> bool:
        """True if every position is the element at index 0."""
        return self.base == 0 and not any(self.strides)


@contextmanager
def each_position(shape: Shape, prefix: str = "") -> Iterator[list[Expr]]:
    """Nested loops, the last axis innermost."""
    names = NAMES_OF_AN_IMAGE if len(shape) == 4 else tuple(f"i{axis}" for axis in range(len(shape)))
    with ExitStack() as loops:
        yield [loops.enter_context(loop(f"{prefix}{name}", 0, size)) for name, size in zip(names, shape, strict=True)]


@contextmanager
def each_element(layouts: Sequence[Strided]) -> Iterator[list[Expr]]:
    """Indices of corresponding elements in layouts of the same shape. One loop if each layout is dense or single."""
    if all(layout.is_dense or layout.is_single for layout in layouts):
        with loop("i", 0, prod(layouts[0].shape)) as i:
            yield [0 if layout.is_single else i for layout in layouts]
        return
    with each_position(layouts[0].shape) as position:
        yield [layout.index(position) for layout in layouts]


def in_order(tile: Tile, arrays: Sequence[Pointed]) -> list[tuple[Pointed, Strided]]:
    """The inputs in the op's order. The kernel's order is activations, then constants."""
    activations, given, constants = iter(tile.inputs), iter(arrays), iter(arrays[len(tile.inputs) :])
    found = []
    for name in tile.op.inputs:
        box = operand_box(tile.net, tile.op, name, tile.output.box)
        if name in tile.net.constants:
            found.append((next(constants), Strided.dense(box.shape)))
        else:
            operand = next(activations)
            found.append((next(given), Strided.of(operand).part(box, operand.box)))
    return found


@dataclass(frozen=True)
class Layout:
    images: int
    rows: int
    pixels: int
    channels: int
    image_stride: int
    row_stride: int
    pixel_stride: int

    @classmethod
    def of(cls, operand: Operand) -> Layout:
        """The layout of an NHWC box, or of rows of features."""
        shape, item = operand.box.shape, np.dtype(operand.tensor.dtype).itemsize
        row, pixel = operand.row_stride // item, operand.pixel_stride // item
        if len(shape) == 4:
            images, rows, pixels, channels = shape
            return cls(images, rows, pixels, channels, operand.strides[0] // item, row, pixel)
        return cls(1, 1, prod(shape[:-1]), shape[-1] if shape else 1, 0, 0, pixel)

    def index(self, image: Expr, row: Expr, pixel: Expr, channel: Expr = 0) -> Expr:
        return image * self.image_stride + row * self.row_stride + pixel * self.pixel_stride + channel


@contextmanager
def each_pixel(layout: Layout) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Loops over image, row and pixel."""
    with loop("n", 0, layout.images) as n, loop("y", 0, layout.rows) as y, loop("x", 0, layout.pixels) as x:
        yield n, y, x
