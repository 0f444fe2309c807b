"""A long program as a table: a row for each step, which `net_run` goes through (`struct net_step` in net.h).

Its C is the same for all PEs, whatever they do; the table is data, and most of it each PE's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from npukit.accel.interface import Address
from npukit.codegen.constants import Fields, Number, Record, Value
from npukit.codegen.messages import Descriptors
from npukit.codegen.parts import Part, commands_of
from npukit.plan.memory import STEP_BYTES
from npukit.plan.plan import Join, Send, Wait

TABLE = "net_steps"

Piece = Part | Join | Send | Wait
"""A step of the plan, computes as parts. Runs of them are started together: chains of commands, of messages."""


def table_of(runs: Sequence[Sequence[Piece]], descriptors: Descriptors) -> Record:
    """Runs in which signals are apart from other messages. Kernels are called by their number."""
    kernels = count()
    rows = [row for run in runs for row in _rows(run, descriptors, kernels)]
    return Record(
        TABLE, "net_step", (*rows, _row("NET_END")), STEP_BYTES // 2, STEP_BYTES, "the steps of a frame", listed=True
    )


def _rows(run: Sequence[Piece], descriptors: Descriptors, kernels: Iterator[int]) -> Iterator[Fields]:
    first = run[0]
    if isinstance(first, Wait):
        yield _row("NET_WAIT", flag=first.flag, count=first.count)
    elif isinstance(first, Join):
        yield _row("NET_JOIN")
    elif isinstance(first, Send):
        yield from _messages([piece.message for piece in run if isinstance(piece, Send)], descriptors)
    elif first.chained:
        yield from _chain([piece for piece in run if isinstance(piece, Part)])
    else:
        yield _row("NET_CALL", count=next(kernels))


def _messages(numbers: Sequence[int], descriptors: Descriptors) -> Iterator[Fields]:
    if not descriptors.is_signal(numbers[0]):
        yield _row("NET_SEND", what=Number(Address(descriptors.first(numbers[0]))))
        return
    for number in numbers:
        for pe, flag, what in descriptors.signals(number):
            yield _row("NET_SIGNAL", flag=flag, count=pe, what=what)


def _chain(parts: Sequence[Part]) -> Iterator[Fields]:
    """A row for each layer: the first one's starts the chain, all are needed when layers run one by one."""
    kind = "NET_SUBMIT" if parts[0].submitted else "NET_RUN"
    for index, part in enumerate(parts):
        commands = commands_of(part)
        yield _row("NET_LINKED" if index else kind, count=len(commands), what=Number(Address(commands[0])))


def _row(kind: str, flag: int = 0, count: int = 0, what: Value = 0) -> Fields:
    return ("kind", kind), ("flag", flag), ("count", count), ("what", what)
