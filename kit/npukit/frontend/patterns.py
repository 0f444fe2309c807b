"""Matches of plug-ins' patterns in a module, found by TVM's own pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm.ir import IRModule
from tvm.relax.transform import FuseOpsByPattern, FusionPattern

Patterns = Sequence[tuple[Any, ...]]
"""Patterns for `FuseOpsByPattern`, each a tuple: a name, a pattern, and optionally annotations and a check."""


def matched(module: IRModule, patterns: Patterns) -> dict[Any, str]:
    """The match of each matched expression of `main`: the pattern's name and a number. The module is unchanged, because
    npukit forms the matched ops only later. If matches overlap, the earlier pattern's match counts, as in the pass."""
    found: dict[Any, str] = {}
    for number, (name, matches) in enumerate(_matches(module, patterns)):
        expressions = list(matches.values())
        if not any(expression in found for expression in expressions):
            found |= dict.fromkeys(expressions, f"{name} {number}")
    return found


def _matches(module: IRModule, patterns: Patterns) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    """The name of each matching pattern, and the matched bindings."""
    for name, pattern, *rest in patterns:
        annotations, check = (*rest, None, None)[:2]
        seen: list[Mapping[Any, Any]] = []
        FuseOpsByPattern([FusionPattern(name, pattern, annotations, _seen_by(check, seen))])(module)
        yield from ((name, each) for each in seen)


def _seen_by(check: Callable[[Any], bool] | None, seen: list[Mapping[Any, Any]]) -> Callable[[Any], bool]:
    """A check that records the bindings accepted by `check` and rejects every match. The pass then changes nothing."""

    def checked(context: Any) -> bool:
        if check is None or check(context):
            seen.append(dict(context.matched_bindings.items()))
        return False

    return checked
