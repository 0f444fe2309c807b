"""The budget of an answer of the built-in emulator, in cycles of the board."""

from __future__ import annotations

LEAST_CYCLES = 1_000_000_000
"""Cycles for any answer: seconds of a board's time. Requests besides frames take thousandths of it."""
TIMES_PREDICTED = 20
"""A multiple of the frames' predicted cycles. Observed frames, which digest each layer, have taken up to 8 times
theirs (`npukit validate` of the MLPerf Tiny networks)."""
_MORE_CYCLES = 5_000_000
"""Cycles for what the host still requests of a board whose answer did not come: to break off."""


class Patience:
    """The budget of an answer, in cycles since the last byte from the board or the request after it."""

    def __init__(self, predicted_cycles: int) -> None:
        """`predicted_cycles`: of one frame, or round of frames."""
        self._predicted = predicted_cycles
        self._frames = 1
        self._since = 0
        self._spent = False

    @property
    def budget(self) -> int:
        return LEAST_CYCLES + TIMES_PREDICTED * self._predicted * self._frames

    def expect(self, frames: int) -> None:
        """The next answer comes after so many frames."""
        self._frames = frames

    def asked(self, now: int) -> None:
        """The host has sent something."""
        self._since = self._since if self._spent else now

    def answered(self, now: int) -> None:
        """The board has."""
        self._since, self._spent = now, False

    def end(self, now: int) -> int:
        """The cycle at which it ends, for who begins to wait."""
        return max(self._since + self.budget, now + _MORE_CYCLES)

    def gone(self) -> None:
        """Notes that the budget's last cycle is there, and no answer."""
        self._spent = True

    def told(self, now: int) -> str:
        """The budget that was spent, if any was, in words; for time on this machine callers have one of their own."""
        took = f"{now - self._since:,} cycles since it was asked"
        budget = (
            f"its budget of {self.budget:,} cycles ({LEAST_CYCLES:,} and {TIMES_PREDICTED} times what is predicted)"
        )
        return f"time-out: the board has run for {took}, {'beyond' if self._spent else 'of'} {budget}"
