"""The mathematical functions of the firmware: coefficients of their polynomials, and their errors.

    python benchmarks/core/libm.py            measures the error of each function in units in the last place
    python benchmarks/core/libm.py --write    makes firmware/libm/polynomials.h

Polynomials interpolate at Chebyshev's points, with the fewest coefficients whose error is below the limit.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.polynomial import chebyshev

LIBM = Path(__file__).resolve().parents[2] / "firmware" / "libm"
POINTS = 20_001
"""Points at which the error of a polynomial is computed."""

Function = Callable[[np.ndarray], np.ndarray]

erf = np.vectorize(math.erf, otypes=[float])
erfc = np.vectorize(math.erfc, otypes=[float])


@dataclass(frozen=True)
class Polynomial:
    """Approximation of `function` from `low` to `high`, to within 2^-`exact`. Coefficients are integers in units of
    2^-`bits`, or floats if `bits` is 0."""

    name: str
    function: Function
    low: float
    high: float
    meaning: str
    bits: int = 30
    exact: int = 30

    @property
    def type(self) -> str:
        return "uint64_t" if self.bits > 31 else "int32_t" if self.bits else "float"

    def texts(self) -> list[str]:
        """The coefficients as C literals."""
        found = self.coefficients()
        if not self.bits:
            return [f"{np.float32(c).item().hex()}F" for c in found]
        return [f"0x{c:X}U" if self.bits > 31 else str(c) for c in map(round, found)]

    def coefficients(self) -> list[float]:
        """The fewest coefficients with an error below the limit, the highest power first."""
        x = np.linspace(self.low, self.high, POINTS)
        candidates = (self._interpolated(degree) for degree in range(2, 20))
        exact = self.function(x)
        found = next(each for each in candidates if np.abs(np.polyval(each, x) - exact).max() < 2.0**-self.exact)
        return [float(c * 2.0**self.bits) for c in found]

    def _interpolated(self, degree: int) -> np.ndarray:
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        points = chebyshev.chebpts1(degree + 1)
        found = chebyshev.chebfit(points, self.function(middle + half * points), degree)
        powers = np.poly1d(chebyshev.cheb2poly(found)[::-1])
        return np.atleast_1d(powers(np.poly1d([1 / half, -middle / half])).coeffs)


def over_root(function: Function, slope: float) -> Function:
    """f(r) / r as a function of r^2. `slope`: the value at 0."""

    def value(z: np.ndarray) -> np.ndarray:
        root = np.sqrt(np.maximum(z, 0))
        return np.where(root > 1e-6, function(root) / np.where(root > 1e-6, root, 1), slope)

    return value


def _power_less_one(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) > 1e-9, np.expm1(x) / np.where(np.abs(x) > 1e-9, x, 1), 1)


def _rest_of_power(r: np.ndarray) -> np.ndarray:
    safe = np.where(np.abs(r) > 1e-3, r, 1)
    return np.where(np.abs(r) > 1e-3, (np.expm1(safe) - safe) / safe**2, 0.5 + r / 6 + r * r / 24)


POLYNOMIALS = (
    Polynomial("EXP", _rest_of_power, -0.347, 0.347, "(e^r - 1 - r) / r^2", bits=0, exact=21),
    Polynomial("POWER_OF_TWO", np.exp2, -0.5, 0.5, "2^x", exact=32),
    Polynomial("EXPM1", _power_less_one, -0.5, 0.5, "(e^x - 1) / x"),
    Polynomial("SINH", over_root(np.sinh, 1), 0, 1, "sinh r / r of r^2"),
    Polynomial("TANH", over_root(np.tanh, 1), 0, 0.25, "tanh r / r of r^2"),
    Polynomial("SINE", over_root(lambda r: np.sin(r * np.pi / 2), np.pi / 2), 0, 0.25, "sin(r pi / 2) / r of r^2"),
    Polynomial("COSINE", lambda z: np.cos(np.sqrt(np.maximum(z, 0)) * np.pi / 2), 0, 0.25, "cos(r pi / 2) of r^2"),
    Polynomial("ARC_TANGENT", over_root(np.arctan, 1), 0, 1, "arctan r / r of r^2"),
    Polynomial("ERF", over_root(erf, 2 / np.sqrt(np.pi)), 0, 1, "erf r / r of r^2"),
    Polynomial("ERF_FROM_1", lambda u: erfc(1.5 + u), -0.5, 0.5, "1 - erf(x) of x - 1.5"),
    Polynomial("ERF_FROM_2", lambda u: erfc(3 + 2 * u), -0.5, 0.5, "1 - erf(x) of (x - 3) / 2"),
    Polynomial(
        "LOG2",
        over_root(lambda r: 2 / np.log(2) * np.arctanh(r), 2 / np.log(2)),
        0,
        0.0295,
        "log2((1 + r) / (1 - r)) / r of r^2",
        bits=61,
        exact=40,
    ),
)


def header() -> Iterator[str]:
    """The lines of polynomials.h."""
    yield "/* Coefficients, the highest first. Made by benchmarks/core/libm.py, which says how near they come. */"
    yield "#ifndef POLYNOMIALS_H"
    yield "#define POLYNOMIALS_H"
    yield ""
    yield "#include <stdint.h>"
    for each in POLYNOMIALS:
        values = each.texts()
        units = f", in units of 2^-{each.bits}" if each.bits else ""
        yield ""
        yield f"/* {each.meaning}, from {each.low} to {each.high}{units}, to 2^-{each.exact} */"
        yield f"#define {each.name}_COUNT {len(values)}"
        yield f"static const {each.type} {each.name}[{each.name}_COUNT] = {{"
        yield from (f"    {value}," for value in values)
        yield "};"
    yield ""
    yield "#endif"


UNARY: Mapping[str, Function] = {
    "acosf": np.arccos,
    "acoshf": np.arccosh,
    "asinf": np.arcsin,
    "asinhf": np.arcsinh,
    "atanf": np.arctan,
    "atanhf": np.arctanh,
    "ceilf": np.ceil,
    "cosf": np.cos,
    "coshf": np.cosh,
    "erff": erf,
    "exp10f": lambda x: np.power(10.0, x),
    "exp2f": np.exp2,
    "expf": np.exp,
    "expm1f": np.expm1,
    "floorf": np.floor,
    "log10f": np.log10,
    "log1pf": np.log1p,
    "log2f": np.log2,
    "logf": np.log,
    "rintf": np.rint,
    "sinf": np.sin,
    "sinhf": np.sinh,
    "sqrtf": np.sqrt,
    "tanf": np.tan,
    "tanhf": np.tanh,
    "truncf": np.trunc,
}
BINARY: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "atan2f": np.arctan2,
    "fmodf": np.fmod,
    "hypotf": np.hypot,
    "powf": np.power,
}


def compiled(folder: Path) -> ctypes.CDLL:
    """The functions as a library for this machine, with a wrapper for each that applies it to an array."""
    calls = {name: f"{name}(x[i]{', y[i]' if name in BINARY else ''})" for name in (*UNARY, *BINARY)}
    loop = (
        "void {0}_all(const float *x, const float *y, float *z, int n)\n{{ for (int i = 0; i < n; i++) z[i] = {1}; }}"
    )
    lines = ['#include "math.h"', *(loop.format(name, call) for name, call in calls.items())]
    (folder / "all.c").write_text("\n".join(lines))
    found = shutil.which("cc")
    compiler = [found] if found else [sys.executable, "-m", "ziglang", "cc"]
    # Without -Bsymbolic this machine's own functions of the same names would be called.
    shared = ["-O2", "-fPIC", "-shared", "-Wl,-Bsymbolic"]
    flags = ["-fno-builtin", "-fno-math-errno", "-ffp-contract=off", f"-I{LIBM}"]
    sources = [*map(str, sorted(LIBM.glob("*.c"))), str(folder / "all.c")]
    subprocess.run([*compiler, *shared, *flags, *sources, "-o", str(folder / "all.so")], check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def results(library: ctypes.CDLL, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The function's values for the arrays `x` and `y`."""
    z = np.empty_like(x)
    pointers = (each.ctypes.data_as(ctypes.c_void_p) for each in (x, y, z))
    getattr(library, f"{name}_all")(*pointers, len(x))
    return z


