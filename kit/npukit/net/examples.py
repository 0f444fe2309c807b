"""A smallest example of each kind of op: what `npukit ops` asks the engines about."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.specs.table import SPECS


def examples() -> Iterator[Net]:
    """A net for each kind; the op in question is its last."""
    return (example(kind) for kind in sorted(SPECS))


def example(kind: str) -> Net:
    """The net of one kind."""
    return check_net(parse_net(SPECS[kind].example.text(kind), {}))
