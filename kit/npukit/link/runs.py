"""Runs that are under way while the host asks other things: start, look, stop, resume."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from npukit.errors import NpukitError
from npukit.link.conversation import Conversation
from npukit.link.messages import Counters, Malformed, Request

_LOOK_SECONDS = 0.2
"""Seconds between two looks at a run that is waited for."""


class Stage(IntEnum):
    """The stage of a run that was started."""

    OVER = 0
    UNDER_WAY = 1
    STOPPED = 2


@dataclass(frozen=True)
class RunState(Counters):
    """The progress of a run that was started: `ran` of `frames` frames, and what those alone took."""

    stage: Stage
    status: int
    ran: int
    frames: int


@dataclass(frozen=True)
class _AboutRun(Request[RunState]):
    """A request about the run of this number that was started."""

    layout, told = "<I", ("number",)
    number: int

    def parse(self, payload: bytes) -> RunState:
        number, stage, status, ran, frames, *counts = struct.unpack("<IIiII4xQQQ", payload)
        if number != self.number:
            raise Malformed(f"the answer is about run {number} instead of {self.number}")
        if stage not in list(Stage):
            raise Malformed(f"{stage} is no stage of a run")
        return RunState(*counts, stage=Stage(stage), status=status, ran=ran, frames=frames)


@dataclass(frozen=True)
class Start(_AboutRun):
    """Begin a run (`ran` is 0), or resume the one that was stopped after so many frames."""

    kind, does = 11, "start a run"
    layout, told = "<III", ("number", "ran", "frames")
    ran: int
    frames: int


class Stop(_AboutRun):
    kind, does = 12, "stop a run"


class ReadRun(_AboutRun):
    kind, does = 13, "tell how far a run is"


class StartedRun:
    """A run that goes on by itself. No answer of its comes in the midst of a frame, and no frame ends half way.

    A run that has failed is an error wherever it is found out.
    """

    def __init__(
        self, conversation: Conversation, number: int, frames: int, explain: Callable[[int], NpukitError]
    ) -> None:
        """Start it. `explain`: what an error code means."""
        self._conversation = conversation
        self._number = number
        self._frames = frames
        self._explain = explain
        self._ask(Start(number, 0, frames))

    def state(self) -> RunState:
        """The run's progress."""
        return self._ask(ReadRun(self._number))

    def stop(self) -> RunState:
        """End it after the frame that is under way, for good or until it is resumed."""
        return self._ask(Stop(self._number))

    def resume(self) -> RunState:
        """Go on where it was stopped. Nothing happens to a run that is under way, or over."""
        return self._ask(Start(self._number, self.state().ran, self._frames))

    def wait(self) -> RunState:
        """The run's state once it is over or stopped."""
        while (state := self.state()).stage == Stage.UNDER_WAY:
            self._conversation.listen(_LOOK_SECONDS)
        return state

    def _ask(self, request: Request[RunState]) -> RunState:
        state = self._conversation.insist(request)
        if state.status != 0:
            raise self._explain(state.status)
        return state
