"""A site: a float op between dequantize and quantize, with its bias and clip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.expressions import Definitions, callee, constant_value, resolve, shape_of
from npukit.net.tensor import Quantization

FAR = float(1 << 31)
"""Steps beyond every integer type. The limits of some clips are the ends of a float's range."""


@dataclass(frozen=True)
class Site:
    """A float op `core`, whose result is clipped to low..high and quantised as `quantization` in `dtype`."""

    core: Any
    quantization: Quantization
    dtype: str
    low: float | None = None
    high: float | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.core)

    @property
    def unclipped(self) -> Site:
        return replace(self, low=None, high=None)

    def quantized(self, quantization: Quantization) -> Site:
        """The same float op with another output quantisation and no clip."""
        return replace(self.unclipped, quantization=quantization)

    def clipped(self, core: Any, low: float | None, high: float | None) -> Site:
        """The site with one more clip absorbed."""
        lows = [limit for limit in (self.low, low) if limit is not None]
        highs = [limit for limit in (self.high, high) if limit is not None]
        return replace(self, core=core, low=max(lows, default=None), high=min(highs, default=None))

    @property
    def clamp(self) -> tuple[int, int]:
        """The clip in output integers, rounded as in TFLite."""
        limits = np.iinfo(np.dtype(self.dtype))
        low, high = int(limits.min), int(limits.max)
        if self.low is not None:
            low = min(max(low, self._integer(self.low)), high)
        if self.high is not None:
            high = max(min(high, self._integer(self.high)), low)
        return low, high

    def _integer(self, real: float) -> int:
        with np.errstate(over="ignore"):
            steps = float(np.clip(np.float32(real) / np.float32(self.quantization.scale), -FAR, FAR))
        return self.quantization.zero_point + int(np.copysign(np.floor(abs(steps) + 0.5), steps))


def site_of(site: Site, definitions: Definitions) -> Site:
    """The site with all clips after the float op absorbed."""
    site = replace(site, core=resolve(site.core, definitions))
    while True:
        limits = _limits(site.core, definitions)
        if limits is None:
            return site
        site = site.clipped(resolve(site.core.args[0], definitions), *limits)


def _limits(expression: Any, definitions: Definitions) -> tuple[float | None, float | None] | None:
    name = callee(expression)
    if name == "nn.relu":
        return 0.0, None
    if name == "nn.relu6":
        return 0.0, 6.0
    if name == "clip":
        return _literal(expression.args[1]), _literal(expression.args[2])
    if name in ("maximum", "minimum"):
        limit = constant_value(expression.args[1], definitions)
        if limit is not None and limit.size == 1:
            return (float(limit.item()), None) if name == "maximum" else (None, float(limit.item()))
    return None


def _literal(expression: Any) -> float | None:
    """A clip's limit; None if infinite."""
    value = float(expression.value.value if hasattr(expression.value, "value") else expression.value)
    if np.isnan(value):
        raise NpukitError("it clips to a limit that is not a number")
    return value if np.isfinite(value) else None
