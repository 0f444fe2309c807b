"""Golden cases: the inputs that a build folder keeps, and the reference's outputs for them."""

from __future__ import annotations

from npukit.measure.cases import Cases, expecting
from npukit.measure.noise import noise
from npukit.net.net import Net

GOLDEN_CASES, GOLDEN_FRAMES = 3, 4
"""Cases of noise, and the frames of each if the network has states."""


def golden_cases(net: Net) -> Cases:
    """Inputs of noise, the same wherever they are made, and the reference's outputs."""
    frames = GOLDEN_FRAMES if net.states else None
    count = GOLDEN_CASES * (frames or 1)
    return expecting(net, Cases(tuple(noise(net, name, count) for name in net.inputs), {}, None, frames, bool(frames)))
