"""The memory layout of an activation tensor between two kernels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from npukit.net.ops import Padding

Shape = tuple[int, int, int]
NO_PADDING: Padding = (0, 0, 0, 0)


class Order(Enum):
    """The order of the elements, and the contents of each."""

    PIXELS = "pixels"
    """int8, the channels of a pixel together (NHWC)"""
    PLANES8 = "planes8"
    """one plane per channel, of bytes with value - zero point: 0..255 for the zero point -128"""
    PLANES16 = "planes16"
    """the same in halfwords, for any zero point; planes begin at words, rows need not"""


ELEMENT_TYPES = {Order.PIXELS: "int8", Order.PLANES8: "uint8", Order.PLANES16: "int16"}


@dataclass(frozen=True)
class Layout:
    """A tensor in memory. `border`: pixels around it that hold the zero point (PIXELS only). `transposed`: columns
    stored in the place of rows, because planes need the longer side along the row."""

    order: Order
    shape: Shape
    border: Padding = NO_PADDING
    transposed: bool = False

    @property
    def element_bytes(self) -> int:
        return np.dtype(ELEMENT_TYPES[self.order]).itemsize

    @property
    def channel_stride(self) -> int:
        return 1 if self.order is Order.PIXELS else self._plane_bytes

    @property
    def row_stride(self) -> int:
        return self._pixel_bytes if self.transposed else self._line_bytes

    @property
    def column_stride(self) -> int:
        return self._line_bytes if self.transposed else self._pixel_bytes

    @property
    def origin(self) -> int:
        """Byte offset of the first element of the first pixel inside the border."""
        top, left, _, _ = self.border
        return top * self.row_stride + left * self.column_stride

    @property
    def bytes(self) -> int:
        planes = 1 if self.order is Order.PIXELS else self.shape[2]
        return planes * self._plane_bytes

    @property
    def plain(self) -> bool:
        """True if the bytes are the elements in the model's order, without gaps."""
        return self.order is Order.PIXELS and not any(self.border) and not (self.transposed and min(self.shape[:2]) > 1)

    def follows(self, other: Layout) -> bool:
        """True if no element lies before its place in another tensor with the same start address. A kernel that reads
        this tensor in order may then write the other tensor over it."""
        mine, others = (self.row_stride, self.column_stride), (other.row_stride, other.column_stride)
        return self.origin >= other.origin and all(a >= b for a, b in zip(mine, others, strict=True))

    @property
    def _pixel_bytes(self) -> int:
        return self.shape[2] if self.order is Order.PIXELS else self.element_bytes

    @property
    def _line_bytes(self) -> int:
        return self._stored(0 if self.transposed else 1) * self._pixel_bytes

    @property
    def _plane_bytes(self) -> int:
        plane = self._stored(1 if self.transposed else 0) * self._line_bytes
        return plane + (-plane % 4 if self.order is Order.PLANES16 else 0)

    def _stored(self, axis: int) -> int:
        return self.shape[axis] + self.border[axis] + self.border[axis + 2]
