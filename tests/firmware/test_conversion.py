"""The firmware's conversions at the link equal the reference, for every kind of rounding and saturation."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from firmware.host import host_library
from npukit.net.tables import quantised


class Scale(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_float), ("step", ctypes.c_float))


class Conversion(ctypes.Structure):
    """`struct net_conversion`."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("host_bytes", ctypes.c_uint32),
        ("table", ctypes.POINTER(ctypes.c_uint8)),
        ("scales", ctypes.POINTER(Scale)),
        ("channels", ctypes.c_uint32),
        ("channel_elements", ctypes.c_uint32),
        ("zero_point", ctypes.c_int32),
        ("away", ctypes.c_bool),
        ("is_signed", ctypes.c_bool),
        ("planes", ctypes.c_uint32),
        ("plane", ctypes.c_uint32),
    )


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return host_library(
        Path(tmp_path_factory.mktemp("conversion")), "conversion/conversion.c", includes=("include", "rpc")
    )


def numbers() -> np.ndarray:
    """Halves on both sides of zero, their neighbours, values beyond int8, NaN and infinities."""
    halves = np.arange(-600, 600, dtype=np.float32) / 2
    beside = [np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)]
    strange = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-45], np.float32)
    return np.concatenate([halves, *beside, strange, np.random.default_rng(1).normal(0, 90, 2000).astype(np.float32)])


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("zero_point", [-128, 0, 17, 127])
def test_floats_are_quantised_as_the_reference_does(firmware: ctypes.CDLL, zero_point: int, away: bool) -> None:
    given = np.repeat(numbers(), 4)[: 4 * 1000 * 3].reshape(-1, 3, 4)
    offsets, steps = np.array([0, 1.5, -3], np.float32), np.array([1, 0.5, 0.3], np.float32)
    scales = (Scale * 3)(*map(Scale, offsets.tolist(), steps.tolist()))
    by = Conversion(0, 4, None, scales, 3, 4, zero_point, away, True)
    made = np.zeros(given.size, np.int8)
    for first in range(0, given.size, 1001):
        part = given.ravel()[first : first + 1001]
        firmware.net_quantize(
            ctypes.byref(by), first, part.tobytes(), made[first:].ctypes.data_as(ctypes.c_void_p), part.size
        )
    want = quantised(given, offsets[:, None], steps[:, None], zero_point, away=away)
    assert np.array_equal(made.reshape(given.shape), want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_integers_become_real_numbers_as_in_the_reference(firmware: ctypes.CDLL, dtype: type) -> None:
    every = np.arange(256).astype(np.uint8).view(dtype)
    by = Conversion(1, 4, None, (Scale * 1)(Scale(0, 0.0372)), 1, 1, 9, False, dtype is np.int8)
    made = np.zeros(256, np.float32)
    firmware.net_dequantize(ctypes.byref(by), every.tobytes(), made.ctypes.data_as(ctypes.c_void_p), 256)
    assert np.array_equal(made, (every.astype(np.int32) - 9).astype(np.float32) * np.float32(0.0372))


def test_bytes_are_looked_up(firmware: ctypes.CDLL) -> None:
    table = np.random.default_rng(2).permutation(256).astype(np.uint8)
    by = Conversion(2, 1, table.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))
    made = ctypes.create_string_buffer(256)
    firmware.net_look_up(ctypes.byref(by), bytes(range(256)), made, 256)
    assert made.raw == table.tobytes()
