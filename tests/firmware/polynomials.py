"""The polynomials of the firmware's mathematical functions: makes firmware/libm/polynomials.h.

    python tests/firmware/polynomials.py

Polynomials interpolate at Chebyshev's points, with the fewest coefficients whose error is below the limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
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
    yield "/* Coefficients, the highest first. Made by tests/firmware/polynomials.py. */"
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


if __name__ == "__main__":
    (LIBM / "polynomials.h").write_text("\n".join(header()) + "\n")
