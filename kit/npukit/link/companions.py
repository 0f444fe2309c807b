"""Sessions with several networks that run at the same time on a board."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.link.messages import RunResult
from npukit.link.session import Session


class CompanionSession(Session):
    """A session whose network runs beside others. `coresident`: the other sessions, and the frames of each per run."""

    coresident: tuple[tuple[CompanionSession, int], ...] = ()

    def run(self, observe: bool = False, frames: int = 1, seconds: float | None = None) -> RunResult:
        """Run this network and the coresident networks."""
        own = (self, observe, frames)
        others = [(other, False, count) for other, count in self.coresident]
        return run_together([own, *others], seconds)[0]


def run_together(
    wanted: Sequence[tuple[CompanionSession, bool, int]], seconds: float | None = None
) -> tuple[RunResult, ...]:
    """Run several networks at the same time. `wanted`: for each run the session, whether to observe, and the frames.

    The PE with the link begins last: during its run no message reaches another network.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index][0].linked)
    begun = {}
    for index in order:
        session, observe, frames = wanted[index]
        begun[index] = session.begin_run(observe, frames)
    ended = {index: wanted[index][0].end_run(begun[index], seconds) for index in reversed(order)}
    return tuple(ended[index] for index in range(len(wanted)))
