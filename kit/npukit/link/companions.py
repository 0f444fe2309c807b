"""Sessions with several networks that run on one board at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.link.messages import RunResult
from npukit.link.session import Session


class CompanionSession(Session):
    """A session that runs its network beside others. `coresident`: the other sessions, and frames of each per run."""

    coresident: tuple[tuple[CompanionSession, int], ...] = ()

    def run(self, observe: bool = False, frames: int = 1, seconds: float | None = None) -> RunResult:
        """Run this network, and the coresident networks beside it."""
        own = (self, observe, frames)
        others = [(other, False, count) for other, count in self.coresident]
        return run_together([own, *others], seconds)[0]


def run_together(
    wanted: Sequence[tuple[CompanionSession, bool, int]], seconds: float | None = None
) -> tuple[RunResult, ...]:
    """Run several networks at the same time. `wanted`: for each run the session, whether it is observed, and its
    frames.

    The PE that has the link begins last, because no message for another network gets through while it runs.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index][0].linked)
    begun = {}
    for index in order:
        session, observe, frames = wanted[index]
        begun[index] = session.begin_run(observe, frames)
    ended = {index: wanted[index][0].end_run(begun[index], seconds) for index in reversed(order)}
    return tuple(ended[index] for index in range(len(wanted)))
