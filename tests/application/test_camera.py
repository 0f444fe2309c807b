"""A camera's image becomes the model's input. The formulas of `docs/preprocessing.md` are repeated here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from npukit.application.apply import applied
from npukit.application.declared import Declared, parsed_input
from npukit.application.inputs import real_numbers, sensor_shape
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference

Image = np.ndarray
"""[rows, columns, channels]"""


def model(rows: int, columns: int, channels: int, layout: str = "NHWC") -> Net:
    """A net that outputs the input bytes less 128."""
    sizes = (channels, rows, columns) if layout == "NCHW" else (rows, columns, channels)
    image = f"int8[1,{','.join(map(str, sizes))}] scale 0.5 zero -128"
    return parse_net(f"net n\ninput x: {image}\nop y: {image} = requantize(x)\noutput y\n", {})


def seen(words: str, given: np.ndarray, net: Net, layout: str = "NHWC") -> np.ndarray:
    """The model's input bytes."""
    made = applied(net, Declared(input=(parsed_input(f"uint8 scale=0.5 {words}"),)), layout)  # pyright: ignore[reportArgumentType]
    (got,) = run_reference(made, [given[None]])
    return got[0].astype(int) + 128


def random_bytes(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 256, shape, np.uint8)


def by_weights(*channels: tuple[np.ndarray, tuple[int, ...]]) -> Image:
    total = sum(np.multiply.outer(values.astype(int), np.array(weights)) for values, weights in channels)
    return np.clip((total + 32) // 64, 0, 255)


def rgb_of_yuv(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> Image:
    u, v = u.astype(int) - 128, v.astype(int) - 128
    return by_weights((y, (64, 64, 64)), (u, (0, -22, 114)), (v, (90, -46, 0)))


def grey_of_rgb(image: Image) -> Image:
    r, g, b = np.moveaxis(image, -1, 0)
    return by_weights((r, (19,)), (g, (38,)), (b, (7,)))


def of_pairs(order: str) -> Callable[[Image], Image]:
    def convert(image: Image) -> Image:
        """Two pixels in four bytes."""
        rows, columns, _ = image.shape
        bytes_ = image.reshape(rows, columns // 2, 4)
        y = bytes_[..., [place for place in range(4) if order[place] == "Y"]].reshape(rows, columns)
        u, v = (np.repeat(bytes_[..., order.index(each)], 2, axis=1) for each in "UV")
        return rgb_of_yuv(y, u, v)

    return convert


def of_planes(order: str, *, apart: bool) -> Callable[[Image], Image]:
    def convert(image: Image) -> Image:
        """One plane of luminance, then one or two planes of chrominance with a quarter of the pixels."""
        rows, columns = image.shape[0] * 2 // 3, image.shape[1]
        rest = image.ravel()[rows * columns :]
        shape = (2, rows // 2, columns // 2) if apart else (rows // 2, columns // 2, 2)
        colours = rest.reshape(shape) if apart else np.moveaxis(rest.reshape(shape), -1, 0)
        u, v = (np.kron(colours[order.index(each)].astype(int), np.ones((2, 2), int)) for each in "UV")
        return rgb_of_yuv(image[:rows, :, 0], u, v)

    return convert


def of_mosaic(pattern: str) -> Callable[[Image], Image]:
    def convert(image: Image) -> Image:
        """Each colour of a pixel: measured there, or the mean of the nearest neighbours with this colour."""
        rows, columns, _ = image.shape
        padded = np.pad(image[..., 0].astype(int), 1, mode="reflect")
        made = np.zeros((rows, columns, 3), int)
        for row, column, colour in np.ndindex(rows, columns, 3):
            near = [(row + i, column + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
            near = [(i, j) for i, j in near if pattern[i % 2 * 2 + j % 2] == "RGB"[colour]]
            near = [(row, column)] if (row, column) in near else near
            total = sum(padded[i + 1, j + 1] for i, j in near)
            made[row, column, colour] = (total * 2 + len(near)) // (2 * len(near))
        return made

    return convert


def of_16_bits(kind: str) -> Callable[[Image], Image]:
    def convert(image: Image) -> Image:
        """Five, six and five bits of red, green and blue, widened by repeating the highest bits."""
        pixels = np.ascontiguousarray(image).view(kind)[..., 0].astype(int)
        red, green, blue = pixels >> 11, pixels >> 5 & 63, pixels & 31
        return np.stack([red * 8 + red // 4, green * 4 + green // 16, blue * 8 + blue // 4], axis=-1)

    return convert


CAMERAS: dict[str, tuple[tuple[int, int, int], Callable[[Image], Image]]] = {
    "GREY": ((6, 8, 1), lambda image: np.repeat(image, 3, axis=2)),
    "RGB": ((6, 8, 3), lambda image: image),
    "BGR": ((6, 8, 3), lambda image: image[..., ::-1]),
    "RGBA": ((6, 8, 4), lambda image: image[..., :3]),
    "BGRA": ((6, 8, 4), lambda image: image[..., 2::-1]),
    "RGB565": ((6, 8, 2), of_16_bits("<u2")),
    "RGB565X": ((6, 8, 2), of_16_bits(">u2")),
    "YUV": ((6, 8, 3), lambda image: rgb_of_yuv(*np.moveaxis(image, -1, 0))),
    "YUYV": ((6, 8, 2), of_pairs("YUYV")),
    "UYVY": ((6, 8, 2), of_pairs("UYVY")),
    "NV12": ((9, 8, 1), of_planes("UV", apart=False)),
    "NV21": ((9, 8, 1), of_planes("VU", apart=False)),
    "I420": ((9, 8, 1), of_planes("UV", apart=True)),
    **{name: ((6, 8, 1), of_mosaic(name)) for name in ("RGGB", "BGGR", "GRBG", "GBRG")},
}


@pytest.mark.parametrize("colour", CAMERAS)
def test_rgb_of_each_camera(colour: str) -> None:
    shape, convert = CAMERAS[colour]
    given = random_bytes(*shape)
    np.testing.assert_array_equal(seen(f"colour={colour}", given, model(6, 8, 3)), convert(given))


def test_every_pixel_of_16_bits() -> None:
    given = np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(256, 256, 2)
    got = seen("colour=RGB565", given, model(256, 256, 3))
    np.testing.assert_array_equal(got, of_16_bits("<u2")(given))
    assert (got[0, 0].tolist(), got[-1, -1].tolist()) == ([0, 0, 0], [255, 255, 255])


@pytest.mark.parametrize("colour", ["RGB", "BGR", "RGB565", "RGGB"])
def test_grey_of_colours(colour: str) -> None:
    shape, convert = CAMERAS[colour]
    given = random_bytes(*shape)
    np.testing.assert_array_equal(seen(f"colour={colour}", given, model(6, 8, 1)), grey_of_rgb(convert(given)))


def test_grey_of_luminance_is_the_luminance() -> None:
    given = random_bytes(6, 8, 2)
    np.testing.assert_array_equal(seen("colour=YUYV", given, model(6, 8, 1)), given[..., :1])


def test_a_model_may_see_blue_first_and_plane_by_plane() -> None:
    given = random_bytes(6, 8, 3)
    got = seen("colour=RGB sees=BGR", given, model(6, 8, 3, "NCHW"), "NCHW")
    np.testing.assert_array_equal(got, given[..., ::-1].transpose(2, 0, 1))


@pytest.mark.parametrize(("crop", "part"), [("4x6", (2, 4)), ("4x6+2+8", (2, 8)), ("4x6+0+0", (0, 0))])
@pytest.mark.parametrize("colour", ["RGB", "YUYV", "NV12", "I420"])
def test_a_part_of_the_image(colour: str, crop: str, part: tuple[int, int]) -> None:
    (rows, _, channels), convert = CAMERAS[colour]
    given, (top, left) = random_bytes(rows // 3 * 4, 14, channels), part
    got = seen(f"colour={colour} size=8x14 crop={crop}", given, model(4, 6, 3))
    np.testing.assert_array_equal(got, convert(given)[top : top + 4, left : left + 6])


def test_the_edges_of_a_part_of_a_mosaic_are_mirrored() -> None:
    given = random_bytes(8, 12, 1)
    got = seen("colour=GBRG size=8x12 crop=4x6+2+4", given, model(4, 6, 3))
    np.testing.assert_array_equal(got, of_mosaic("GBRG")(given[2:6, 4:10]))


def blended(image: Image, size: int, axis: int) -> np.ndarray:
    """Interpolation between two neighbours along an axis, in 1/1024."""
    before = image.shape[axis]
    step = (1024 * before + size // 2) // size
    places = [place * step + step // 2 - 512 for place in range(size)]
    low = [min(max(int(place / 1024), 0), before - 1) for place in places]
    high = [min(-int(-place // 1024), before - 1) if place > 0 else 0 for place in places]
    far = np.array([place - 1024 * max(int(place / 1024), 0) for place in places])
    far = far.reshape([-1 if each == axis else 1 for each in range(3)])
    return image.take(low, axis) * (1024 - far) + image.take(high, axis) * far


@pytest.mark.parametrize("size", [(3, 5), (4, 4), (12, 16), (7, 30)])
def test_bilinear(size: tuple[int, int]) -> None:
    given = random_bytes(6, 8, 3)
    total = blended(blended(given.astype(int) - 128, size[0], 0), size[1], 1)
    want = np.sign(total) * ((np.abs(total) + (1 << 19)) >> 20) + 128
    np.testing.assert_array_equal(seen("size=6x8", given, model(*size, 3)), want)


def test_nearest() -> None:
    given = random_bytes(6, 8, 3)
    got = seen("size=6x8 resize=nearest", given, model(4, 12, 3))
    rows, columns = (np.floor((np.arange(4) + 0.5) * 1.5).astype(int), np.floor((np.arange(12) + 0.5) * 8 / 12))
    np.testing.assert_array_equal(got, given[rows][:, columns.astype(int)])


def test_areas() -> None:
    given = random_bytes(6, 8, 3)
    total = (given.astype(int) - 128).reshape(2, 3, 4, 2, 3).sum(axis=(1, 3))
    want = np.sign(total) * ((np.abs(total) + 3) // 6) + 128
    np.testing.assert_array_equal(seen("size=6x8 resize=area", given, model(2, 4, 3)), want)


@pytest.mark.parametrize(("degrees", "turns"), [(90, -1), (180, 2), (270, 1)])
@pytest.mark.parametrize("colour", ["RGB", "YUYV", "RGB565"])
def test_a_camera_that_is_turned(colour: str, degrees: int, turns: int) -> None:
    """The part is cropped and resized in the camera's orientation, then rotated clockwise."""
    (rows, columns, channels), convert = CAMERAS[colour]
    given = random_bytes(rows, columns, channels)
    whole = np.rot90(convert(given), turns)
    np.testing.assert_array_equal(seen(f"colour={colour} rotate={degrees}", given, model(*whole.shape)), whole)
    words = f"colour={colour} rotate={degrees} size=6x8 crop=4x4+2+0 resize=nearest"
    near = np.rot90(convert(given)[2:6, :4][1::2, 1::2], turns)
    np.testing.assert_array_equal(seen(words, given, model(*near.shape)), near)


def test_bytes_less_128_cost_nothing() -> None:
    """After the op executed by the link there are no further ops."""
    net = applied(model(6, 8, 3), Declared(input=(parsed_input("uint8 scale=0.5 size=6x8"),)), "NHWC")
    assert [op.kind for op in net.ops] == ["requantize", "requantize"]


def test_a_mean_is_no_relabelling() -> None:
    given = random_bytes(6, 8, 3)
    got = seen("colour=RGB mean=8 std=2", given, model(6, 8, 3))
    np.testing.assert_array_equal(got, np.clip(np.rint((given * 0.5 - 8) / 2 / 0.5), 0, 255))


@pytest.mark.parametrize("colour", ["RGB", "YUYV", "NV12", "RGGB"])
def test_calibration_sees_the_same_image(colour: str) -> None:
    """The real inputs for calibrating a float model equal the results of the preprocessing steps."""
    shape, convert = CAMERAS[colour]
    declared = parsed_input(f"uint8 scale=0.25 mean=3 std=2 colour={colour}")
    given = random_bytes(2, *shape)
    assert sensor_shape(declared, (1, 3, 6, 8), "NCHW") == (1, *shape)
    got = real_numbers(declared, given, (1, 3, 6, 8), "NCHW")
    want = (np.stack([convert(each) for each in given]) * 0.25 - 3) / 2
    np.testing.assert_array_equal(got[:, 0], want.transpose(0, 3, 1, 2).astype(np.float32))


@pytest.mark.parametrize(
    ("words", "shape", "message"),
    [
        ("colour=YUYV size=6x8 crop=4x3", (4, 3, 3), "no multiple of 2"),
        ("colour=RGGB size=6x8 crop=4x4+1+0", (4, 4, 3), "no multiple of 2"),
        ("size=6x8 crop=8x8", (4, 4, 3), "no part of 8 from"),
        ("colour=RGB", (4, 4, 2), "images of 2 channels"),
        ("colour=RGB rotate=45", (4, 4, 3), "0, 90, 180 or 270"),
        ("sees=BGR", (4, 4, 1), "images of 1 channels, which are not BGR"),
        ("colour=RGB sees=YUV", (4, 4, 3), "makes no YUV of RGB"),
        ("size=7x8 resize=area", (2, 4, 3), "no whole ones of 2 x 4"),
    ],
)
def test_what_is_no_image_of_the_camera(words: str, shape: tuple[int, int, int], message: str) -> None:
    with pytest.raises(NpukitError, match=message):
        applied(model(*shape), Declared(input=(parsed_input(f"uint8 {words}"),)), "NHWC")
