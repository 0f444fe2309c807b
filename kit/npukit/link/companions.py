"""Sessions with networks that run at the same time on one board."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.link.messages import RunResult
from npukit.link.session import Session


class CompanionSession(Session):
    """A session whose runs may be beside those of others: meanwhile other networks run so many frames each."""

    coresident: tuple[tuple[CompanionSession, int], ...] = ()

    def run(self, observe: bool = False, frames: int = 1, seconds: float | None = None) -> RunResult:
        """A run of this network, beside those of others."""
        own = (self, observe, frames)
        others = [(other, False, count) for other, count in self.coresident]
        return run_together([own, *others], seconds)[0]


def run_together(
    wanted: Sequence[tuple[CompanionSession, bool, int]], seconds: float | None = None
) -> tuple[RunResult, ...]:
    """Runs at the same time: each of a session, observed or not, of so many frames.

    The PE that has the link begins last: while it runs, nothing else gets through.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index][0].linked)
    begun = {}
    for index in order:
        session, observe, frames = wanted[index]
        begun[index] = session.begin_run(observe, frames)
    ended = {index: wanted[index][0].end_run(begun[index], seconds) for index in reversed(order)}
    return tuple(ended[index] for index in range(len(wanted)))
