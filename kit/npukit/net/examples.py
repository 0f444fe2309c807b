"""A minimal example net of each op kind, from which `npukit ops` lists the engines' support."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops.table import SPECS
from npukit.net.parse import parse_net


def examples() -> Iterator[Net]:
    """An example net of each op kind. The op of the kind is the last."""
    return (example(kind) for kind in sorted(SPECS))


def example(kind: str) -> Net:
    """The example net of an op kind."""
    return check_net(parse_net(SPECS[kind].example.text(kind), {}))
