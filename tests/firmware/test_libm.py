"""The mathematical functions against this machine's in double precision, and at the limits of floats."""

from __future__ import annotations

import ctypes
import math
import re

import numpy as np
import pytest

from firmware.libm_errors import BINARY, UNARY, compiled, results, worst
from firmware.polynomials import LIBM, POLYNOMIALS, Polynomial

EXACT = ("ceilf", "floorf", "fmodf", "rintf", "truncf")
NEAR = ("acosf", "acoshf", "asinf", "asinhf", "atanhf", "expf", "hypotf")
"""Functions computed in several float steps."""
INF, NAN = math.inf, math.nan
TINY, HUGE = 1e-45, 3.4028234663852886e38


@pytest.fixture(scope="module")
def libm(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return compiled(tmp_path_factory.mktemp("libm"))


def one(libm: ctypes.CDLL, name: str, x: float, y: float = 0.0) -> float:
    return float(results(libm, name, np.array([x], np.float32), np.array([y], np.float32))[0])


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_errors_are_small_for_arguments_of_all_sizes(libm: ctypes.CDLL, name: str) -> None:
    ulps, x, y = worst(libm, name, 100_000, seed=1)
    assert ulps <= (0 if name in EXACT else 2 if name in NEAR else 0.6), (x, y)


@pytest.mark.parametrize("name", list(UNARY))
def test_the_ends_of_floats(libm: ctypes.CDLL, name: str) -> None:
    ends = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, TINY, -TINY, HUGE, -HUGE, 0.5, -0.5], np.float32)
    with np.errstate(all="ignore"):
        wanted = UNARY[name](ends.astype(np.float64)).astype(np.float32)
    found = results(libm, name, ends, ends)
    for x, a, b in zip(ends.tolist(), found.tolist(), wanted.tolist(), strict=True):
        assert (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, rel=3e-7), x
        assert math.isnan(a) or math.copysign(1, a) == math.copysign(1, b), x


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, -2.0, 0.5, -0.5, TINY, HUGE])
def test_the_ends_of_powers_and_angles(libm: ctypes.CDLL, x: float) -> None:
    """Results follow annex F of the C standard, as this machine's functions do."""
    for y in (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, INF, -INF, NAN, HUGE):
        for name in ("powf", "atan2f"):
            with np.errstate(all="ignore"):
                arguments = np.array([x], np.float32).astype(float), np.array([y], np.float32).astype(float)
                wanted = float(BINARY[name](*arguments).astype(np.float32)[0])
            found = one(libm, name, x, y)
            assert (math.isnan(found) and math.isnan(wanted)) or found == pytest.approx(wanted, rel=3e-7), (name, x, y)
            assert math.isnan(found) or math.copysign(1, found) == math.copysign(1, wanted), (name, x, y)


def test_halves_are_rounded_as_each_function_says(libm: ctypes.CDLL) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8388607.5, -2.5], np.float32)
    assert results(libm, "rintf", x, x).tolist() == [0, 2, 2, 0, -2, 0, 8388608, -2]
    libm.roundf.restype, libm.roundf.argtypes = ctypes.c_float, [ctypes.c_float]
    assert [libm.roundf(float(each)) for each in x] == [1, 2, 3, -1, -2, 0, 8388608, -3]


def test_exponents_are_added_with_one_rounding(libm: ctypes.CDLL) -> None:
    libm.ldexpf.restype, libm.ldexpf.argtypes = ctypes.c_float, [ctypes.c_float, ctypes.c_int]
    for x, n in ((1.0, 3), (1.9999999, -149), (1.5, -149), (1.0, -150), (TINY, 200), (-3.0, 5000)):
        wanted = np.float32(math.ldexp(np.float32(x).item(), n)) if n < 1000 else -INF
        assert libm.ldexpf(x, n) == wanted, (x, n)


@pytest.mark.parametrize("polynomial", POLYNOMIALS, ids=lambda polynomial: polynomial.name)
def test_the_polynomials_are_as_near_as_the_benchmark_says(polynomial: Polynomial) -> None:
    """Compare errors, not the header's text: machines differ in the last bits of a coefficient."""
    text = (LIBM / "polynomials.h").read_text()
    (found,) = re.findall(rf"{polynomial.type} {polynomial.name}\[\w+\] = {{([^}}]*)}}", text)
    told = [each.strip() for each in found.split(",") if each.strip()]
    unit = 2.0**-polynomial.bits
    coefficients = [int(c.rstrip("U"), 0) * unit if polynomial.bits else float.fromhex(c.rstrip("F")) for c in told]
    x = np.linspace(polynomial.low, polynomial.high, 1001)
    error = np.abs(np.polyval(coefficients, x) - polynomial.function(x)).max()
    assert len(told) == len(polynomial.coefficients())
    assert error < 2.0**-polynomial.exact + len(told) * (unit if polynomial.bits else 2.0**-25) / 2
