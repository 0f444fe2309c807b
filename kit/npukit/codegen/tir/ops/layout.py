"""The places of an operand's elements: image, row, pixel and channel, with strides in elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.accel.interface import Operand
from npukit.codegen.tir.door import Expr


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
            return cls(images, rows, pixels, channels, operand.tensor.shape[1] * row, row, pixel)
        return cls(1, 1, prod(shape[:-1]), shape[-1] if shape else 1, 0, 0, pixel)

    def index(self, image: Expr, row: Expr, pixel: Expr, channel: Expr = 0) -> Expr:
        return image * self.image_stride + row * self.row_stride + pixel * self.pixel_stride + channel
