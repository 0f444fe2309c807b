"""ONNX's Resize: Relax's image operator where it computes the same, else products with constant matrices.

Every resizing is linear along each axis. A matrix holds the weight of each input element in each output element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.onnx.node import known, padded, text_of

operators: Any = relax.op

BY_PIXELS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Coordinate transformations of `image.resize2d`."""

CROP = "tf_crop_and_resize"


@dataclass(frozen=True)
class ResizedAxis:
    """The resizing of an axis from `size` to `result` elements, by `scale`. `start` and `end`: fractions to crop to."""

    size: int
    result: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    @property
    def stays(self) -> bool:
        return self.size == self.result and self.scale == 1 and (self.start, self.end) == (0, 1)


Place = Callable[[ResizedAxis, np.ndarray], np.ndarray]


def _half_pixel(axis: ResizedAxis, places: np.ndarray) -> np.ndarray:
    return (places + 0.5) / axis.scale - 0.5


def _symmetric(axis: ResizedAxis, places: np.ndarray) -> np.ndarray:
    """Half pixels. The image stays centred although sizes are rounded."""
    return axis.size / 2 * (1 - axis.result / (axis.scale * axis.size)) + _half_pixel(axis, places)


def _aligned(axis: ResizedAxis, places: np.ndarray) -> np.ndarray:
    """Aligned corners. ONNX uses the scaled size without rounding."""
    scaled = axis.scale * axis.size
    return places * (axis.size - 1) / (scaled - 1) if scaled > 1 else places * 0


def _cropped(axis: ResizedAxis, places: np.ndarray) -> np.ndarray:
    last = axis.size - 1
    if axis.result == 1:
        return places + (axis.start + axis.end) * last / 2
    return axis.start * last + places * (axis.end - axis.start) * last / (axis.result - 1)


PLACES: Mapping[str, Place] = {
    "align_corners": _aligned,
    "asymmetric": lambda axis, places: places / axis.scale,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": lambda axis, places: _half_pixel(axis, places) if axis.result > 1 else places * 0,
    CROP: _cropped,
}
"""The input coordinate for each output index, by coordinate transformation."""

NEAREST: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda places: np.ceil(places - 0.5),
    "round_prefer_ceil": lambda places: np.floor(places + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True)
class Method:
    """The method of resizing, from the node's attributes."""

    mode: str
    coordinates: str
    nearest: str
    sharpness: float
    antialias: bool
    exclude_outside: bool
    extrapolated: float

    @classmethod
    def of(cls, attr: Mapping[str, Any]) -> Method:
        made = cls(
            text_of(attr, "mode", "nearest"),
            text_of(attr, "coordinate_transformation_mode", "half_pixel"),
            text_of(attr, "nearest_mode", "round_prefer_floor"),
            float(attr.get("cubic_coeff_a", -0.75)),
            bool(attr.get("antialias", 0)),
            bool(attr.get("exclude_outside", 0)),
            float(attr.get("extrapolation_value", 0.0)),
        )
        modes = ("nearest", "linear", "cubic")
        for name, names in ((made.mode, modes), (made.coordinates, PLACES), (made.nearest, NEAREST)):
            if name not in names:
                raise NpukitError(f"it resizes by {name!r}, which ONNX does not know")
        return made

    def places(self, axis: ResizedAxis) -> np.ndarray:
        return PLACES[self.coordinates](axis, np.arange(axis.result, dtype=np.float64))

    def outside(self, axis: ResizedAxis) -> np.ndarray:
        """A mask of the output elements whose coordinate lies outside the input."""
        places = self.places(axis)
        return ((places < 0) | (places > axis.size - 1)) & (self.coordinates == CROP)

    def matrix(self, axis: ResizedAxis) -> np.ndarray:
        """[output element, input element]: the weight of the input element."""
        places = self.places(axis)
        if self.mode == "nearest":
            return np.eye(axis.size)[np.clip(NEAREST[self.nearest](places), 0, axis.size - 1).astype(int)]
        spread = min(axis.scale, 1.0) if self.antialias else 1.0
        reach = int(np.ceil((2 if self.mode == "cubic" else 1) / spread))
        taken = np.floor(places).astype(int)[:, None] + np.arange(-reach, reach + 1)
        shares = self._shares(np.abs(taken - places[:, None]) * spread)
        if self.exclude_outside:
            shares = np.where((taken >= 0) & (taken < axis.size), shares, 0)
        if self.antialias or self.exclude_outside:
            shares = shares / shares.sum(axis=1, keepdims=True)
        matrix = np.zeros((axis.result, axis.size))
        rows = np.broadcast_to(np.arange(axis.result)[:, None], taken.shape)
        np.add.at(matrix, (rows, np.clip(taken, 0, axis.size - 1)), shares)
        return matrix

    def _shares(self, x: np.ndarray) -> np.ndarray:
        """The weights of input elements at distances `x`."""
        if self.mode == "linear":
            return np.clip(1 - x, 0, None)
        a = self.sharpness
        near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0))


