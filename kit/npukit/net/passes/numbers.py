"""Numbers in TVM's C code turned into constants. Functions with equal code except for numbers become one, shared by
PEs.

Blocks of a network differ in scales and zero points, which TVM writes into the C code of an op.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.net.c_code.rows import subscripts
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.tensor import Tensor

LOAD_CYCLES = 2
"""Cycles of a load of a constant, once in each call."""

_NUMBER = re.compile(
    r"(?<![\w.])(?P<negative>\(-)?(?P<float>\d+\.?\d*(?:e[-+]?\d+)?)f\b(?(negative)\))"
    r"|(?<=\]\)) (?P<whole>[-+] \d+)(?=\))"
)
"""A float literal, or an integer literal added to an element of an integer tensor."""


@dataclass(frozen=True)
class _Number:
    """A number in an op's C code, from character `start` to before `stop`."""

    start: int
    stop: int
    value: float | int

    @property
    def dtype(self) -> str:
        return "int32" if isinstance(self.value, int) else "float32"

    def read_from(self, element: str) -> str:
        """The C expression that reads `element` in place of the number."""
        return f" + {element}" if isinstance(self.value, int) else element


def with_numbers_as_constants(net: Net) -> Net:
    """The net with differing numbers as constants, in all ops whose C code differs only in numbers."""
    alike: dict[object, list[tuple[Op, list[_Number]]]] = {}
    for op in net.ops:
        if isinstance(op.attributes, TvmCode):
            numbers = list(_numbers(op.attributes.code))
            form = replace(op.attributes, code=_without(op.attributes.code, numbers), cycles=0), len(op.inputs)
            alike.setdefault(form, []).append((op, numbers))
    made = (_with_constants(net, same) for same in alike.values())
    changed = {op.name: (op, values) for same in made for op, values in same}
    constants = {name: each for _, values in changed.values() for name, each in values.items()}
    tensors = {name: Tensor(name, each.shape, str(each.dtype)) for name, each in constants.items()}
    ops = tuple(changed[op.name][0] if op.name in changed else op for op in net.ops)
    return replace(net, ops=ops, tensors={**net.tensors, **tensors}, constants={**net.constants, **constants})


def _numbers(code: str) -> Iterator[_Number]:
    within = {place for _, begin, end in subscripts(code) for place in range(begin, end)}
    for found in _NUMBER.finditer(code):
        if found.start() not in within:
            value = float(found["float"]) if found["float"] else int(found["whole"].replace(" ", ""))
            yield _Number(*found.span(), -value if found["negative"] else value)


def _without(code: str, numbers: Sequence[_Number]) -> str:
    """The C code with each number replaced by the name of its type."""
    return _replaced(code, [(number, number.dtype) for number in numbers])


def _replaced(code: str, places: Sequence[tuple[_Number, str]]) -> str:
    ends = [0, *(number.stop for number, _ in places)]
    before = (code[end : number.start] + text for end, (number, text) in zip(ends, places, strict=False))
    return "".join(before) + code[ends[-1] :]


def _with_constants(net: Net, same: Sequence[tuple[Op, list[_Number]]]) -> Iterator[tuple[Op, dict[str, np.ndarray]]]:
    """Ops whose C code differs only in numbers, with the differing numbers in one constant per type."""
    columns = list(zip(*(numbers for _, numbers in same), strict=True))
    values = [tuple(number.value for number in column) for column in columns]
    differing = [place for place, column in enumerate(values) if len(set(column)) > 1]
    if not differing:
        return
    types = dict.fromkeys(columns[place][0].dtype for place in differing)
    kinds = {kind: list(dict.fromkeys(values[p] for p in differing if columns[p][0].dtype == kind)) for kind in types}
    first = len(same[0][0].inputs)
    parameters = {kind: f"p{first + number}" for number, kind in enumerate(kinds)}
    for row, (op, numbers) in enumerate(same):
        assert isinstance(op.attributes, TvmCode)
        read = [
            (numbers[p], numbers[p].read_from(f"{parameters[kind]}[{kinds[kind].index(values[p])}]"))
            for p in differing
            for kind in [numbers[p].dtype]
        ]
        held = {f"{op.output} {kind}": np.array([v[row] for v in kinds[kind]], kind) for kind in kinds}
        loads = LOAD_CYCLES * sum(map(len, kinds.values()))
        attributes = op.attributes
        attributes = replace(attributes, code=_replaced(attributes.code, read), cycles=attributes.cycles + loads)
        yield replace(op, attributes=attributes, inputs=(*op.inputs, *held)), held
