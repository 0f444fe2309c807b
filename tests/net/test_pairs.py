"""Quotients and squared differences of all pairs of bytes, against real numbers and TFLite's integers."""

from __future__ import annotations

import numpy as np
import pytest

from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference
from npukit.net.tables import EVERY

SCALES = (
    (0.05, 0.08, 0.08),
    (1.0, 1.0, 1.0),
    (1e-7, 0.3, 1e-5),
    (4e3, 2e-4, 0.01),
    (1e-3, 0.2, 0.3),
    (1e-30, 1e30, 1e30),
    (1e30, 1e-30, 1e-30),
)
ZEROS = ((3, -5, 7), (0, 0, 0), (-128, 127, -128))


def net_of(kind: str, scales: tuple[float, ...], zeros: tuple[int, ...]) -> Net:
    a, b, y = (f"int8[256] scale {scale} zero {zero}" for scale, zero in zip(scales, zeros, strict=True))
    return check_net(parse_net(f"net pairs\ninput a: {a}\ninput b: {b}\nop y: {y} = {kind}(a, b)\noutput y\n", {}))


def results_of(net: Net) -> np.ndarray:
    """The results [first, second] of all pairs."""
    first, second = (each.astype(np.int8) for each in np.meshgrid(EVERY, EVERY, indexing="ij"))
    return run_reference(net, [first, second])[0].astype(np.int64)


@pytest.mark.parametrize("zeros", ZEROS)
@pytest.mark.parametrize("scales", SCALES)
def test_a_quotient_is_the_nearest_number(scales: tuple[float, ...], zeros: tuple[int, ...]) -> None:
    first, second = EVERY[:, None] - zeros[0], EVERY - zeros[1]
    with np.errstate(all="ignore"):
        real = first / second * (scales[0] / scales[1] / scales[2])
    wanted = np.where((first == 0) & (second == 0), 0, real).clip(-300, 300) + zeros[2]
    found = results_of(net_of("divide", scales, zeros))
    assert np.abs(found - wanted.clip(-128, 127)).max() <= 0.5 + 1e-4


def test_a_square_beyond_32_bits_is_refused() -> None:
    with pytest.raises(NpukitError, match="too small for squares"):
        net_of("squared_difference", (1.0, 1.0, 1e-4), (0, 0, 0))
