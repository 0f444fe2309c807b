"""Colours of a camera: the layout of the bytes, and integer weights for the conversion to RGB or grey.

A conversion is a 1 x 1 convolution in integers, (sum of weight x value + 32) >> 6, between 0 and 255.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.net.ops import Pair

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