def error(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance in units in the last place. 0 if both are NaN or the same infinity, infinite if only one is finite
    or NaN."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        unit = np.spacing(np.abs(np.where(np.isfinite(nearest), nearest, 1)))
        distance = np.abs(found.astype(np.float64) - exact) / unit.astype(np.float64)
    same = (np.isnan(found) & np.isnan(nearest)) | ((found == nearest) & ~np.isfinite(nearest))
    both = np.isfinite(found) & np.isfinite(nearest)
    return np.where(same, 0, np.where(both, distance, np.inf))


def arguments(count: int, seed: int) -> np.ndarray:
    """Random floats: half with any bits, half of a normal distribution as in networks."""
    chance = np.random.default_rng(seed)
    any_bits = chance.integers(0, 1 << 32, count // 2, dtype=np.uint32).view(np.float32)
    usual = chance.normal(0, 3, count - count // 2).astype(np.float32)
    return np.concatenate([any_bits, usual])


def worst(library: ctypes.CDLL, name: str, count: int, seed: int = 0) -> tuple[float, float, float]:
    """The largest error of a function, and its arguments."""
    x, y = arguments(count, 2 * seed), np.random.default_rng(seed).permutation(arguments(count, 2 * seed + 1))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64), y.astype(np.float64)
        exact = UNARY[name](wide[0]) if name in UNARY else BINARY[name](*wide)
    found = error(results(library, name, x, y), exact)
    place = int(np.argmax(found))
    return float(found[place]), float(x[place]), float(y[place])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--count", type=int, default=4_000_000)
    given = parser.parse_args()
    if given.write:
        (LIBM / "polynomials.h").write_text("\n".join(header()) + "\n")
    with tempfile.TemporaryDirectory() as scratch:
        library = compiled(Path(scratch))
        for name in (*UNARY, *BINARY):
            ulps, x, y = worst(library, name, given.count)
            print(
                f"{name:8} {ulps:8.3f} units in the last place, at {x!r}{f', {y!r}' if name in BINARY else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
