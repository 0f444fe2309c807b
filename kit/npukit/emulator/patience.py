"""The budget of an answer of the built-in emulator, in cycles of the board."""

from __future__ import annotations

LEAST_CYCLES = 1_000_000_000
"""Cycles for any answer: seconds of a board's time. Requests other than frames take thousandths of this."""
TIMES_PREDICTED = 20
"""A multiple of the frames' predicted cycles. Observed frames, which digest each layer, have taken up to 8 times the
prediction (`npukit validate` of the MLPerf Tiny networks)."""
_MORE_CYCLES = 5_000_000
"""Cycles for the host's requests after a missing answer: to break off."""


class Patience:
    """The budget of an answer, in cycles since the last byte from the board or the request after it."""

    def __init__(self, predicted_cycles: int) -> None:
        """`predicted_cycles`: of a frame, or of a round of frames."""
        self._predicted = predicted_cycles
        self._frames = 1
        self._since = 0
        self._spent = False

    @property
    def budget(self) -> int:
        return LEAST_CYCLES + TIMES_PREDICTED * self._predicted * self._frames

    def expect(self, frames: int) -> None:
        """Announce `frames` frames before the next answer."""
        self._frames = frames

    def asked(self, now: int) -> None:
        """Note a request of the host at cycle `now`."""
        self._since = self._since if self._spent else now

    def answered(self, now: int) -> None:
        """Note bytes from the board at cycle `now`."""
        self._since, self._spent = now, False

    def end(self, now: int) -> int:
        """Cycle at which the budget ends for a wait that begins at `now`."""
        return max(self._since + self.budget, now + _MORE_CYCLES)

    def gone(self) -> None:
        """Note that the budget is spent without an answer."""
        self._spent = True

    def in_words(self, now: int) -> str:
        """The time-out in words: cycles taken, and the budget. Callers have another limit for time on this machine."""
        took = f"{now - self._since:,} cycles since it was asked"
        budget = (
            f"its budget of {self.budget:,} cycles ({LEAST_CYCLES:,} and {TIMES_PREDICTED} times what is predicted)"
        )
        return f"time-out: the board has run for {took}, {'beyond' if self._spent else 'of'} {budget}"
