"""ONNX's convolutions, with automatic padding and stated output sizes as explicit padding."""

from __future__ import annotations

from typing import Any

from tvm.relax.frontend.onnx import onnx_frontend


class Conv(onnx_frontend.Conv):
    """A convolution with explicit instead of automatic padding. The padding stays an attribute of the operator."""

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        mode = attr.pop("auto_pad", b"NOTSET")
        if mode in (b"SAME_UPPER", b"SAME_LOWER"):
            attr["pads"] = same_pads(inputs, attr, lower=mode == b"SAME_LOWER")
        return super()._impl_v11(bb, inputs, attr, params)


def same_pads(inputs: Any, attr: Any, *, lower: bool) -> list[int]:
    """ONNX's pads: all starts, then all ends. The larger half goes to the end, or to the start if `lower`."""
    size, window = ([int(side) for side in value.ty.shape][2:] for value in inputs[:2])
    strides, dilations = (attr.get(key, [1] * len(size)) for key in ("strides", "dilations"))
    totals = [
        max((-(-side // stride) - 1) * stride + (extent - 1) * step + 1 - side, 0)
        for side, extent, stride, step in zip(size, window, strides, dilations, strict=True)
    ]
    return _halves(totals, lower=lower)


def _halves(totals: list[int], *, lower: bool) -> list[int]:
    small, large = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return large + small if lower else small + large


class ConvTranspose(onnx_frontend.ConvTranspose):
    """A transposed convolution whose result is cropped or padded to the size that the model states."""

    @classmethod
    def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        wanted = attr.pop("output_shape", None)
        if wanted is not None:
            lower = attr.pop("auto_pad", b"NOTSET") not in (b"SAME_UPPER", "SAME_UPPER")
            totals = _cut_off(inputs, attr, [int(side) for side in wanted])
            attr["output_padding"] = [max(-total, 0) for total in totals]
            attr["pads"] = _halves([max(total, 0) for total in totals], lower=lower)
        return super()._impl_v1(bb, inputs, attr, params)


def _cut_off(inputs: Any, attr: Any, shape: list[int]) -> list[int]:
    """The excess of a transposed convolution's full result along each axis; negative if elements are missing."""
    size, window = ([int(side) for side in value.ty.shape][2:] for value in inputs[:2])
    strides, dilations = (attr.get(key, [1] * len(size)) for key in ("strides", "dilations"))
    wanted = shape[-len(size) :]
    return [
        (side - 1) * step + (extent - 1) * gap + 1 - result
        for side, extent, step, gap, result in zip(size, window, strides, dilations, wanted, strict=True)
    ]
