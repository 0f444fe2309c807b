"""The mathematical functions of the firmware compiled for this machine, and their errors in units in the last place."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from firmware.polynomials import LIBM, Function, erf

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
