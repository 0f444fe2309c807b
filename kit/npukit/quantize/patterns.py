"""Patterns of plug-ins over the Relax module, found by TVM's own pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm.ir import IRModule
from tvm.relax.transform import FuseOpsByPattern, FusionPattern

Patterns = Sequence[tuple[Any, ...]]
"""Patterns as `FuseOpsByPattern` takes them, each a tuple: a name, a pattern, and perhaps annotations and a check."""


def matched(module: IRModule, patterns: Patterns) -> dict[Any, str]:
    """The match that each matched expression of `main` belongs to: its pattern's name and a number.

    The module stays as it is: the pass is told to leave each match alone, as npukit makes one op of it only later. Of
    matches that overlap the earlier pattern's counts, as in the pass.
    """
    found: dict[Any, str] = {}
    for number, (name, matches) in enumerate(_matches(module, patterns)):
        expressions = list(matches.values())
        if not any(expression in found for expression in expressions):
            found |= dict.fromkeys(expressions, f"{name} {number}")
    return found


def _matches(module: IRModule, patterns: Patterns) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """The name of a pattern, and the bindings that it matches."""
    for name, pattern, *rest in patterns:
        annotations, check = (*rest, None, None)[:2]
        seen: list[Mapping[Any, Any]] = []
        FuseOpsByPattern([FusionPattern(name, pattern, annotations, _seen_by(check, seen))])(module)
        yield from ((name, each) for each in seen)


def _seen_by(check: Callable[[Any], bool] | None, seen: list[Mapping[Any, Any]]) -> Callable[[Any], bool]:
    """The check, which leaves the bindings behind that it agrees to, and lets the pass change nothing."""

    def checked(context: Any) -> bool:
        if check is None or check(context):
            seen.append(dict(context.matched_bindings.items()))
        return False

    return checked
