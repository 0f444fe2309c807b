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
    """The same bytes under another shape."""

    kind: ClassVar[str] = "reshape"


@dataclass(frozen=True)
class Softmax(Attributes):
    """Over the last axis."""

    kind: ClassVar[str] = "softmax"
    beta: float = 1.0


@dataclass(frozen=True)
class Transpose(Attributes):
    """Axis i of the output is axis axes[i] of the input."""

    kind: ClassVar[str] = "transpose"
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Requantize(Attributes):
    """The same numbers under another scale, zero point or type, clamped: also relu and relu6 on their own."""

    kind: ClassVar[str] = "requantize"
    clamp: Pair = (-128, 127)


def _kinds() -> dict[str, type[Attributes]]:
    return {kind.kind: kind for kind in Attributes.__subclasses__()}


KINDS = _kinds()
"""Every kind by its name."""
