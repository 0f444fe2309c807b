"""Orders of a table program: commands, descriptors and table rows, in memory or in pages in DRAM. Equal orders are
stored once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from npukit.net.net import CORE
from npukit.plan.emit.pe_program import PeProgram
from npukit.plan.emit.replay import keys_of_steps, layer_places, rows_of, stretches
from npukit.plan.ir.plan import Compute, Join, Orders, Page, PePlan, Plan, Send, Step
from npukit.plan.predict.memory import PAGE_BYTES, ROWS_OF_A_PAGE, STEP_BYTES, aligned, rows_of_signal, table_bytes

BESIDE = ROWS_OF_A_PAGE * STEP_BYTES
"""Bytes of a page in addition to the orders of its steps."""


@dataclass(frozen=True)
class TableOrders:
    """The orders of a PE's table program."""

    plan: Plan
    pe: PePlan
    program: PeProgram

    @property
    def all(self) -> Orders:
        """All orders in memory. Equal commands and descriptors are stored once."""
        return self._of(len(self.pe.steps))

    @cached_property
    def page_size(self) -> int:
        """Bytes of a page: at least `PAGE_BYTES`, more if an indivisible group of steps needs more."""
        largest = max(_order_bytes(self.program, part) for part in _indivisible(self.pe.steps, self.program))
        return max(PAGE_BYTES, aligned(largest + BESIDE))

    def in_pages(self, room: int) -> Orders:
        """The orders split into a first part of at most `room` bytes in memory and the rest in pages."""
        parts = list(_indivisible(self.pe.steps, self.program, self.page_size - BESIDE))
        more = bisect_right(parts, room, key=lambda part: self._of(part.start, ROWS_OF_A_PAGE).bytes)
        kept = max(more - 1, 0)
        pages = _pages(self.program, parts[kept:], self.page_size)
        return replace(self._of(parts[kept].start, ROWS_OF_A_PAGE), pages=tuple(pages))

    @cached_property
    def _step_keys(self) -> Sequence[int]:
        numbers: dict[Hashable, int] = {}
        return [numbers.setdefault(key, len(numbers)) for key in keys_of_steps(self.plan, self.pe)]

    @cached_property
    def _places(self) -> int:
        return len(set(layer_places(self.plan, self.pe)))

    def _of(self, kept: int, rows_besides: int = 0) -> Orders:
        """The orders of the first `kept` steps, in memory. `rows_besides`: table rows to add."""
        pe, program, step_keys = self.pe, self.program, self._step_keys
        units = list(_units(pe.steps[:kept], program))
        keys = [tuple(step_keys[step] for step in unit) for unit in units]
        written = dict(zip(reversed(keys), reversed(units), strict=True)).values()
        alone = {unit.start for unit in units if len(unit) == 1} & program.pieces.keys()
        pieces: dict[tuple[int, str, tuple[int, ...]], list[Compute]] = {}
        for unit in written:
            if unit.start in alone:
                pieces.setdefault(program.pieces[unit.start], []).append(program.compute(unit.start))
        words = {piece: _patched_words(pe, steps) for piece, steps in pieces.items()}
        patches = {step: words[program.pieces[step]] for step in alone}
        signals = {step: rows_of_signal(pes) for step, pes in program.signals.items()}
        rows = [sum(signals.get(step, 1) + patches.get(step, 0) for step in unit) for unit in units]
        lines = rows_of(stretches(keys, rows), rows)
        apart = {step: piece[0] for step, piece in program.pieces.items() if step not in alone}
        written_once = program.commands | apart
        steps = [step for unit in written for step in unit]
        commands = sum(written_once.get(step, 0) for step in steps)
        descriptors = sum(program.descriptors.get(step, 0) for step in steps)
        table = table_bytes(lines + rows_besides, len(pe.tiles), self._places)
        return Orders(commands + sum(command for command, *_ in pieces), descriptors, table)


def _pages(program: PeProgram, parts: Sequence[range], size: int) -> Iterator[Page]:
    """Pages of at most `size` bytes, each filled with as many parts as fit."""
    first, taken = parts[0].start, BESIDE
    for part in parts:
        wanted = _order_bytes(program, part)
        if taken + wanted > size:
            yield Page(first, taken)
            first, taken = part.start, BESIDE
        taken += wanted
    yield Page(first, taken)


def _order_bytes(program: PeProgram, steps: range) -> int:
    """An upper bound on the bytes of the orders of these steps: rows, commands, descriptors."""
    rows = sum(rows_of_signal(program.signals.get(step, 1)) for step in steps)
    commands = sum(program.commands.get(step, 0) + program.pieces.get(step, (0,))[0] for step in steps)
    return STEP_BYTES * rows + commands + sum(program.descriptors.get(step, 0) for step in steps)


def _indivisible(steps: Sequence[Step], program: PeProgram, most: int = 0) -> Iterator[range]:
    """Groups of steps for the same page: a run of at most `most` bytes, or all steps from an accelerator's start to its
    join."""
    first, running = 0, set[str]()
    for run in _units(steps, program):
        whole = _order_bytes(program, run) <= most
        for index in run:
            step = steps[index]
            if isinstance(step, Compute) and step.submitted:
                running.add(step.engine)
            if isinstance(step, Join):
                running.discard(step.engine)
            if not running and (not whole or index == run[-1]):
                yield range(first, index + 1)
                first = index + 1


def _patched_words(pe: PePlan, pieces: Sequence[Compute]) -> int:
    """The number of command words that differ between these pieces: addresses of operands and constants.

    The constants have an address for the weights, another for the parameters, and another for the parameters of each
    input after the first.
    """
    views = [[(v.box, pe.buffer(v.buffer).offset) for v in (piece.output, *piece.inputs)] for piece in pieces]
    constants = {piece.constants and pe.buffer(piece.constants).offset for piece in pieces}
    operands = sum(len(set(same)) > 1 for same in zip(*views, strict=True))
    return operands + (len(views[0]) if len(constants) > 1 else 0)


def _units(steps: Sequence[Step], program: PeProgram) -> Iterator[range]:
    """Runs of steps that start together: chains of commands, of messages or of signals."""

    def kind(place: int) -> object:
        """The key of a step. Neighbouring steps with equal keys form a unit."""
        match steps[place]:
            case Send():
                return "signals" if place in program.signals else "messages"
            case Compute(engine=engine, submitted=submitted) if engine != CORE:
                return engine, submitted
            case _:
                return place

    for _, same in groupby(range(len(steps)), key=kind):
        first, *others = same
        yield range(first, first + 1 + len(others))
