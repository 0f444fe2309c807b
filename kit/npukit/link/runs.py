"""Runs in the background: the host starts, polls, stops and resumes them, and sends other requests meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from npukit.errors import NpukitError
from npukit.link.conversation import Conversation
from npukit.link.messages import Counters, Malformed, Request

_LOOK_SECONDS = 0.2
"""Seconds between two polls of an awaited run."""


class Stage(IntEnum):
    """Stages of a started run."""

    OVER = 0
    UNDER_WAY = 1
    STOPPED = 2


@dataclass(frozen=True)
class RunState(Counters):
    """Progress of a started run: `ran` of `frames` frames, and the counts of these frames alone."""

    stage: Stage
    status: int
    ran: int
    frames: int


@dataclass(frozen=True)
class _AboutRun(Request[RunState]):
    """A request about the started run `number`."""

    layout = "<I"
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
    """Begin a run (`ran` is 0), or resume a run that was stopped after `ran` frames."""

    kind, does = 11, "start a run"
    layout = "<III"
    ran: int
    frames: int


class Stop(_AboutRun):
    kind, does = 12, "stop a run"


class ReadRun(_AboutRun):
    kind, does = 13, "tell how far a run is"


class StartedRun:
    """A run in the background. The device answers between frames, and ends no frame half way. Each method raises an
    error if the run has failed."""

    def __init__(
        self, conversation: Conversation, number: int, frames: int, explain: Callable[[int], NpukitError]
    ) -> None:
        """Start the run. `explain`: converts an error code to an error."""
        self._conversation = conversation
        self._number = number
        self._frames = frames
        self._explain = explain
        self._ask(Start(number, 0, frames))

    def state(self) -> RunState:
        """The run's progress."""
        return self._ask(ReadRun(self._number))

    def stop(self) -> RunState:
        """End the run after the current frame, for good or until `resume`."""
        return self._ask(Stop(self._number))

    def resume(self) -> RunState:
        """Continue a stopped run. No effect on a run that is under way or over."""
        return self._ask(Start(self._number, self.state().ran, self._frames))

    def wait(self) -> RunState:
        """The run's state, once the run is over or stopped."""
        while (state := self.state()).stage == Stage.UNDER_WAY:
            self._conversation.listen(_LOOK_SECONDS)
        return state

    def _ask(self, request: Request[RunState]) -> RunState:
        state = self._conversation.insist(request)
        if state.status != 0:
            raise self._explain(state.status)
        return state
