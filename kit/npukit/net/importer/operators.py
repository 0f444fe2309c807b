"""Which float op becomes which integer op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from npukit.net.importer import elementwise, linear, pooling
from npukit.net.importer.assembly import View
from npukit.net.importer.site import Site

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

OPERATORS: Mapping[str, Callable[[Walk, Site], View]] = {
    "add": linear.add_or_bias,
    "matmul": linear.dense,
    "nn.avg_pool2d": pooling.average_pool,
    "nn.conv2d": linear.conv2d,
    "nn.max_pool2d": pooling.max_pool,
    "nn.softmax": elementwise.softmax,
}