def resize(usual: Any, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Resize through TVM's own converter, or as a matrix product for each axis where no operator is exact."""
    region, *values = padded(inputs, 4)[1:]
    found = (known(value, params) for value in (region, *values))
    roi, scales, sizes = (value if value is not None and value.size else None for value in found)
    method = Method.of(attr)
    if method.coordinates == CROP and region is not None and roi is None:
        raise NpukitError("its region is computed at run time")
    axes = _axes([int(side) for side in inputs[0].ty.shape], attr, roi, scales, sizes)
    spatial = len(axes) == 4 and axes[0].stays and axes[1].stays
    ratio = all(abs(axis.scale * axis.size - axis.result) < 1e-6 for axis in axes)
    plain = method.mode in ("nearest", "linear") and not method.antialias and not method.exclude_outside
    aligned = method.coordinates != "align_corners" or min(axis.result for axis in axes[2:]) > 1
    if not (spatial and ratio and plain and aligned and method.coordinates in BY_PIXELS):
        return _multiplied(bb, inputs[0], method, axes)
    attr = {name: value for name, value in attr.items() if name not in ("axes", "keep_aspect_ratio_policy")}
    result = relax.const(np.array([axis.result for axis in axes], np.int64))
    return usual(bb, [inputs[0], None, None, result], attr, params)


def _axes(
    shape: list[int], attr: Any, roi: np.ndarray | None, scales: np.ndarray | None, sizes: np.ndarray | None
) -> list[ResizedAxis]:
    chosen = [int(axis) % len(shape) for axis in attr.get("axes", range(len(shape)))]
    extents = np.array([shape[axis] for axis in chosen])
    if scales is not None:
        results = np.floor(extents.astype(np.float32) * scales)
    elif sizes is None:
        raise NpukitError("its scales or sizes are computed at run time")
    else:
        results, scales = sizes, sizes / extents
        policy = text_of(attr, "keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            scales = np.full(len(chosen), min(scales) if policy == "not_larger" else max(scales))
            results = np.floor(scales * extents + 0.5)
    starts, ends = (np.zeros(len(chosen)), np.ones(len(chosen))) if roi is None else np.split(roi, 2)
    axes = [ResizedAxis(size, size, 1.0) for size in shape]
    for axis, result, scale, start, end in zip(chosen, results, scales, starts, ends, strict=True):
        axes[axis] = ResizedAxis(shape[axis], int(result), float(scale), float(start), float(end))
    return axes


def _multiplied(bb: Any, data: Any, method: Method, axes: list[ResizedAxis]) -> Any:
    rank = len(axes)
    for place, axis in enumerate(axes):
        if not axis.stays:
            last = [other for other in range(rank) if other != place] + [place]
            shares = relax.const(np.ascontiguousarray(method.matrix(axis).T, np.float32))
            moved = bb.emit(operators.matmul(bb.emit(operators.permute_dims(data, last)), shares))
            data = bb.emit(operators.permute_dims(moved, [last.index(other) for other in range(rank)]))
    outside = np.zeros([1] * rank, bool)
    for place, axis in enumerate(axes):
        outside = outside | method.outside(axis).reshape([-1 if other == place else 1 for other in range(rank)])
    if not outside.any():
        return data
    kept, added = (~outside).astype(np.float32), (outside * method.extrapolated).astype(np.float32)
    return bb.emit(operators.add(operators.multiply(data, relax.const(kept, "float32")), relax.const(added, "float32")))
