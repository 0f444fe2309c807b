"""The number of multiply-accumulates that Relax's operators take."""

from __future__ import annotations

from math import prod
from typing import Any

from npukit.net.importer.expressions import callee, shape_of

CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
TRANSPOSED = ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")


def macs_of(call: Any) -> int:
    """Padding included; 0 for what is no product of matrices or windows."""
    name = callee(call)
    if name == "matmul":
        return prod(shape_of(call)) * shape_of(call.args[0])[-1]
    if name in CONVOLUTIONS:
        return prod(shape_of(call)) * _per_channel(call, "O")
    if name in TRANSPOSED:
        return prod(shape_of(call.args[0])) * _per_channel(call, "I")
    return 0


def _per_channel(call: Any, letter: str) -> int:
    """The weights of one channel."""
    layout = str(call.attrs.kernel_layout)
    return prod(size for axis, size in zip(layout, shape_of(call.args[1]), strict=True) if axis != letter)
