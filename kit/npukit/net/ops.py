"""The op kinds of a Net, each a dataclass of its attributes.

Semantics: TensorFlow Lite's int8 specification as computed by TFLite Micro's reference kernels. Layouts: activations
NHWC; conv2d weights OHWI; depthwise weights 1HWO; dense weights [out, in].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
"""Padding: top, left, bottom, right."""


@dataclass(frozen=True)
class Attributes:
    """Base class of all attributes."""

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class Conv2d(Attributes):
    """inputs: activation, weights OHWI, [bias]. Groups follow from the weights' I."""

    kind: ClassVar[str] = "conv2d"
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class DepthwiseConv2d(Attributes):
    """inputs: activation, weights 1HWO, [bias]. The multiplier is O over the input's channels."""

    kind: ClassVar[str] = "depthwise_conv2d"
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Dense(Attributes):
    """inputs: activation [.., in], weights [out, in], [bias]."""

    kind: ClassVar[str] = "dense"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Sums(Attributes):
    """inputs: activation, weights of a slice of channels, starting at `first`, [sums before].

    Partial int32 sums of a conv2d or dense layer over its slice of input channels. Inputs are taken without their zero
    point; there is no bias and no requantisation. `sums before`, over other channels, are added. Weights are laid out
    as for conv2d or dense.
    """

    kind: ClassVar[str] = "sums"
    first: int = 0
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1


@dataclass(frozen=True)
class Total(Attributes):
    """inputs: sums of equal shape, then biases, multipliers and shifts, an int32 per channel.

    All sums plus bias, requantised.
    """

    kind: ClassVar[str] = "total"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Add(Attributes):
    """inputs: two activations, or one and a constant."""

    kind: ClassVar[str] = "add"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class AveragePool(Attributes):
    kind: ClassVar[str] = "average_pool"
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class MaxPool(Attributes):
    kind: ClassVar[str] = "max_pool"
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Reshape(Attributes):
    """The same bytes with another shape, or another scale and zero point."""

    kind: ClassVar[str] = "reshape"


@dataclass(frozen=True)
class Softmax(Attributes):
    """Softmax over the last axis."""

    kind: ClassVar[str] = "softmax"
    beta: float = 1.0


@dataclass(frozen=True)
class Norm(Attributes):
    """inputs: activation, then multipliers and offsets, an int32 for each of the n positions of the last axis.

    Layer norm if `centred`: subtract the mean of the last axis, divide by the root of the mean square, multiply, add
    offsets. Otherwise RMS norm: subtract the zero point instead of the mean. `epsilon` / (1024 n)^2 is added to the
    mean square. `net/reference/norm.py` defines the integer arithmetic, whose results are scaled down by 2^`shift` at
    the end.
    """

    kind: ClassVar[str] = "norm"
    centred: bool = True
    epsilon: int = 1
    shift: int = 1
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Squares(Attributes):
    """Int32 sums of squared distances from the zero point, over pieces of `piece` elements of the last axis. The
    output's last two axes are the number of pieces and 1."""

    kind: ClassVar[str] = "squares"
    piece: int = 1


@dataclass(frozen=True)
class NormBySquares(Attributes):
    """inputs: activation, sums of squares of all pieces, then multipliers and offsets. An RMS norm with precomputed
    squares."""

    kind: ClassVar[str] = "norm_by_squares"
    epsilon: int = 1
    shift: int = 1
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Transpose(Attributes):
    """Axis i of the output is axis axes[i] of the input."""

    kind: ClassVar[str] = "transpose"
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Requantize(Attributes):
    """The same real numbers with another scale, zero point or type."""

    kind: ClassVar[str] = "requantize"


@dataclass(frozen=True)
class Lookup(Attributes):
    """inputs: int8 or uint8 activation, table int8[256]. Any function of one number. The table begins with the result
    for the lowest input."""

    kind: ClassVar[str] = "lookup"


@dataclass(frozen=True)
class Subtract(Attributes):
    """inputs: two activations, or one and a constant. The first minus the second."""

    kind: ClassVar[str] = "subtract"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Multiply(Attributes):
    """inputs: two activations, or one and a constant."""

    kind: ClassVar[str] = "multiply"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Minimum(Attributes):
    """inputs: two activations, or one and a constant, with the output's quantisation."""

    kind: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class Maximum(Attributes):
    """inputs: two activations, or one and a constant, with the output's quantisation."""

    kind: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class Select(Attributes):
    """inputs: a condition (bool), then two activations with the output's quantisation: the first where the condition is
    true, else the second."""

    kind: ClassVar[str] = "select"


@dataclass(frozen=True)
class Prelu(Attributes):
    """inputs: activation, int8 slopes (constant). Negative inputs are multiplied by their slope."""

    kind: ClassVar[str] = "prelu"


