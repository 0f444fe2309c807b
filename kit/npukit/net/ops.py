"""The kinds of op a Net can hold, each a dataclass of its attributes.

Semantics are those of TensorFlow Lite's int8 specification as TFLite Micro's reference kernels compute it.
Layouts: activations NHWC; conv2d weights OHWI; depthwise weights 1HWO; dense weights [out, in].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
"""top, left, bottom, right"""


@dataclass(frozen=True)
class Attributes:
    """Base of every kind's attributes."""

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
    """inputs: activation, weights as a conv2d's or as a dense layer's, of its channels from `first` on, [sums before].

    What those channels add to each output, int32, inputs without their zero point: no bias, nothing requantised.
    `sums before`, of other channels, are added.
    """

    kind: ClassVar[str] = "sums"
    first: int = 0
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1


@dataclass(frozen=True)
class Total(Attributes):
    """inputs: sums of one shape, then biases, multipliers and shifts, an int32 for each channel.

    The sum of sums and bias, requantised.
    """

    kind: ClassVar[str] = "total"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Add(Attributes):
    """inputs: two activations (or one constant)."""

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
    """The same bytes under another shape, or another scale and zero point."""

    kind: ClassVar[str] = "reshape"


@dataclass(frozen=True)
class Softmax(Attributes):
    """Softmax over the last axis."""

    kind: ClassVar[str] = "softmax"
    beta: float = 1.0


@dataclass(frozen=True)
class Norm(Attributes):
    """inputs: activation, then multipliers and offsets, an int32 for each position of the last axis, of n.

    Numbers of the last axis less their mean (`centred`) or their zero point, over the root of their mean square, to
    which `epsilon` / (1024 n)^2 is added; times multipliers, plus offsets: layer norm, or without `centred` RMS norm.
    `net/reference/norm.py` says it in integers: results come out of 2^`shift` times too large ones.
    """

    kind: ClassVar[str] = "norm"
    centred: bool = True
    epsilon: int = 1
    shift: int = 1
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Squares(Attributes):
    """Sums, int32, of the squares of distances from the zero point, one for each `piece` numbers along the last axis:
    along an axis before a last one of one number."""

    kind: ClassVar[str] = "squares"
    piece: int = 1


@dataclass(frozen=True)
class NormBySquares(Attributes):
    """inputs: activation, squares of all its pieces, then multipliers and offsets: a norm that is not `centred`."""

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
    """The same numbers under another scale, zero point or type."""

    kind: ClassVar[str] = "requantize"


@dataclass(frozen=True)
class Lookup(Attributes):
    """inputs: int8 or uint8 activation, table int8[256] from the least x on: any function of one number."""

    kind: ClassVar[str] = "lookup"


@dataclass(frozen=True)
class Subtract(Attributes):
    """inputs: two activations (or one constant); the first less the second."""

    kind: ClassVar[str] = "subtract"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Multiply(Attributes):
    """inputs: two activations (or one constant)."""

    kind: ClassVar[str] = "multiply"
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Minimum(Attributes):
    """inputs: two activations (or one constant), quantised as the output."""

    kind: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class Maximum(Attributes):
    """inputs: two activations (or one constant), quantised as the output."""

    kind: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class Select(Attributes):
    """inputs: a condition (bool), then two activations, quantised as the output: the first where it is true."""

    kind: ClassVar[str] = "select"


@dataclass(frozen=True)
class Prelu(Attributes):
    """inputs: activation, int8 slopes (constant). Negative numbers are multiplied by their slope."""

    kind: ClassVar[str] = "prelu"


@dataclass(frozen=True)
class Mean(Attributes):
    """The mean over `axes`, which stay with size 1."""

    kind: ClassVar[str] = "mean"
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pad(Attributes):
    """`before` and `after` positions of `value` on each axis."""

    kind: ClassVar[str] = "pad"
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    value: int = 0


@dataclass(frozen=True)
class Concat(Attributes):
    """inputs: activations quantised as the output, one after the other along `axis`."""

    kind: ClassVar[str] = "concat"
    axis: int = -1


@dataclass(frozen=True)
class Slice(Attributes):
    """A slice from `begin` to before `end` in steps of `strides`, on each axis."""

    kind: ClassVar[str] = "slice"
    begin: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class TransposeConv2d(Attributes):
    """inputs: activation, weights OHWI, [bias]. `padding` is cut off the full result."""

    kind: ClassVar[str] = "transpose_conv2d"
    strides: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Matmul(Attributes):
    """inputs: two activations, [.., m, k] and [.., k, n]; leading axes broadcast.

    Transposed by `first` and `second` they are such matrices, and the output is their product transposed by `result`:
    axes as a transpose has them, none where nothing moves. The last axis of the first input is always k, that of the
    second k or n, that of the output always n.
    """

    kind: ClassVar[str] = "matmul"
    clamp: Pair = (-128, 127)
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    result: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResizeNearest(Attributes):
    """Output row y is input row rows[y]; columns likewise."""

    kind: ClassVar[str] = "resize_nearest"
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    """Output row y lies between two input rows: (low, high, how far from low to high in 1/1024); columns likewise."""

    kind: ClassVar[str] = "resize_bilinear"
    rows: tuple[tuple[int, int, int], ...] = ()
    columns: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ArgMax(Attributes):
    """The index of the first largest element along `axis`, which goes; int32 or int64."""

    kind: ClassVar[str] = "argmax"
    axis: int = -1


@dataclass(frozen=True)
class Quantize(Attributes):
    """inputs: activation of any number type, offset and step (float32 constants, one number or one a channel).

    (x - offset) / step in float32, rounded to the nearest integer, plus the zero point, clamped to int8. Halves go to
    even, or `away` from zero as TensorFlow Lite rounds them. What is not a number becomes the least.
    """

    kind: ClassVar[str] = "quantize"
    away: bool = False


@dataclass(frozen=True)
class Dequantize(Attributes):
    """The real numbers of an activation in float32: the integer less its zero point, times the scale in float32."""

    kind: ClassVar[str] = "dequantize"


@dataclass(frozen=True)
class TopK(Attributes):
    """The `count` largest of the last axis, the largest first, of equal ones the first: their indices, or `values`."""

    kind: ClassVar[str] = "top_k"
    count: int = 1
    values: bool = False


@dataclass(frozen=True)
class TvmCode(Attributes):
    """An op that is none of the kinds above, as C: the body of a function, in float or in integers.

    TVM made it, or it is `given`: one of `templates/ops`, or a user's of a custom op.

    inputs: activations, then constants, of any type, known to the C as p0, p1, ...; its other parameters are `output`
    and, if `work_bytes` is not 0, `work`. `what` names Relax's operators, `why` says why they are not integer ops,
    `macs` counts the multiply-accumulates. `windows`, a step and a size, says of C that is given that step v of its
    first loop makes row v of the output, of `size` elements of p0 from v * step on, and takes nothing from other steps.
    `by_rows` says of it that it is written as TVM would, so that its rows are found in the text.
    """

    kind: ClassVar[str] = "tvm_code"
    what: str = ""
    code: str = ""
    work_bytes: int = 0
    why: str = ""
    macs: int = 0
    given: bool = False
    windows: Pair = (0, 0)
    by_rows: bool = False


def _kinds() -> dict[str, type[Attributes]]:
    return {kind.kind: kind for kind in Attributes.__subclasses__()}


KINDS = _kinds()
"""Every kind by its name."""
