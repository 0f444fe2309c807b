"""Loops of norms of groups of channels. TVM's own cannot be joined with other loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import te, tirx

loops: Any = te


def norm_of_groups(builder: Any, call: Any) -> Any:
    """Loops over the mean, then over the squares of distances from the mean; None for axes beside those of an image."""
    told, (data, gains, biases) = call.attrs, call.args
    _, channels, *image = (int(size) for size in call.ty.shape)
    if int(told.channel_axis) != 1 or [int(axis) for axis in told.axes] != list(range(2, 2 + len(image))):
        return None
    members = channels // int(getattr(told, "num_groups", channels))
    return builder.call_te(_normed, data, gains, biases, members, float(told.epsilon))


def _normed(data: Any, gains: Any, biases: Any, members: int, epsilon: float) -> Any:
    """`members`: channels of a group."""
    images, channels, *image = data.shape
    groups, count = (images, int(channels) // members), members * prod(int(size) for size in image)

    def mean(value: Any, name: str) -> Any:
        member, *place = (loops.reduce_axis((0, size), f"r{axis}") for axis, size in enumerate((members, *image)))

        def of_group(n: Any, group: Any) -> Any:
            return loops.sum(value(n, group, member, place), axis=[member, *place])

        total = loops.compute(groups, of_group, name=f"{name}_sum")
        return loops.compute(groups, lambda n, group: total(n, group) / tirx.const(count, data.dtype), name=name)

    def read(n: Any, group: Any, member: Any, place: Sequence[Any]) -> Any:
        return data(n, group * members + member, *place)

    means = mean(read, "means")
    spread = mean(
        lambda n, g, m, place: (read(n, g, m, place) - means(n, g)) * (read(n, g, m, place) - means(n, g)), "spread"
    )

    def element(n: Any, c: Any, *place: Any) -> Any:
        group = loops.indexdiv(c, members)
        root = tirx.sqrt(spread(n, group) + tirx.const(epsilon, data.dtype))
        return (data(n, c, *place) - means(n, group)) / root * gains(c) + biases(c)

    return loops.compute(data.shape, element, name="normed")