@dataclass(frozen=True)
class Mean(Attributes):
    """The mean over `axes`, which keep size 1."""

    kind: ClassVar[str] = "mean"
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pad(Attributes):
    """Padding of `before` and `after` positions on each axis, filled with `value`."""

    kind: ClassVar[str] = "pad"
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    value: int = 0


@dataclass(frozen=True)
class Concat(Attributes):
    """inputs: activations with the output's quantisation, concatenated along `axis`."""

    kind: ClassVar[str] = "concat"
    axis: int = -1


@dataclass(frozen=True)
class Slice(Attributes):
    """Elements from `begin` to before `end`, in steps of `strides`, on each axis."""

    kind: ClassVar[str] = "slice"
    begin: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class TransposeConv2d(Attributes):
    """inputs: activation, weights OHWI, [bias]. `padding` is cropped from the full result."""

    kind: ClassVar[str] = "transpose_conv2d"
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Matmul(Attributes):
    """inputs: two activations, [.., m, k] and [.., k, n] after transposition by `first` and `second`; leading axes
    broadcast.

    The output is the matrix product, transposed by `result`. Each transposition lists axes as in `Transpose`; empty
    means none. The last axis of the untransposed first input is always k, of the second k or n, of the output n.
    """

    kind: ClassVar[str] = "matmul"
    clamp: Pair = (-128, 127)
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    result: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResizeNearest(Attributes):
    """Output row y is input row rows[y]. `columns` likewise."""

    kind: ClassVar[str] = "resize_nearest"
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    """Output row y lies between two input rows: (low, high, distance from low in 1/1024). `columns` likewise."""

    kind: ClassVar[str] = "resize_bilinear"
    rows: tuple[tuple[int, int, int], ...] = ()
    columns: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ArgMax(Attributes):
    """The index of the first largest element along `axis`, an int32 or int64. The axis is removed."""

    kind: ClassVar[str] = "argmax"
    axis: int = -1


@dataclass(frozen=True)
class Quantize(Attributes):
    """inputs: activation of any number type, offset and step (float32 constants, one number or one per channel).

    (x - offset) / step in float32, rounded to the nearest integer, plus the zero point, clamped to int8. Halves round
    to even, or `away` from zero as in TensorFlow Lite. NaN becomes the lowest value.
    """

    kind: ClassVar[str] = "quantize"
    away: bool = False


@dataclass(frozen=True)
class Dequantize(Attributes):
    """The activation as float32 numbers: the integer minus the zero point, times the scale in float32."""

    kind: ClassVar[str] = "dequantize"


@dataclass(frozen=True)
class TopK(Attributes):
    """The `count` largest elements of the last axis in descending order, ties in index order. Output: indices, or
    `values`."""

    kind: ClassVar[str] = "top_k"
    count: int = 1
    values: bool = False


Run = tuple[int, int, int, int]
"""Spans [low, high) of consecutive steps: the number of steps, low and high of the first, and how far both move on with
each step."""


class RowReads(NamedTuple):
    """The part of an array read by each step of a loop over rows of the output.

    `spans`: the spans of the array's first long axes, for each position of the output's first long axes. Empty if each
    step may read the whole array. `moves`: elements that all subscripts move on with a step of each loop; 0 for the
    output and a loop whose steps differ in more than subscripts that move so.
    """

    spans: tuple[tuple[Run, ...], ...] = ()
    moves: tuple[int, ...] = ()


@dataclass(frozen=True)
class TvmCode(Attributes):
    """An op without a kind of its own, as C code: the body of a function, in float or integer arithmetic.

    The code comes from TVM, or is `given`: a template in `templates/ops` or the user's code of a custom op.

    inputs: activations, then constants, of any type. The C code reads the inputs as p0, p1, ... and has parameters
    `output` and, if `work_bytes` is not 0, `work`. `what`: names of the Relax operators. `why`: reason for the lack of
    an integer op. `macs`: number of multiply-accumulates. `rows`: the reads of the output (first) and the inputs, if a
    loop of the code computes a row of the output in each step and uses nothing computed by other steps; else empty.
    `loop`: the number of loop headers in the code before the loop's.
    """

    kind: ClassVar[str] = "tvm_code"
    what: str = ""
    code: str = ""
    work_bytes: int = 0
    why: str = ""
    macs: int = 0
    given: bool = False
    loop: int = 0
    rows: tuple[RowReads, ...] = ()


def _kinds() -> dict[str, type[Attributes]]:
    return {kind.kind: kind for kind in Attributes.__subclasses__()}


KINDS = _kinds()
"""All kinds by name."""
