"""A Net's invariants."""

from __future__ import annotations

from npukit.net.net import Net


def check_net(net: Net) -> Net:
    """The net itself, if all is well."""
    return net
