"""From boxes of tensors to heights, widths, strides and padding of a command."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from npukit.accel.interface import Field, Operand
from npukit.net.box import Box
from npukit.net.ops import Pair


@dataclass(frozen=True)
class Plane:
    """A box as height x width pixels of so many channels."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @classmethod
    def of(cls, box: Box) -> Plane:
        """Of an NHWC box of one batch index, or of rows of features."""
        shape = box.shape
        if len(shape) == 4:
            return cls(shape[1], shape[2], shape[3])
        return cls(1, prod(shape[:-1]), shape[-1])


@dataclass(frozen=True)
class Window:
    """A kernel and how it moves."""

    kernel: Pair
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Pair = (0, 0)

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    def padding_of(self, output: Box, source: Box) -> Pair:
        """Top and left padding of this box of the output, given the box of the input that is there."""
        if len(output.start) != 4:
            return (0, 0)
        first = (output.start[i + 1] * self.strides[i] - self.padding[i] for i in range(2))
        top, left = (source.start[i + 1] - begin for i, begin in enumerate(first))
        return (top, left)


def placed(prefix: str, operand: Operand) -> tuple[tuple[str, Field], ...]:
    """Address, size and strides of an operand as members of a command."""
    plane = Plane.of(operand.box)
    return (
        (prefix, operand.address),
        (f"{prefix}_height", plane.height),
        (f"{prefix}_width", plane.width),
        (f"{prefix}_row_stride", operand.row_stride),
        (f"{prefix}_pixel_stride", operand.pixel_stride),
        (f"{prefix}_channels", plane.channels),
    )
