"""Runs a plan in numpy, as a check of plans: each PE has memory of its own, and reading what nobody wrote is an error.

PEs and messages take turns in a random order, so that a plan that is right only for some timing is found out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.reference.interpreter import KERNELS
from npukit.plan.plan import SENT_FLAG, Buffer, Compute, Landing, Message, PePlan, Plan, Send, View, Wait
from npukit.plan.tile import tile_net


class PlanError(Exception):
    """The plan reads what is not there, or waits for what never comes."""


@dataclass
class _Pe:
    plan: PePlan
    memory: np.ndarray
    written: np.ndarray
    buffers: Mapping[str, Buffer]
    flags: Counter[int] = field(default_factory=Counter)
    step: int = 0
    frames: int = 0


@dataclass
class _Flight:
    """A message that has left and not arrived."""

    message: Message
    landings: list[Landing]


class Execution:
    """A plan with memory. `run` a frame as often as you like: memory stays as the last frame left it."""

    def __init__(self, net: Net, plan: Plan, seed: int = 0) -> None:
        self.net, self.plan = net, plan
        self._random = np.random.default_rng(seed)
        self._ops = {op.name: op for op in net.ops}
        self._pes = {pe.pe: _new_pe(pe) for pe in plan.pes}
        self._flights: list[_Flight] = []
        self.results: dict[str, list[tuple[Box, np.ndarray]]] = {}

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs of one frame. `results` then holds every tile computed in it, by op."""
        root = next(iter(self._pes.values()))
        self.results = {}
        for name, value in zip(self.net.inputs, inputs, strict=True):
            self._write(root, View(name, Box.whole(value.shape)), value)
        frame = root.frames + 1
        while root.frames < frame:
            self._turn(root)
        return [self._read(root, View(name, Box.whole(self.net.tensor(name).shape))) for name in self.net.outputs]

    def _turn(self, root: _Pe) -> None:
        """One step of something that can go on."""
        ready: list[Callable[[], None]] = [
            lambda pe=pe: self._advance(pe) for pe in self._pes.values() if self._may_advance(pe, root)
        ]
        ready += [lambda flight=flight: self._arrive(flight) for flight in self._flights]
        if not ready:
            stuck = {pe.plan.pe: str(pe.plan.steps[pe.step]) for pe in self._pes.values() if pe.plan.steps}
            raise PlanError(f"nothing can go on: {stuck}")
        ready[self._random.integers(len(ready))]()

    def _may_advance(self, pe: _Pe, root: _Pe) -> bool:
        if not pe.plan.steps:
            return pe is root
        step = pe.plan.steps[pe.step]
        return not isinstance(step, Wait) or pe.flags[step.flag] >= step.count

    def _advance(self, pe: _Pe) -> None:
        if pe.plan.steps:
            self._do(pe)
            pe.step += 1
        if pe.step == len(pe.plan.steps):
            pe.step, pe.frames = 0, pe.frames + 1

    def _do(self, pe: _Pe) -> None:
        match pe.plan.steps[pe.step]:
            case Compute() as compute:
                self._compute(pe, compute)
            case Send(number):
                message = self.plan.messages[number]
                self._flights.append(_Flight(message, list(message.landings)))
            case Wait(flag, count):
                pe.flags[flag] -= count

    def _arrive(self, flight: _Flight) -> None:
        """One landing of a message; with the last one its source is free."""
        landing = flight.landings.pop(self._random.integers(len(flight.landings)))
        source = self._pes[flight.message.source_pe]
        target = self._pes[landing.pe]
        self._write(target, landing.view, self._read(source, flight.message.source))
        target.flags[landing.flag] += 1
        if not flight.landings:
            source.flags[SENT_FLAG] += 1
            self._flights.remove(flight)

    def _compute(self, pe: _Pe, step: Compute) -> None:
        op = self._ops[step.op]
        tile = tile_net(self.net, op, step.output.box)
        views = dict(zip(self.net.activations(op), step.inputs, strict=True))
        operands = [
            tile.constants[name] if name in tile.constants else self._read(pe, views[name])[None] for name in op.inputs
        ]
        if step.scratch:
            self._spoil(pe, pe.buffers[step.scratch])
        value = KERNELS[op.kind](tile, tile.ops[0], operands)[0]
        self._write(pe, step.output, value)
        self.results.setdefault(op.name, []).append((step.output.box, value))

    def _spoil(self, pe: _Pe, buffer: Buffer) -> None:
        pe.written[buffer.offset : buffer.offset + buffer.bytes] = False

    def _places(self, pe: _Pe, view: View) -> np.ndarray:
        """[*box, element bytes]: where in the PE's memory each byte of a view lies."""
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
        """Bytes written here are lost to every buffer they were part of, which random values stand for."""
        places = self._places(pe, view)
        pe.memory[places] = np.ascontiguousarray(value).reshape(*value.shape, 1).view(np.uint8)
        pe.written[places] = True

    def _dtype(self, buffer: Buffer) -> np.dtype:
        return np.dtype(self.net.tensor(buffer.tensor).dtype)


def _new_pe(plan: PePlan) -> _Pe:
    size = max((buffer.offset + buffer.bytes for buffer in plan.buffers), default=0)
    memory = np.random.default_rng(plan.pe).integers(0, 256, size, np.uint8)
    return _Pe(plan, memory, np.zeros(size, bool), {buffer.name: buffer for buffer in plan.buffers})
