"""Loops of interpolation and transposed convolutions: the numbers of TVM's own, in a fraction of the cycles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import relax

from net.importer.test_row_by_row import net_of
from npukit.net.importer import loops, lowering
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.net.reference import run_reference

op: Any = relax.op
IMAGE = (1, 4, 7, 6)
TRANSPOSED: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "kernels side by side": ((2, 2), {"strides": (2, 2)}),
    "overlapping": ((3, 4), {"strides": (2, 3), "padding": (1, 2, 0, 1), "output_padding": (1, 0)}),
    "gaps": ((2, 1), {"strides": (3, 2)}),
    "one phase": ((3, 3), {"padding": (1, 1, 1, 1)}),
    "cut": ((3, 3), {"strides": (2, 2), "padding": (4, 5, 6, 3)}),
    "groups": ((2, 2), {"strides": (2, 2), "groups": 2}),
}
RESIZED = [
    *((mode, (14, 9)) for mode in ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")),
    ("half_pixel", (3, 4)),
    ("pytorch_half_pixel", (1, 12)),
]


def both(compute: Any, shapes: tuple[tuple[int, ...], ...], monkeypatch: pytest.MonkeyPatch) -> list[Net]:
    """A net with npukit's loops, and one with TVM's."""
    nets = [net_of(compute, shapes)]
    monkeypatch.setattr(lowering, "OWN", {})
    loops.current().made.clear()
    return [*nets, net_of(compute, shapes)]


def cycles_of(net: Net) -> int:
    return net.ops[0].of(TvmCode).cycles


def results(nets: list[Net]) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    given = [random.standard_normal((1, *nets[0].tensor(name).shape)).astype(np.float32) for name in nets[0].inputs]
    return [run_reference(net, given)[0] for net in nets]


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolutions_are_tvm_s_to_the_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    window, told = TRANSPOSED[name]

    def compute(x: Any, weights: Any) -> Any:
        return op.nn.conv2d_transpose(x, weights, **told)

    own, usual = both(compute, (IMAGE, (4, 5 // told.get("groups", 1), *window)), monkeypatch)
    got, want = results([own, usual])
    assert np.array_equal(got, want)
    if max(told.get("strides", (1, 1))) > 1 and "groups" not in told:
        assert cycles_of(own) < 0.6 * cycles_of(usual)


@pytest.mark.parametrize(("mode", "size"), RESIZED)
def test_interpolation_is_near_tvm_s(mode: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    def compute(x: Any) -> Any:
        told = {"layout": "NCHW", "method": "linear", "coordinate_transformation_mode": mode}
        return op.image.resize2d(x, size, **told)

    own, usual = both(compute, (IMAGE,), monkeypatch)
    got, want = results([own, usual])
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5)
    assert cycles_of(own) < 0.5 * cycles_of(usual)
