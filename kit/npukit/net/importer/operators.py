"""Import function of each Relax operator with an integer op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from npukit.net.importer import elementwise, images, linear, reduction, unary
from npukit.net.importer.assembly import AxesView
from npukit.net.importer.site import Site

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

OPERATORS: Mapping[str, Callable[[Walk, Site], AxesView]] = {
    **dict.fromkeys((*unary.FUNCTIONS, *unary.WITH_ATTRIBUTES), unary.lookup),
    **linear.LINEAR,
    "add": linear.add_or_bias,
    "concat": reduction.concat,
    "maximum": elementwise.maximum,
    "mean": reduction.mean,
    "minimum": elementwise.minimum,
    "multiply": elementwise.multiply,
    "nn.avg_pool1d": images.average_pool,
    "nn.avg_pool2d": images.average_pool,
    "nn.max_pool1d": images.max_pool,
    "nn.max_pool2d": images.max_pool,
    **dict.fromkeys(("nn.layer_norm", "nn.rms_norm"), reduction.norm),
    "nn.prelu": elementwise.prelu,
    "nn.softmax": elementwise.softmax,
    "subtract": elementwise.subtract,
    "where": elementwise.select,
}
