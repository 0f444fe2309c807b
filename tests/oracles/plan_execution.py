"""Executes a plan in numpy to check it. Each PE has separate memory; reading a byte never written is an error.

PEs and messages advance in a random order: a plan correct only for some timing fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.names import in_frame, is_named
from npukit.plan.ir.plan import (
    SENT_FLAG,
    Buffer,
    Compute,
    Join,
    Landing,
    MemoryUse,
    Message,
    PePlan,
    Plan,
    Restore,
    Send,
    View,
    Wait,
)
from oracles.tiles import tile_values


class PlanError(Exception):
    """The plan reads unwritten memory, or waits for a message in vain."""


@dataclass
class _Pe:
    plan: PePlan
    memory: np.ndarray
    written: np.ndarray
    buffers: Mapping[str, Buffer]
    flags: Counter[int] = field(default_factory=Counter)
    submitted: list[Compute] = field(default_factory=list)
    """Submitted computations, in the order of execution on each engine."""
    step: int = 0
    frames: int = 0


@dataclass
class _Flight:
    """A message in flight and the PE whose DMA carries the message. The bytes are read at departure."""

    message: Message
    sender: _Pe
    landings: list[Landing]
    value: np.ndarray | None = None


class Execution:
    """A plan with memory. `run` executes a frame, any number of times: memory persists between frames."""

    def __init__(self, net: Net, plan: Plan, seed: int = 0) -> None:
        self.net, self.plan = net, plan
        self._random = np.random.default_rng(seed)
        self._ops = {op.name: op for op in net.ops}
        self._pes = {pe.pe: _new_pe(pe) for pe in plan.pes}
        self._dram = _new_pe(PePlan(DRAM, 0, (), plan.dram, MemoryUse(0, 0, 0, 0, 0)))
        self._flights: list[_Flight] = []
        self._reset_at = 0
        self.results: dict[str, list[tuple[Box, np.ndarray]]] = {}
        for buffer in plan.dram:
            if not buffer.tensor:
                self._write(self._dram, View(buffer.name, buffer.box), _stand_in(buffer.name, buffer.bytes))

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of one frame. `results` then holds every tile of the frame, by op."""
        (outputs,) = self.run_round([inputs])
        return outputs

    def run_round(self, frames: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        """The outputs of each frame of a round."""
        root = next(iter(self._pes.values()))
        self.results = {}
        for frame, inputs in enumerate(frames):
            for name, value in zip(self.net.inputs, inputs, strict=True):
                home = self._dram if in_frame(name, frame) in self._dram.buffers else root
                self._write(home, View(in_frame(name, frame), Box.whole(value.shape)), value)
        rounds = root.frames + 1
        while root.frames < rounds:
            self._turn(root)
        return [
            [self._found(root, name, in_frame(name, frame)) for name in self.net.outputs]
            for frame in range(len(frames))
        ]

    def _found(self, root: _Pe, name: str, called: str) -> np.ndarray:
        if called in self._dram.buffers:
            return self._read(self._dram, View(called, Box.whole(self.net.tensor(name).shape)))
        return self._read(root, self._output(root, name, called))

    def _output(self, root: _Pe, name: str, called: str) -> View:
        """A view of a whole output. `called`: name of the output tensor in the frame."""
        whole = Box.whole(self.net.tensor(name).shape)
        held = (each.name for each in root.buffers.values() if is_named(each.name, called) and each.box == whole)
        return View(next(held), whole)

    def _turn(self, root: _Pe) -> None:
        """Advance a random PE, message or engine by one step."""
        ready: list[Callable[[], None]] = [
            lambda pe=pe: self._advance(pe) for pe in self._pes.values() if self._may_advance(pe, root)
        ]
        ready += [lambda flight=flight: self._leave(flight) for flight in self._next_to_leave()]
        ready += [lambda flight=flight: self._arrive(flight) for flight in self._flights if flight.value is not None]
        ready += [lambda pe=pe, e=e: self._work(pe, e) for pe in self._pes.values() for e in _engines_at_work(pe)]
        if not ready:
            stuck = {pe.plan.pe: str(pe.plan.steps[pe.step]) for pe in self._pes.values() if pe.plan.steps}
            raise PlanError(f"nothing can go on: {stuck}")
        ready[self._random.integers(len(ready))]()

    def _may_advance(self, pe: _Pe, root: _Pe) -> bool:
        if not pe.plan.steps:
            return pe is root
        match pe.plan.steps[pe.step]:
            case Wait(flag, count):
                return pe.flags[flag] >= count
            case Join(engine):
                return engine not in _engines_at_work(pe)
        return True

    def _work(self, pe: _Pe, engine: str) -> None:
        """Complete the oldest computation submitted to an accelerator."""
        step = next(step for step in pe.submitted if step.engine == engine)
        pe.submitted.remove(step)
        self._compute(pe, step)

    def _advance(self, pe: _Pe) -> None:
        if pe.plan.steps:
            self._do(pe)
            pe.step += 1
        if pe.step == len(pe.plan.steps):
            if pe.submitted:
                raise PlanError(f"PE {pe.plan.pe} ends a frame and has not waited for {pe.submitted[0].op}")
            pe.step, pe.frames = 0, pe.frames + 1

    def _do(self, pe: _Pe) -> None:
        match pe.plan.steps[pe.step]:
            case Compute() as compute:
                self._start(pe, compute)
            case Send(number):
                message = self.plan.messages[number]
                self._flights.append(_Flight(message, pe, list(message.landings)))
            case Wait(flag, count):
                pe.flags[flag] -= count
            case Restore(buffers):
                for name in buffers if pe.frames == self._reset_at else ():
                    self._restore(pe, pe.buffers[name])

    def _restore(self, pe: _Pe, buffer: Buffer) -> None:
        state = next(state for state in self.net.states if state.input == buffer.tensor)
        whole = tuple(map(slice, buffer.box.start, buffer.box.stop))
        self._write(pe, View(buffer.name, buffer.box), state.initial[whole])

    def reset(self) -> None:
        """Start the next frame with the states' initial values."""
        self._reset_at = next(iter(self._pes.values())).frames

    def _start(self, pe: _Pe, step: Compute) -> None:
        before = pe.plan.steps[pe.step - 1]
        chained = isinstance(before, Compute) and (before.engine, before.submitted) == (step.engine, step.submitted)
        if step.engine in _engines_at_work(pe) and not chained:
            raise PlanError(f"PE {pe.plan.pe} starts {step.op} while {step.engine} is at work")
        if step.submitted:
            pe.submitted.append(step)
        else:
            self._compute(pe, step)

    def _next_to_leave(self) -> list[_Flight]:
        """The first waiting message of each PE's DMA. A DMA carries messages in order.

        DRAM is read only after all stores in flight to DRAM have landed.
        """
        waiting = [flight for flight in self._flights if flight.value is None]
        first = list({flight.sender.plan.pe: flight for flight in reversed(waiting)}.values())
        storing = any(flight.value is not None and flight.landings[0].pe == DRAM for flight in self._flights)
        return [flight for flight in first if not (storing and flight.message.source_pe == DRAM)]

    def _leave(self, flight: _Flight) -> None:
        """Read a message from its source. The source buffer is free afterwards."""
        source = self._pes.get(flight.message.source_pe, self._dram)
        signal = not flight.message.tensor and source is not self._dram
        empty = np.zeros(flight.message.source.box.shape, np.uint8)
        flight.value = empty if signal else self._read(source, flight.message.source)
        flight.sender.flags[SENT_FLAG] += source is not self._dram

    def _arrive(self, flight: _Flight) -> None:
        """Land a message at a random remaining destination."""
        assert flight.value is not None
        landing = flight.landings.pop(self._random.integers(len(flight.landings)))
        target = self._pes.get(landing.pe, self._dram)
        self._write(target, landing.view, flight.value)
        target.flags[landing.flag] += 1
        if not flight.landings:
            self._flights.remove(flight)

    def _compute(self, pe: _Pe, step: Compute) -> None:
        op = self._ops[step.op]
        operands = [self._read(pe, view) for view in step.inputs]
        if step.constants and step.streamed:
            self._check_constants(pe, step.constants, step.streamed)
        if step.scratch:
            self._spoil(pe, pe.buffers[step.scratch])
        value = tile_values(self.net, op, step.output.box, operands)
        self._write(pe, step.output, value)
        self.results.setdefault(op.name, []).append((step.output.box, value))

    def _check_constants(self, pe: _Pe, name: str, streamed: str) -> None:
        buffer = pe.buffers[name]
        if not np.array_equal(self._read(pe, View(name, buffer.box)), _stand_in(streamed, buffer.bytes)):
            raise PlanError(f"PE {pe.plan.pe} finds other bytes in {name} than were streamed to it")

    def _spoil(self, pe: _Pe, buffer: Buffer) -> None:
        pe.written[buffer.offset : buffer.offset + buffer.bytes] = False

    def _places(self, pe: _Pe, view: View) -> np.ndarray:
        """Places [*box, element bytes] of a view's bytes in the PE's memory."""
        buffer = pe.buffers[view.buffer]
        size = self._dtype(buffer).itemsize
        if not buffer.box.contains(view.box):
            raise PlanError(f"{view} is not inside {buffer}")
        places = np.arange(buffer.bytes).reshape(*buffer.box.shape, size) + buffer.offset
        return places[
            tuple(slice(o, o + n) for o, n in zip(view.box.offset_in(buffer.box), view.box.shape, strict=True))
        ]

    def _read(self, pe: _Pe, view: View) -> np.ndarray:
        places = self._places(pe, view)
        if not pe.written[places].all():
            raise PlanError(
                f"PE {pe.plan.pe} reads {view}, {int((~pe.written[places]).sum())} bytes of it never written"
            )
        dtype = self._dtype(pe.buffers[view.buffer])
        return np.ascontiguousarray(pe.memory[places]).view(dtype)[..., 0]

    def _write(self, pe: _Pe, view: View, value: np.ndarray) -> None:
        """Write a view. Buffers that shared the bytes lose their content."""
        places = self._places(pe, view)
        pe.memory[places] = np.ascontiguousarray(value).reshape(*value.shape, 1).view(np.uint8)
        pe.written[places] = True

    def _dtype(self, buffer: Buffer) -> np.dtype:
        return np.dtype(self.net.tensor(buffer.tensor).dtype if buffer.tensor else np.uint8)


def _engines_at_work(pe: _Pe) -> set[str]:
    return {step.engine for step in pe.submitted}


def _new_pe(plan: PePlan) -> _Pe:
    size = max((buffer.offset + buffer.bytes for buffer in plan.buffers), default=0)
    memory = np.random.default_rng(plan.pe).integers(0, 256, size, np.uint8)
    return _Pe(plan, memory, np.zeros(size, bool), {buffer.name: buffer for buffer in plan.buffers})


def _stand_in(name: str, size: int) -> np.ndarray:
    """Random bytes as the content of the constants `name`."""
    return np.random.default_rng(list(name.encode())).integers(0, 256, size, np.uint8)
