"""Converters for ONNX ops that TVM's importer turns into opaque loops. They emit readable operators instead.

TVM offers no registration of converters. npukit replaces TVM's table of converters during an import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Constant
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.largest import extremes
from npukit.frontend.onnx.conv import Conv, ConvTranspose
from npukit.frontend.onnx.detection import NonMaxSuppression
from npukit.frontend.onnx.integers import INTEGER_OPS
from npukit.frontend.onnx.norms import NORMS
from npukit.frontend.onnx.recurrent import RECURRENT
from npukit.frontend.onnx.resize import Resize
from npukit.frontend.onnx.values import known, padded
from npukit.frontend.places import place, taken

OnnxOpConverter: Any = onnx_frontend.OnnxOpConverter
operators: Any = relax.op
tensor_type: Any = relax.TensorType


class Clip(OnnxOpConverter):
    """Constant limits become a clamp, other limits a maximum and a minimum."""

    @classmethod
    def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return operators.clip(inputs[0], float(attr.get("min", -np.inf)), float(attr.get("max", np.inf)))

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data, low, high = padded(inputs, 3)
        least, most = _limit(low, -np.inf, params), _limit(high, np.inf, params)
        if least is not None and most is not None:
            return operators.clip(data, min(least, most), most)
        data = data if low is None else operators.maximum(data, low)
        return data if high is None else operators.minimum(data, high)


def _limit(given: Any, default: float, params: Any) -> float | None:
    """A limit of Clip; None if known only at run time."""
    if given is None:
        return default
    value = known(given, params)
    if value is None or value.size != 1:
        return None
    return default if np.isnan(value.item()) else float(value.item())


class Pad(onnx_frontend.Pad):
    """Constant padding by known amounts uses Relax's own operator. TVM converts everything else."""

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        padded = _constant_pad(inputs, attr, params)
        return super()._impl_v11(bb, inputs, attr, params) if padded is None else padded

    @classmethod
    def _impl_v18(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        padded = _constant_pad(inputs, attr, params)
        return super()._impl_v18(bb, inputs, attr, params) if padded is None else padded

    @classmethod
    def _impl_v19(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        padded = _constant_pad(inputs, attr, params)
        return super()._impl_v19(bb, inputs, attr, params) if padded is None else padded


def _constant_pad(inputs: Any, attr: Any, params: Any) -> Any:
    """Relax's own padding; None if amounts or value are known only at run time, or the mode is not constant."""
    data, pads, value, axes = padded(inputs, 4)
    rank = len(data.ty.shape)
    amounts, level = known(pads, params), known(value, params) if value is not None else np.zeros(())
    places = known(axes, params) if axes is not None else np.arange(rank)
    constant = attr.get("mode", b"constant") in (b"constant", "constant")
    if not constant or amounts is None or level is None or places is None:
        return None
    widths = np.zeros((rank, 2), int)
    widths[places] = amounts.reshape(2, -1).T
    return operators.nn.pad(data, widths.ravel().tolist(), "constant", float(level.item()))


class Gather(onnx_frontend.Gather):
    """Constant, evenly spaced indices become a slice. Other indices are clamped to the axis."""

    @classmethod
    def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        data: Any = inputs[0]
        axis = attr.get("axis", 0)
        if not isinstance(data.ty, tensor_type):
            return super()._impl_v13(bb, inputs, attr, params)
        indices = known(inputs[1], params)
        data = data if isinstance(data, relax.Var | Constant) else bb.emit(data)
        size = int(data.ty.shape[axis])
        if indices is None:
            return operators.take(data, _from_the_front(bb, inputs[1], size), axis, mode="clip")
        if isinstance(data, relax.Var) and indices.ndim == 0:
            return place(bb, data, axis, int(indices))
        part = taken(bb, data, axis, indices.tolist()) if isinstance(data, relax.Var) and indices.ndim == 1 else None
        within = np.clip(np.where(indices < 0, indices + size, indices), 0, size - 1)
        return operators.take(data, relax.const(within), axis, mode="clip") if part is None else part


def _from_the_front(bb: Any, indices: Any, size: int) -> Any:
    """The indices, with negative indices counted from the end of the axis made positive."""
    dtype = str(indices.ty.dtype)
    negative = bb.emit(operators.less(indices, relax.const(0, dtype)))
    return bb.emit(operators.where(negative, operators.add(indices, relax.const(size, dtype)), indices))


class Max(OnnxOpConverter):
    """Pairwise maximum instead of a reduction of a stack of copies."""

    @classmethod
    def _impl_v8(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return reduce(operators.maximum, inputs)


class Min(OnnxOpConverter):
    """Pairwise minimum instead of a reduction of a stack of copies."""

    @classmethod
    def _impl_v8(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return reduce(operators.minimum, inputs)


class TopK(OnnxOpConverter):
    """The largest or least numbers, sorted even if the model does not ask for an order."""

    @classmethod
    def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return cls._of(bb, inputs[0], attr.get("k", 1), attr.get("axis", -1))

    @classmethod
    def _impl_v10(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return cls._impl_v11(bb, inputs, {"axis": attr.get("axis", -1)}, params)

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        count = known(inputs[1], params)
        if count is None or count.size != 1:
            raise NpukitError("TopK's K is computed at run time, or no single number")
        attr.get("sorted", 1)
        return cls._of(bb, inputs[0], int(count.item()), attr.get("axis", -1), bool(attr.get("largest", 1)))

    @staticmethod
    def _of(bb: Any, data: Any, count: int, axis: int, largest: bool = True) -> Any:
        values, places = extremes(bb, bb.normalize(data), count, axis, largest=largest)
        return relax.Tuple([values, bb.emit(operators.astype(places, "int64"))])


class Unsqueeze(onnx_frontend.Unsqueeze):
    """Unsqueeze with known axes. TVM's converter crashes on others."""

    @classmethod
    def _impl_v13(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        axes = known(inputs[1], params)
        if axes is None or axes.dtype.kind != "i":
            raise NpukitError("Unsqueeze's axes are computed at run time, or no whole numbers")
        return super()._impl_v13(bb, inputs, attr, params)


class Pow(onnx_frontend.Pow):
    """Converts an exponent of another type to the base's type."""

    @classmethod
    def _impl_v7(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        base, exponent = inputs
        dtype = str(base.ty.dtype)
        power = known(exponent, params)
        if power is not None:
            exponent = relax.const(power.astype(dtype), dtype)
        elif str(exponent.ty.dtype) != dtype:
            exponent = bb.normalize(operators.astype(exponent, dtype))
        return super()._impl_v7(bb, [base, exponent], attr, params)


CONVERTERS: Mapping[str, Any] = {
    "Clip": Clip,
    "Conv": Conv,
    "ConvTranspose": ConvTranspose,
    "Gather": Gather,
    "Max": Max,
    "Min": Min,
    "NonMaxSuppression": NonMaxSuppression,
    "Pad": Pad,
    "Pow": Pow,
    "Resize": Resize,
    "TopK": TopK,
    "Unsqueeze": Unsqueeze,
    **INTEGER_OPS,
    **NORMS,
    **RECURRENT,
}


@contextmanager
def readable_converters() -> Iterator[None]:
    """Replaces TVM's table of converters within the context."""
    table = onnx_frontend._get_convert_map
    onnx_frontend._get_convert_map = lambda: {**table(), **CONVERTERS}
    try:
        yield
    finally:
        onnx_frontend._get_convert_map = table
