"""Parser of the text of a plan (`ir/text.py`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from npukit.board.noc import DRAM, NO_FLAG
from npukit.errors import NpukitError
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.plan.ir.names import Name, in_order
from npukit.plan.ir.plan import (
    Buffer,
    Compute,
    Join,
    Landing,
    MemoryUse,
    Message,
    Orders,
    Page,
    PePlan,
    Plan,
    Predicted,
    Restore,
    Send,
    Step,
    View,
    Wait,
)
from npukit.plan.ir.replicas import Replica, replicas_in
from npukit.plan.ir.text import numbers_of
from npukit.plan.tensors.problem import MOST

MOST_STEPS = 4 * MOST
"""Limit of steps of a plan, because a line may copy a PE. The planner's budget does not count copies."""

_WORD = r'(?:"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*)'
_NAME = rf"{_WORD}(?:%\d+)?(?:@\d+)?(?:#\d+)?"
_BOX = r"\[[\d:, ]*\]"
_VIEW = rf"{_NAME}(?:{_BOX})?"


def _line(text: str) -> re.Pattern[str]:
    """The pattern of a line. `<key NAME>` captures a value of kind `NAME` under the key."""
    kinds = {"N": r"\d+", "NAME": _NAME, "WORD": _WORD, "BOX": _BOX, "VIEW": _VIEW, "REST": ".*", "SPANS": r"[\d,-]+"}
    return re.compile(re.sub(r"<(\w+) ([A-Z]+)>", lambda found: f"(?P<{found[1]}>{kinds[found[2]]})", text))


_PLAN = _line("plan <model WORD> on <board WORD> for <objective WORD>")
_PREDICTED = _line("predicted latency <latency N> interval <interval N>")
_MEMORY, _ORDERS = numbers_of(MemoryUse), numbers_of(Orders)
_PE = _line(
    "pe <pe N> role <role N> "
    + " ".join(rf"{name} (?P<{name}>{'-?' * (name == 'free')}\d+)" for name in (*_MEMORY, *_ORDERS))
    + r"(?: in pages (?P<pages>[\d+,]+))?(?: banks (?P<banks>[\d,]+))?"
)
_PAGE = _line(r"<first N>\+<bytes N>")
_COPY = _line("pe <pe N> as <first N>")
_BUFFER = _line(
    "(?P<kind>block|tensor)(?: <tensor WORD> as)? <stem WORD>(?:#<number N>)?<box BOX> <bytes N> bytes at <offset N>"
    r"(?:, arranged (?P<arranged>[\d,]+ [\d,]+ [\d,]+ [-\d,]+ \w+ -?\d+))?, steps <uses REST>"
)
_USE = _line("(?:%<batch N> )?(?:@<frame N> )?<first N>-<last N>")
_STEP = _line("  <index N> <step REST>")
_COMPUTE = _line(
    "compute <op WORD> on <engine WORD>: <output VIEW> = <inputs REST>; <cycles N> cycles(?:, frame <frame N>)?"
    "(?:, scratch <scratch NAME>)?(?:, constants <constants NAME>(?: from <streamed WORD>)?)?"
    "(?P<submitted>, submitted)?"
)
_SEND = _line(
    "send <number N> (?P<bytes>bytes )?(?:of <tensor WORD> )?<source NAME><box BOX>?(?P<dram> from dram)?"
    "(?P<landings>(?: to .*)?)"
)
_LANDED = _line(" to (?:dram|<pes SPANS>)(?: as <name NAME>)?(?: in <box BOX>)?(?: flag <flag N>)?")
_WAIT = _line("wait <flag N> x <count N>(?:  # .*)?")
_JOIN = _line("join <engine WORD>")
_VIEWED = _line("<name NAME><box BOX>?")
_TOKEN = _line("<stem WORD>(?:%<batch N>)?(?:@<frame N>)?(?:#<number N>)?")


def parse_plan(text: str) -> Plan:
    """The plan of this text."""
    parser = _Parser()
    for number, line in enumerate(text.splitlines(), 1):
        try:
            parser.line(line)
        except (ValueError, LookupError, TypeError, OverflowError) as fault:
            raise NpukitError(f"line {number} is not understood: {line.strip()[:80]!r}") from fault
    return parser.plan()


