"""The input of the generator: one int8 layer as plain integers and numpy arrays.

Tensors are height x width x channels. Shifts follow TensorFlow Lite: positive is to the left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.net.value_ranges import Range

Pair = tuple[int, int]
Shape = tuple[int, int, int]
Padding = tuple[int, int, int, int]
"""top, left, bottom, right"""

NO_PADDING: Padding = (0, 0, 0, 0)
INT8: Pair = (-128, 127)


@dataclass(frozen=True)
class Multiplier:
    """A real factor: value * 2**(shift - 31)."""

    value: int
    shift: int


@dataclass(frozen=True)
class Requantization:
    """Scaling int32 accumulators to int8: one multiplier and shift per output channel, then zero point and clamp."""

    multipliers: np.ndarray
    shifts: np.ndarray
    zero_point: int
    clamp: Pair = INT8


@dataclass(frozen=True)
class ConvLayer:
    """A convolution with every channel in every output. Weights are [out, kernel height, kernel width, in]."""

    name: str
    input_shape: Shape
    weights: np.ndarray
    bias: np.ndarray
    input_zero: int
    requantization: Requantization
    strides: Pair = (1, 1)
    padding: Padding = NO_PADDING
    dilation: Pair = (1, 1)
    input_range: Range | None = None

    @property
    def kernel(self) -> Pair:
        return self.weights.shape[1], self.weights.shape[2]

    @property
    def output_shape(self) -> Shape:
        return (
            *window_positions(self.input_shape, self.kernel, self.strides, self.padding, self.dilation),
            len(self.weights),
        )

    @property
    def macs(self) -> int:
        height, width, _ = self.output_shape
        return height * width * self.weights.size


@dataclass(frozen=True)
class DepthwiseLayer:
    """A convolution of each channel with a kernel of its own. Weights are [kernel height, kernel width, channels]."""

    name: str
    input_shape: Shape
    weights: np.ndarray
    bias: np.ndarray
    input_zero: int
    requantization: Requantization
    strides: Pair = (1, 1)
    padding: Padding = NO_PADDING
    input_range: Range | None = None

    @property
    def kernel(self) -> Pair:
        return self.weights.shape[0], self.weights.shape[1]

    @property
    def output_shape(self) -> Shape:
        return (*window_positions(self.input_shape, self.kernel, self.strides, self.padding), self.input_shape[2])

    @property
    def macs(self) -> int:
        height, width, _ = self.output_shape
        return height * width * self.weights.size


@dataclass(frozen=True)
class DenseLayer:
    """A matrix-vector product. Weights are [out, in]."""

    name: str
    weights: np.ndarray
    bias: np.ndarray
    input_zero: int
    requantization: Requantization
    input_range: Range | None = None

    @property
    def input_shape(self) -> Shape:
        return 1, 1, self.weights.shape[1]

    @property
    def output_shape(self) -> Shape:
        return 1, 1, self.weights.shape[0]

    @property
    def macs(self) -> int:
        return self.weights.size


@dataclass(frozen=True)
class AddLayer:
    """An elementwise sum: both operands, shifted left by 20, are rescaled, then their sum is."""

    name: str
    input_shape: Shape
    first: Multiplier
    second: Multiplier
    output: Multiplier
    zero_points: tuple[int, int, int]
    clamp: Pair = INT8

    @property
    def output_shape(self) -> Shape:
        return self.input_shape


@dataclass(frozen=True)
class PoolLayer:
    """An average or a maximum over windows inside the tensor; `kind` is "average" or "max"."""

    name: str
    kind: str
    input_shape: Shape
    window: Pair
    strides: Pair
    clamp: Pair = INT8

    @property
    def output_shape(self) -> Shape:
        return (*window_positions(self.input_shape, self.window, self.strides, NO_PADDING), self.input_shape[2])


@dataclass(frozen=True)
class SoftmaxLayer:
    """exp(x - max) over the last axis, normalised: `rows` vectors of `length`.

    `exponentials` holds exp of the differences 0, -1, .. -255 in Q0.31, as TensorFlow Lite computes them.
    """

    name: str
    rows: int
    length: int
    exponentials: np.ndarray

    @property
    def input_shape(self) -> Shape:
        return 1, self.rows, self.length

    @property
    def output_shape(self) -> Shape:
        return self.input_shape


@dataclass(frozen=True)
class CopyLayer:
    """The same tensor in another place, where it may have a border of zero points."""

    name: str
    input_shape: Shape
    zero_point: int

    @property
    def output_shape(self) -> Shape:
        return self.input_shape


@dataclass(frozen=True)
class Opaque:
    """Something that reads and writes dense tensors: an input, an op without kernels, a reshape, the host."""

    name: str
    output_shape: Shape

    @property
    def input_shape(self) -> Shape:
        return self.output_shape


Layer = Opaque | CopyLayer | ConvLayer | DepthwiseLayer | DenseLayer | AddLayer | PoolLayer | SoftmaxLayer


def window_positions(shape: Shape, window: Pair, strides: Pair, padding: Padding, dilation: Pair = (1, 1)) -> Pair:
    """The number of windows that fit, down and across."""
    top, left, bottom, right = padding
    down = (shape[0] + top + bottom - (window[0] - 1) * dilation[0] - 1) // strides[0] + 1
    across = (shape[1] + left + right - (window[1] - 1) * dilation[1] - 1) // strides[1] + 1
    return down, across
