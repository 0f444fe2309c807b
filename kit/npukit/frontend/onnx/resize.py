"""ONNX's Resize: Relax's image operator where it computes the same, else products with constant matrices.

Every resizing is linear along each axis. A matrix holds the weight of each input element in each output element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.onnx.values import known, padded

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


def _triangle(distance: np.ndarray) -> np.ndarray:
    return np.clip(1 - np.abs(distance), 0, None)


def _cubic(distance: np.ndarray, sharpness: float) -> np.ndarray:
    x, a = np.abs(distance), sharpness
    near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


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
        def text(name: str, default: str) -> str:
            value = attr.get(name, default)
            return value.decode() if isinstance(value, bytes) else str(value)

        return cls(
            text("mode", "nearest"),
            text("coordinate_transformation_mode", "half_pixel"),
            text("nearest_mode", "round_prefer_floor"),
            float(attr.get("cubic_coeff_a", -0.75)),
            bool(attr.get("antialias", 0)),
            bool(attr.get("exclude_outside", 0)),
            float(attr.get("extrapolation_value", 0.0)),
        )

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
            chosen = np.clip(NEAREST[self.nearest](places), 0, axis.size - 1).astype(int)
            return np.eye(axis.size)[chosen]
        return self._weighted(axis, places)

    def _weighted(self, axis: ResizedAxis, places: np.ndarray) -> np.ndarray:
        spread = min(axis.scale, 1.0) if self.antialias else 1.0
        reach = int(np.ceil((2 if self.mode == "cubic" else 1) / spread))
        steps = np.arange(-reach, reach + 1)
        taken = np.floor(places).astype(int)[:, None] + steps
        distance = (taken - places[:, None]) * spread
        shares = _triangle(distance) if self.mode == "linear" else _cubic(distance, self.sharpness)
        if self.exclude_outside:
            shares = np.where((taken >= 0) & (taken < axis.size), shares, 0)
        if self.antialias or self.exclude_outside:
            shares = shares / shares.sum(axis=1, keepdims=True)
        matrix = np.zeros((axis.result, axis.size))
        rows = np.broadcast_to(np.arange(axis.result)[:, None], taken.shape)
        np.add.at(matrix, (rows, np.clip(taken, 0, axis.size - 1)), shares)
        return matrix


class Resize(onnx_frontend.Resize):
    """Resize through TVM's own converter, or as a matrix product for each axis where no operator is exact."""

    @classmethod
    def _impl_v11(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        return cls._impl_v18(bb, inputs, attr, params)

    @classmethod
    def _impl_v18(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        values = padded(inputs, 4)[1:]
        roi, scales, sizes = (_known(value, params) for value in values)
        shape, method = [int(side) for side in inputs[0].ty.shape], Method.of(attr)
        _check(method)
        if method.coordinates == CROP and values[0] is not None and roi is None:
            raise NpukitError("its region is computed at run time")
        axes = _axes(shape, attr, roi, scales, sizes)
        if _by_pixels(method, axes):
            plain = {name: value for name, value in attr.items() if name not in ("axes", "keep_aspect_ratio_policy")}
            sizes = relax.const(np.array([axis.result for axis in axes], np.int64))
            return super()._impl_v18(bb, _Inputs(inputs[0], sizes), plain, params)
        return _multiplied(bb, inputs[0], method, axes)


class _Inputs(list[Any]):
    """A node's inputs: data and sizes, no region and no scales."""

    def __init__(self, data: Any, sizes: Any) -> None:
        super().__init__([data, None, None, sizes])


def _known(value: Any, params: Any) -> np.ndarray | None:
    """The value of a constant, non-empty input; None for other inputs."""
    found = known(value, params)
    return found if found is not None and found.size else None


def _check(method: Method) -> None:
    words = (method.mode, ("nearest", "linear", "cubic")), (method.coordinates, PLACES), (method.nearest, NEAREST)
    for name, names in words:
        if name not in names:
            raise NpukitError(f"it resizes by {name!r}, which ONNX does not know")


def _axes(
    shape: list[int], attr: Any, roi: np.ndarray | None, scales: np.ndarray | None, sizes: np.ndarray | None
) -> list[ResizedAxis]:
    if scales is None and sizes is None:
        raise NpukitError("its scales or sizes are computed at run time")
    chosen = [int(axis) % len(shape) for axis in attr.get("axes", range(len(shape)))]
    starts, ends = (np.zeros(len(chosen)), np.ones(len(chosen))) if roi is None else np.split(roi, 2)
    factors = _factors([shape[axis] for axis in chosen], attr, scales, sizes)
    axes = [ResizedAxis(size, size, 1.0) for size in shape]
    for axis, (result, scale), start, end in zip(chosen, factors, starts, ends, strict=True):
        axes[axis] = ResizedAxis(shape[axis], result, scale, float(start), float(end))
    return axes


def _factors(
    shape: list[int], attr: Any, scales: np.ndarray | None, sizes: np.ndarray | None
) -> list[tuple[int, float]]:
    """The result size and the scale of each axis."""
    if scales is not None:
        return [(int(np.floor(size * scale)), float(scale)) for size, scale in zip(shape, scales, strict=True)]
    assert sizes is not None
    ratios = [float(wanted) / size for wanted, size in zip(sizes, shape, strict=True)]
    policy = attr.get("keep_aspect_ratio_policy", b"stretch")
    name = policy.decode() if isinstance(policy, bytes) else str(policy)
    if name == "stretch":
        return [(int(wanted), ratio) for wanted, ratio in zip(sizes, ratios, strict=True)]
    scale = min(ratios) if name == "not_larger" else max(ratios)
    return [(int(np.floor(scale * size + 0.5)), scale) for size in shape]


def _by_pixels(method: Method, axes: list[ResizedAxis]) -> bool:
    """True if Relax's image operator computes the same."""
    spatial = len(axes) == 4 and axes[0].stays and axes[1].stays
    ratio = all(abs(axis.scale * axis.size - axis.result) < 1e-6 for axis in axes)
    plain = method.mode in ("nearest", "linear") and not method.antialias and not method.exclude_outside
    aligned = method.coordinates != "align_corners" or min(axis.result for axis in axes[2:]) > 1
    return spatial and ratio and plain and aligned and method.coordinates in BY_PIXELS


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
