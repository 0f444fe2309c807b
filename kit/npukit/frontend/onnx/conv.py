"""ONNX's convolutions, with automatic padding and stated output sizes as explicit padding."""

from __future__ import annotations

from typing import Any


def conv(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """A convolution with explicit instead of automatic padding. The padding stays an attribute of the operator."""
    if (mode := attr.pop("auto_pad", b"NOTSET")) in (b"SAME_UPPER", b"SAME_LOWER"):
        attr["pads"] = same_pads(inputs, attr, lower=mode == b"SAME_LOWER")
    return usual(bb, inputs, attr, params)


def same_pads(inputs: Any, attr: Any, *, lower: bool) -> list[int]:
    """ONNX's pads: all starts, then all ends. The larger half goes to the end, or to the start if `lower`."""
    totals = [
        max((-(-side // stride) - 1) * stride + (extent - 1) * step + 1 - side, 0)
        for side, extent, stride, step in _windows(inputs, attr)
    ]
    return _halves(totals, lower=lower)


def _windows(inputs: Any, attr: Any) -> list[tuple[int, int, int, int]]:
    """The image's size, and the window's size, stride and dilation, along each axis."""
    size, window = ([int(side) for side in value.ty.shape][2:] for value in inputs[:2])
    strides, dilations = (attr.get(key, [1] * len(size)) for key in ("strides", "dilations"))
    return list(zip(size, window, strides, dilations, strict=True))


def _halves(totals: list[int], *, lower: bool) -> list[int]:
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return large + small if lower else small + large


def conv_transpose(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """A transposed convolution whose result is cropped or padded to the size that the model states."""
    wanted = attr.pop("output_shape", None)
    if wanted is not None:
        lower = attr.pop("auto_pad", b"NOTSET") not in (b"SAME_UPPER", "SAME_UPPER")
        axes = _windows(inputs, attr)
        excess = [
            (side - 1) * stride + (extent - 1) * gap + 1 - int(result)
            for (side, extent, stride, gap), result in zip(axes, wanted[-len(axes) :], strict=True)
        ]
        attr["output_padding"] = [max(-each, 0) for each in excess]
        attr["pads"] = _halves([max(each, 0) for each in excess], lower=lower)
    return usual(bb, inputs, attr, params)
