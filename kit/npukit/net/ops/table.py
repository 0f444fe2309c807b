"""All op kinds by name: the `OPS` of every module of this room, and the multiply-accumulates of an op."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from npukit.net import ops
from npukit.net.net import Net, Op
from npukit.net.ops.kind import OpSpec


def modules_of(room: ModuleType) -> list[ModuleType]:
    """All modules of a room, imported."""
    return [import_module(f"{room.__name__}.{each.name}") for each in iter_modules(room.__path__)]


SPECS: Mapping[str, OpSpec] = {spec.kind: spec for module in modules_of(ops) for spec in getattr(module, "OPS", ())}


def macs(net: Net, op: Op) -> int:
    """Multiply-accumulates of the op as modelled, padding included."""
    return sum(SPECS[part.kind].products(net, part) for part in op.parts)


def total_macs(net: Net) -> int:
    return sum(macs(net, op) for op in net.ops)
