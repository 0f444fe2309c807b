"""Boxes of tensors in the buffers of a PE."""

from __future__ import annotations

from npukit.net.box import Box
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Buffer


def test_images_lie_as_far_apart_as_the_rows_that_the_buffer_holds() -> None:
    """The lower two of four rows, of two images."""
    tensor, lower = Tensor("t", (2, 4, 3, 5), "int8"), Box((0, 2, 0, 0), (2, 4, 3, 5))
    operand = Buffer("t", "t", lower, 60, 0, 0, 1).operand(tensor, lower, "at_t")
    assert operand.strides == (30, 15, 5, 1)