def _match(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found.groupdict()


@dataclass
class _Pe:
    """A PE during parsing: its lines so far, or a reference to a PE anywhere in the text."""

    pe: int
    role: int = 0
    memory: MemoryUse = field(default_factory=lambda: MemoryUse(0, 0, 0, 0, 0))
    orders: Orders = field(default_factory=Orders)
    first: int | None = None
    """The PE of the first group to copy; None for a PE in full."""
    buffers: dict[str, Buffer] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    stolen: dict[int, int] = field(default_factory=dict)

    def undisturbed(self) -> PePlan:
        """The PE without cycles taken by messages."""
        buffers = tuple(in_order(self.buffers.values()))
        return PePlan(self.pe, self.role, tuple(self.steps), buffers, self.memory, self.orders)


class _Parser:
    """Parses a plan line by line."""

    def __init__(self) -> None:
        self._head: dict[str, str] = {}
        self._frames, self._chips = 1, (0,)
        self._groups: tuple[tuple[int, ...], ...] = ()
        self._replicas: list[Replica] = []
        self._dram: dict[str, Buffer] = {}
        self._pes: dict[int, _Pe] = {}
        self._messages: dict[int, Message] = {}
        self._steps = 0
        self._pe: _Pe | None = None

    def plan(self) -> Plan:
        """The plan of all lines so far."""
        head, pes = self._head, tuple(self._planned(pe) for pe in self._pes.values())
        numbers = range(len(self._messages))
        missing = next((key for key in ("model", "latency") if key not in head), None)
        if missing:
            raise NpukitError(f"it does not say its {missing}")
        if self._messages.keys() != set(numbers):
            raise NpukitError("the numbers of its messages are not one after the other")
        return Plan(
            _word(head["model"]),
            _word(head["board"]),
            head["objective"],
            pes,
            tuple(self._messages[number] for number in numbers),
            Predicted(int(head["latency"]), int(head["interval"])),
            self._frames,
            tuple(self._dram.values()),
            self._chips,
            self._groups,
        )

    def line(self, line: str) -> None:
        key, _, rest = line.strip().partition(" ")
        if not line.startswith("  "):
            self._heading(key, rest, line)
        elif self._pe is None:
            raise ValueError("no PE")
        elif key.isdigit():
            self._numbered(self._pe, line)
        elif key == "stolen":
            self._pe.stolen = {
                int(index): int(cycles) for index, _, cycles in (each.partition(":") for each in rest.split())
            }
        else:
            self._pe.buffers |= _buffers(line.strip())

    def _heading(self, key: str, rest: str, line: str) -> None:
        match key:
            case "plan":
                self._head |= _match(_PLAN, line)
            case "predicted":
                self._head |= _match(_PREDICTED, line)
            case "frames":
                self._frames = int(rest)
            case "chips":
                self._chips = tuple(_numbers(rest))
            case "alike":
                self._groups = tuple(tuple(_numbers(group)) for group in rest.split())
                self._replicas = replicas_in(self._groups)
            case "dram":
                self._dram |= _buffers(rest)
            case _:
                pe = _pe(line)
                if pe.pe in self._pes:
                    raise ValueError("twice")
                self._pe = self._pes[pe.pe] = pe

    def _planned(self, pe: _Pe) -> PePlan:
        planned = pe.undisturbed() if pe.first is None else self._copy(pe.pe, pe.first)
        for index in pe.stolen:
            if not 0 <= index < len(planned.steps) or not isinstance(planned.steps[index], Compute):
                raise NpukitError(f"PE {pe.pe} computes nothing in step {index}")
        return planned.with_stolen(pe.stolen) if pe.stolen else planned

    def _copy(self, pe: int, first: int) -> PePlan:
        """A copy of a PE of the first group."""
        replica = next((each for each in self._replicas if each.places.get(first) == pe), None)
        if replica is None or first not in self._pes:
            raise NpukitError(f"PE {pe} is not as PE {first} in the groups that are alike")
        one = self._pes[first].undisturbed()
        self._count(len(one.steps))
        sent = [step.message for step in one.steps if isinstance(step, Send)]
        self._messages |= {n + replica.number: replica.message(self._messages[n]) for n in sent}
        return replica.pe(one)

    def _count(self, more: int) -> None:
        """Count further steps of a PE, and check the limit."""
        self._steps += more
        if self._steps > MOST_STEPS:
            raise NpukitError(f"it has more than {MOST_STEPS:,} steps")

    def _numbered(self, pe: _Pe, line: str) -> None:
        found = _match(_STEP, line)
        if int(found["index"]) != len(pe.steps):
            raise ValueError("the number of the step")
        self._count(1)
        pe.steps.append(self._step(pe, found["step"]))

    def _step(self, pe: _Pe, text: str) -> Step:
        match text.partition(" ")[0]:
            case "compute":
                return _compute(pe, _match(_COMPUTE, text))
            case "send":
                return self._send(pe, _match(_SEND, text))
            case "wait":
                found = _match(_WAIT, text)
                return Wait(int(found["flag"]), int(found["count"]))
            case "restore":
                return Restore(tuple(view.buffer for view in _views(pe, text.removeprefix("restore "))))
            case _:
                return Join(_word(_match(_JOIN, text)["engine"]))

    def _send(self, pe: _Pe, found: dict[str, str]) -> Send:
        number, name = int(found["number"]), _name(found["source"])
        source_pe = DRAM if found["dram"] else pe.pe
        held = self._dram if source_pe == DRAM else pe.buffers
        box = _box(found["box"]) if found["box"] else held[name].box
        plain = "" if found["bytes"] else _match(_TOKEN, found["source"])["stem"]
        landings = tuple(_landings(found["landings"], name, box))
        tensor = _word(found["tensor"] or plain)
        if number in self._messages:
            raise ValueError("twice")
        self._messages[number] = Message(tensor, source_pe, View(name, box), landings)
        return Send(number)


def _pe(line: str) -> _Pe:
    if copied := _COPY.fullmatch(line):
        return _Pe(int(copied["pe"]), first=int(copied["first"]))
    found = _match(_PE, line)
    listed = [page for page in (found["pages"] or "").split(",") if page]
    pages = tuple(Page(*map(int, _match(_PAGE, page).values())) for page in listed)
    memory = MemoryUse(*(int(found[name]) for name in _MEMORY), banks=_tuple(found["banks"] or ""))
    orders = Orders(*(int(found[name]) for name in _ORDERS), pages=pages)
    return _Pe(int(found["pe"]), int(found["role"]), memory, orders)


def _compute(pe: _Pe, found: dict[str, str]) -> Compute:
    (output,) = _views(pe, found["output"])
    frame = found["frame"] or _match(_TOKEN, _match(_VIEWED, found["output"])["name"])["frame"] or 0
    return Compute(
        _word(found["op"]),
        _word(found["engine"]),
        output,
        tuple(_views(pe, found["inputs"])),
        int(found["cycles"]),
        found["scratch"] and _name(found["scratch"]),
        found["constants"] and _name(found["constants"]),
        _word(found["streamed"] or _match(_TOKEN, found["constants"])["stem"]) if found["constants"] else None,
        int(frame),
        bool(found["submitted"]),
    )


def _one_by_one(pattern: re.Pattern[str], text: str, between: str = "") -> Iterator[dict[str, str]]:
    """The matches of a pattern in a list."""
    place = 0
    while place < len(text):
        found = pattern.match(text, place)
        if found is None or text[found.end() : found.end() + len(between)] not in (between, ""):
            raise ValueError(text)
        yield found.groupdict()
        place = found.end() + len(between)


def _views(pe: _Pe, text: str) -> Iterator[View]:
    for found in _one_by_one(_VIEWED, text, ", "):
        name = _name(found["name"])
        yield View(name, _box(found["box"]) if found["box"] else pe.buffers[name].box)


def _landings(text: str, source: str, box: Box) -> Iterator[Landing]:
    for found in _one_by_one(_LANDED, text):
        view = View(_name(found["name"]) if found["name"] else source, _box(found["box"]) if found["box"] else box)
        if found["pes"] is None:
            yield Landing(DRAM, view, NO_FLAG)
        else:
            yield from (Landing(pe, view, int(found["flag"])) for pe in _numbers(found["pes"]))


def _buffers(text: str) -> dict[str, Buffer]:
    """The buffers described by a line, by name."""
    found = _match(_BUFFER, text)
    stem, box = _word(found["stem"]), _box(found["box"])
    tensor = "" if found["kind"] == "block" else _word(found["tensor"] or found["stem"])
    arrangement = None
    if found["arranged"]:
        size, origin, shape, strides, dtype, less = found["arranged"].split(" ")
        arrangement = Arrangement(int(size), int(origin), _tuple(shape), _tuple(strides), dtype, int(less))
    place, buffers = (int(found["bytes"]), int(found["offset"])), dict[str, Buffer]()
    for text_of_use in found["uses"].split(", "):
        use = {key: int(value or 0) for key, value in _match(_USE, text_of_use).items()}
        name = str(Name(stem, use["batch"], use["frame"], int(found["number"] or 1)))
        buffers[name] = Buffer(name, tensor, box, *place, use["first"], use["last"], arrangement)
    return buffers


def _tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


@lru_cache(maxsize=1 << 16)
def _box(text: str) -> Box:
    spans = [part.split(":") for part in text[1:-1].split(", ") if part]
    return Box(tuple(int(start) for start, _ in spans), tuple(int(stop) for _, stop in spans))


@lru_cache(maxsize=1 << 16)
def _name(text: str) -> str:
    stem, *numbers = _match(_TOKEN, text).values()
    batch, frame, number = (int(each or usual) for each, usual in zip(numbers, (0, 0, 1), strict=True))
    return str(Name(_word(stem), batch, frame, number))


def _word(text: str) -> str:
    return json.loads(text) if text.startswith('"') else text


def _numbers(text: str) -> Iterator[int]:
    for span in text.split(","):
        first, _, last = span.partition("-")
        start, stop = int(first), int(last or first)
        if abs(stop - start) > MOST_STEPS:
            raise ValueError(text)
        yield from range(start, stop + 1) if stop >= start else range(start, stop - 1, -1)
