"""A camera's image: crop, colour conversion and scaling for the model.

All steps are integer ops at the start of the network. `docs/preprocessing.md` has their formulas. Values inside are
int8, 128 less than the camera's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Literal

import numpy as np

from npukit.application.declared import SensorInput
from npukit.application.draft import Draft
from npukit.errors import NpukitError
from npukit.net.ops import (
    Attributes,
    AveragePool,
    Concat,
    Conv2d,
    Lookup,
    Pair,
    Requantize,
    ResizeBilinear,
    ResizeNearest,
)
from npukit.net.places import linear, nearest
from npukit.net.tensor import Quantization, Tensor

LOWEST = -128
SEES: Mapping[int, str] = {1: "GREY", 3: "RGB"}
"""The default colours of a model by its number of channels."""


def with_image(draft: Draft, declared: SensorInput, name: str, shape: tuple[int, ...], unit: float) -> str:
    """The image [1, rows, columns, channels] of `shape`, computed from the camera's image, the tensor `name`."""
    if len(shape) != 4 or shape[0] != 1:
        raise NpukitError(f"an input of shape {list(shape)} is no image")
    wanted = declared.sees or SEES.get(shape[3], "")
    if not wanted or len(COLOURS[wanted].planes[0].channels) != shape[3]:
        names = wanted or "RGB, BGR, YUV or GREY"
        raise NpukitError(f"the model takes images of {shape[3]} channels, which are not {names}")
    colour = COLOURS[declared.colour or wanted]
    upright = shape[1:3] if declared.rotate % 180 == 0 else shape[2:0:-1]
    crop = _crop(declared, upright)
    size = declared.size or crop[1]
    _check(colour, size, crop)
    image = _whole(draft, name, colour, size, unit)
    planes = list[tuple[str, ColourPlane]]()
    for part, plane in _planes(draft, image, colour, size):
        for axis, begin, length, cell in zip((1, 2), *crop, plane.cell, strict=True):
            part = draft.sliced(part, axis, begin // cell, (begin + length) // cell)
        planes.append((part, plane))
    seen = _coloured(draft, _joined(draft, planes, colour), colour, wanted)
    return _rotated(draft, _resized(draft, seen, upright, declared.resize), declared.rotate)


def _crop(declared: SensorInput, taken: tuple[int, ...]) -> tuple[Pair, Pair]:
    """The first row and column of the crop, by default centred, and its size."""
    rows, columns = declared.size or taken
    if declared.crop is None:
        return (0, 0), (rows, columns)
    height, width, *begin = declared.crop
    step, across = COLOURS[declared.colour].cell if declared.colour else (1, 1)
    middle = ((rows - height) // 2 // step * step, (columns - width) // 2 // across * across)
    return (begin[0], begin[1]) if begin else middle, (height, width)


def _check(colour: Colour, size: Pair, crop: tuple[Pair, Pair]) -> None:
    for begin, length, whole, cell in zip(*crop, size, colour.cell, strict=True):
        if not 0 <= begin <= begin + length <= whole:
            raise NpukitError(f"no part of {length} from {begin} on is in {whole} rows or columns of the camera")
        if begin % cell or length % cell or whole % cell:
            raise NpukitError(
                f"a size, or where a part begins, is no multiple of {cell}, as these colours have it",
                tries=["crop=HEIGHTxWIDTH+TOP+LEFT of even numbers"],
            )


def _whole(draft: Draft, name: str, colour: Colour, size: Pair, unit: float) -> str:
    """The camera's bytes as int8. Planes follow each other in rows of the first plane's width."""
    first, *others = colour.planes
    rows, columns = size[0] // first.cell[0], size[1] // first.cell[1]
    more = sum(len(plane.channels) * size[0] * size[1] // (plane.cell[0] * plane.cell[1]) for plane in others)
    pixel = len(first.channels) // first.cell[1]
    shape = 1, rows + more // size[1], columns * first.cell[1], pixel
    draft.tensors[name] = Tensor(name, shape, "uint8", Quantization((unit,), (0,)))
    return draft.op(draft.before, Requantize(), (name,), Quantization((unit,), (LOWEST,)))


def _planes(draft: Draft, image: str, colour: Colour, size: Pair) -> list[tuple[str, ColourPlane]]:
    """Each plane as a separate image of cells. Cuts lie between rows of the narrowest plane."""
    shapes = [(size[0] // plane.cell[0], size[1] // plane.cell[1], len(plane.channels)) for plane in colour.planes]
    if len(shapes) == 1:
        return [(draft.reshaped(image, (1, *shapes[0])), colour.planes[0])]
    width = min(columns * channels for _, columns, channels in shapes)
    rows = [prod(shape) // width for shape in shapes]
    image = draft.reshaped(image, (1, sum(rows), width, 1))
    cut = [draft.sliced(image, 1, begin, end) for begin, end in pairwise(accumulate(rows, initial=0))]
    parts = [draft.reshaped(part, (1, *shape)) for part, shape in zip(cut, shapes, strict=True)]
    return list(zip(parts, colour.planes, strict=True))


def _joined(draft: Draft, planes: list[tuple[str, ColourPlane]], colour: Colour) -> tuple[str, str]:
    """All channels of each pixel or cell, and their names. Values shared by four pixels are repeated for each."""
    if len(planes) == 1:
        return planes[0][0], planes[0][1].channels
    parts = list[str]()
    for name, plane in planes:
        sizes = zip(draft.tensors[name].shape[1:3], plane.cell, strict=True)
        repeats = [tuple(np.repeat(range(size), each).tolist()) for size, each in sizes]
        parts.append(name if plane.cell == (1, 1) else _op(draft, ResizeNearest(*repeats), name))
    return _op(draft, Concat(3), *parts), "".join(plane.channels for plane in colour.planes)


def _coloured(draft: Draft, joined: tuple[str, str], colour: Colour, wanted: str) -> str:
    """The image in the model's colours."""
    (name, channels), sees = joined, COLOURS[wanted].planes[0].channels
    if colour.mosaic:
        _, rows, columns, _ = draft.tensors[name].shape
        # Another index at either end, of a pixel with the colour expected there.
        mirrored = _op(draft, ResizeNearest(*((1, *range(size), size - 2) for size in (rows, columns))), name)
        weights = mosaic_weights(colour.mosaic)
        cells = _sums(draft, mirrored, weights[..., None], np.zeros(len(weights), np.int32), 4, (2, 2))
        cells = draft.reshaped(cells, (rows // 2, columns // 2, 2, 6))
        name, channels = draft.reshaped(draft.moved(draft.before, cells, (0, 2, 1, 3)), (1, rows, columns, 3)), "RGB"
    if channels in ("lh", "hl"):
        name, channels = _of_bytes(draft, name, channels)
    if channels == sees:
        return name
    if "U" in sees:
        raise NpukitError(f"npukit makes no YUV of {channels}", tries=["colour=YUV, or a model that takes RGB or grey"])
    _, rows, columns, _ = draft.tensors[name].shape
    pixels = colour.cell[1] if len(colour.planes) == 1 and not colour.mosaic else 1
    weights, more = weights_of(channels, pixels, sees)
    made = _sums(draft, name, weights[:, None, None, :], more, UNCHANGED)
    return draft.reshaped(made, (1, rows, columns * pixels, len(sees)))


def _of_bytes(draft: Draft, name: str, order: str) -> tuple[str, str]:
    """The channels decoded by tables from each byte of a pixel, and their names."""
    image, parts, names = draft.tensors[name], list[str](), ""
    for place, byte in enumerate(order):
        half = draft.sliced(name, 3, place, place + 1)
        for channel, values in OF_BYTES[byte]:
            table = draft.constant(draft.new_name(f"{half}_table"), (values + LOWEST).astype(np.int8))
            parts.append(draft.op(draft.before, Lookup(), (half, table), image.quantization))
            names += channel
    return _op(draft, Concat(3), *parts), names


def _rotated(draft: Draft, name: str, degrees: int) -> str:
    """The image turned to the right: rows and columns exchanged for a quarter turn, then reversed."""
    if degrees % 180:
        name = draft.moved(draft.before, name, (0, 2, 1, 3))
    _, rows, columns, _ = draft.tensors[name].shape
    upwards, leftwards = degrees in (180, 270), degrees in (90, 180)
    if not (upwards or leftwards):
        return name
    places = (range(size)[:: -1 if backwards else 1] for size, backwards in ((rows, upwards), (columns, leftwards)))
    return _op(draft, ResizeNearest(*map(tuple, places)), name)


def _sums(draft: Draft, name: str, weights: np.ndarray, more: np.ndarray, one: int, strides: Pair = (1, 1)) -> str:
    """(sum of weights x values + more + half of `one`) / `one`, rounded down. Values are 128 more than the integers.
    Sums have twice their value, because requantisation halves and rounds them."""
    shared = int(np.gcd.reduce([one, *weights.ravel()]))
    count, scale = len(weights), 0.5 * shared / one
    scales, values = Quantization((scale,) * count, (0,) * count, 0), (2 * weights // shared).astype(np.int8)
    filters = draft.constant(draft.new_name(f"{name}_weights"), values, scales)
    bias = draft.constant(draft.new_name(f"{name}_bias"), (2 * more // shared).astype(np.int32))
    return _op(draft, Conv2d(strides), name, filters, bias)


def _resized(draft: Draft, name: str, wanted: tuple[int, ...], how: Literal["bilinear", "nearest", "area"]) -> str:
    _, *size, _ = draft.tensors[name].shape
    pairs = list(zip(size, wanted, strict=True))
    if tuple(size) == wanted:
        return name
    if how == "bilinear":
        return _op(draft, ResizeBilinear(*(linear(before, after, "half_pixel") for before, after in pairs)), name)
    if how == "nearest":
        places = (nearest(before, after, "half_pixel", "round") for before, after in pairs)
        return _op(draft, ResizeNearest(*places), name)
    rows, columns = (before // after for before, after in pairs)
    whole = [rows * wanted[0], columns * wanted[1]]
    if whole != size:
        raise NpukitError(
            f"areas of {size[0]} x {size[1]} pixels are no whole ones of {wanted[0]} x {wanted[1]}",
            tries=["resize=bilinear", f"crop={whole[0]}x{whole[1]}"],
        )
    return _op(draft, AveragePool((rows, columns), (rows, columns)), name)


def _op(draft: Draft, attributes: Attributes, *inputs: str) -> str:
    """Append an op at the start, with the scale of the image."""
    return draft.op(draft.before, attributes, inputs, draft.tensors[inputs[0]].quantization)


UNCHANGED = 64
"""The weight of an unchanged channel. All conversions are sums of 64ths."""

TO_RGB: Mapping[str, tuple[int, int, int]] = {
    "R": (UNCHANGED, 0, 0),
    "G": (0, UNCHANGED, 0),
    "B": (0, 0, UNCHANGED),
    "Y": (UNCHANGED, UNCHANGED, UNCHANGED),
    "U": (0, -22, 114),
    "V": (90, -46, 0),
    "g": (0, UNCHANGED, 0),
    "-": (0, 0, 0),
}
"""Shares of each channel in R, G and B: BT.601 of the full range, as in JPEG. `g` is one of two parts of G."""
TO_GREY: Mapping[str, int] = {"R": 19, "G": 38, "B": 7, "Y": UNCHANGED, "U": 0, "V": 0, "g": 38, "-": 0}
"""The share of each channel in the luminance."""
MIDDLE = 128
"""The neutral value of U and V."""


@dataclass(frozen=True)
class ColourPlane:
    """A plane of elements. Each element has the channels of a cell of pixels."""

    channels: str
    cell: Pair = (1, 1)


@dataclass(frozen=True)
class Colour:
    """Planes, one after the other in memory. `mosaic`: the pattern of two by two pixels under a Bayer filter."""

    planes: tuple[ColourPlane, ...]
    mosaic: str = ""

    @property
    def cell(self) -> Pair:
        """Rows and columns of an image, and of a crop, must be multiples of these."""
        cells = [(2, 2)] if self.mosaic else [plane.cell for plane in self.planes]
        rows, columns = zip(*cells, strict=True)
        return max(rows), max(columns)


def _packed(channels: str, cell: Pair = (1, 1)) -> Colour:
    return Colour((ColourPlane(channels, cell),))


_LUMINANCE, _PAIRS = ColourPlane("Y"), (2, 2)
_BYTES = np.arange(256)
OF_BYTES: Mapping[str, Sequence[tuple[str, np.ndarray]]] = {
    "h": (("R", _BYTES & 0xF8 | _BYTES >> 5), ("g", (_BYTES & 7) << 5 | (_BYTES & 7) >> 1)),
    "l": (("g", _BYTES >> 5 << 2), ("B", (_BYTES & 31) << 3 | (_BYTES & 31) >> 2)),
}
"""Lookup tables from the low and the high byte of a 16-bit pixel to channels: five bits of red, six of green, five of
blue. The highest bits of a channel also fill its missing lowest bits. The two parts of green are added."""

COLOURS: Mapping[str, Colour] = {
    "GREY": _packed("Y"),
    "RGB": _packed("RGB"),
    "BGR": _packed("BGR"),
    "RGBA": _packed("RGB-"),
    "BGRA": _packed("BGR-"),
    "RGB565": _packed("lh"),
    "RGB565X": _packed("hl"),
    "YUV": _packed("YUV"),
    "YUYV": _packed("YUYV", (1, 2)),
    "UYVY": _packed("UYVY", (1, 2)),
    "NV12": Colour((_LUMINANCE, ColourPlane("UV", _PAIRS))),
    "NV21": Colour((_LUMINANCE, ColourPlane("VU", _PAIRS))),
    "I420": Colour((_LUMINANCE, ColourPlane("U", _PAIRS), ColourPlane("V", _PAIRS))),
    **{pattern: Colour((ColourPlane("Y"),), pattern) for pattern in ("RGGB", "BGGR", "GRBG", "GBRG")},
}
"""Orders of a camera's bytes, under their names in V4L2, OpenCV and camera drivers."""


def weights_of(channels: str, pixels: int, wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights of each channel in each value of a cell's pixels, and the constants to add. Each pixel takes its own
    luminance, if the channels have one for each pixel."""
    weights = np.zeros((pixels, len(wanted), len(channels)), np.int32)
    seen = 0
    for place, channel in enumerate(channels):
        share = [TO_GREY[channel]] if wanted == "Y" else [TO_RGB[channel]["RGB".index(each)] for each in wanted]
        own = channel == "Y" and pixels > 1
        weights[seen if own else slice(None), :, place] = share
        seen += own
    flat = weights.reshape(-1, len(channels))
    return flat, -MIDDLE * flat[:, [channel in "UV" for channel in channels]].sum(axis=1)


def mosaic_weights(pattern: str) -> np.ndarray:
    """Weights, in quarters, of a window of 4 x 4 around a cell, for R, G and B of its four pixels. A pixel of the
    colour keeps its value. Other pixels take the mean of the two or four nearest ones of this colour."""
    weights = np.zeros((2, 2, 3, 4, 4), np.int32)
    for row, column, colour in np.ndindex(2, 2, 3):
        near = _nearest(pattern, (row + 1, column + 1), "RGB"[colour])
        for place in near:
            weights[row, column, colour, *place] = 4 // len(near)
    return weights.reshape(12, 4, 4)


def _nearest(pattern: str, place: Pair, colour: str) -> Sequence[Pair]:
    """The places in a window that give a pixel a colour. The window's cell begins at 1."""
    around = [(place[0] + down, place[1] + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    found = [each for each in around if pattern[(each[0] - 1) % 2 * 2 + (each[1] - 1) % 2] == colour]
    return [place] if place in found else found
