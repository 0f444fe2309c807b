"""The better orientation of the array for a plane of an output, and the cycles."""

from __future__ import annotations

from npukit.accel.geometry import Plane, depth_of, window_of
from npukit.accel.mac_array.cycles import RAW_WRITE_BACK, WRITE_BACK, Figures
from npukit.net.net import Net, Op


def along_pixels(figures: Figures, plane: Plane, depth: int) -> bool:
    """True if the wide axis is better laid along pixels than along channels."""
    pixels, channels = (
        figures.convolution(plane.pixels, plane.channels, depth, along_pixels=choice) for choice in (True, False)
    )
    return pixels < channels


def cycles_of(net: Net, op: Op, plane: Plane, figures: Figures) -> int:
    """Cycles of the command for this plane of the op's output."""
    main, residual = op.parts[0], len(op.parts) > 1
    kind, taps = main.kind, window_of(net, main).taps
    if kind == "add":
        return figures.addition(plane.pixels * plane.channels)
    if kind in ("depthwise_conv2d", "mean"):
        return figures.depthwise(plane.pixels, plane.channels, taps, residual=residual)
    if kind in ("average_pool", "max_pool"):
        return figures.pool(plane.pixels, plane.channels, taps)
    depth = depth_of(net, main)
    choice = along_pixels(figures, plane, depth)
    write_back = RAW_WRITE_BACK if kind == "sums" else WRITE_BACK * (1 + residual)
    return figures.convolution(plane.pixels, plane.channels, depth, along_pixels=choice, write_back=write_back)
