"""Proofs by running: a mutated part of a softmax routine for every possible sum; lines whose result nothing reads;
parameters of the MAC array for every sum of a channel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mutation.mutations import Mutant
from npukit.accel.core_rows import ROW_CONSTANTS
from npukit.net.net import Net, Op
from npukit.net.ops import Softmax
from npukit.net.requantize import multiply_by_quantized_multiplier, quantization, requantization
from npukit.net.value_ranges import LayerWeights, Range, accumulators, filter_of, value_ranges

Registers = dict[str, np.ndarray]
_MASK = 0xFFFF_FFFF

# ---- a few instructions of Armv7E-M, for many values at once ----


def _operand(text: str, registers: Registers) -> np.ndarray:
    """The value of a register, with or without shift, or of a number: `r4, lsr #31`, `#12`."""
    first, _, shift = text.partition(", ")
    value = np.array([int(first[1:], 0) & _MASK]) if first[0] == "#" else registers[first]
    how, _, by = shift.partition(" ")
    return _shifted(value, how, by, registers) if shift else value


def _shifted(value: np.ndarray, how: str, by: str, registers: Registers) -> np.ndarray:
    count = _operand(by, registers) & 0xFF
    if how == "lsl":
        return np.where(count < 32, value << np.minimum(count, 31), 0) & _MASK
    if how == "lsr":
        return np.where(count < 32, value >> np.minimum(count, 31), 0)
    return _signed(value) >> np.minimum(count, 31) & _MASK


def _signed(value: np.ndarray) -> np.ndarray:
    return value.astype(np.int64) - ((value.astype(np.int64) >> 31 & 1) << 32)


def _long(product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return product & _MASK, product >> 32 & _MASK


def _qadd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.clip(_signed(a) + _signed(b), -(1 << 31), (1 << 31) - 1) & _MASK


_SIMPLE: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda a, b: a + b & _MASK,
    "sub": lambda a, b: a - b & _MASK,
    "rsb": lambda a, b: b - a & _MASK,
    "orr": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "bic": lambda a, b: a & ~b & _MASK,
    "eor": lambda a, b: a ^ b,
    "mul": lambda a, b: (_signed(a) * _signed(b)) & _MASK,
    "qadd": _qadd,
}


def _run(lines: Sequence[str], registers: Registers) -> None:
    """Run straight-line code without memory accesses. Raises `KeyError` or `ValueError` for any other instruction."""
    for line in lines:
        name, _, rest = line.split("@")[0].strip().partition(" ")
        if name:
            _step(name, re.split(r", ", rest, maxsplit=3 if name in ("smull", "umull") else 2), registers)


def _step(name: str, given: Sequence[str], registers: Registers) -> None:
    target = given[0]
    if name in ("smull", "umull"):
        one, other = (registers[each] for each in given[2:])
        product = _signed(one) * _signed(other) if name == "smull" else one.astype(np.uint64) * other.astype(np.uint64)
        low, high = _long(product)
        registers[target], registers[given[1]] = low.astype(np.int64), high.astype(np.int64)
    elif name in ("adds", "subs"):
        one, other = registers[given[1]], _operand(given[2], registers)
        whole = one + other if name == "adds" else one + (other ^ _MASK) + 1
        registers[target], registers["carry"] = whole & _MASK, whole >> 32 & 1
    elif name in ("lsl", "lsr", "asr"):
        registers[target] = _shifted(registers[given[1]], name, given[2], registers)
    elif name == "clz":
        registers[target] = 32 - np.frexp(registers[given[1]].astype(np.float64))[1].astype(np.int64)
    elif name == "movw":
        registers[target] = _operand(given[1], registers)
    elif name == "movt":
        registers[target] = registers[target] & 0xFFFF | _operand(given[1], registers) << 16
    elif name in ("mov", "mvn"):
        registers[target] = _operand(given[1], registers) ^ (_MASK if name == "mvn" else 0)
    elif name == "adc":
        registers[target] = registers[given[1]] + _operand(given[2], registers) + registers["carry"] & _MASK
    elif name != "nop":
        registers[target] = _SIMPLE[name](registers[given[1]], _operand(", ".join(given[2:]), registers))


# ---- softmax: the reciprocal, for every sum ----

_FROM, _TO = "    @ r7 one over the sum", "    @ each exponential"
_CHUNK = 1 << 18


def of_reciprocal(mutant: Mutant, text: str, entries: np.ndarray, elements: int) -> str:
    """The reason why a change in the reciprocal of a softmax changes no result: both versions run for every possible
    sum.

    `entries`: the routine's table, with twice each exponential less 2^31. Each of `elements` adds at most 2^19 to the
    sum, and the largest adds exactly 2^19.
    """
    lines = text.split("\n")
    begin, end = _section(lines, mutant.line - 1)
    if not begin < mutant.line <= end:
        return ""
    sums = _sums(entries, elements)
    before, after = lines[begin:end], mutant.text(text).split("\n")[begin:end]
    try:
        every = range(1 << 19, (elements << 19) + 1, _CHUNK)
        chunks = (np.arange(first, min(first + _CHUNK, every.stop)) for first in every)
        same = all(_same(before, after, chunk, entries, sums) for chunk in chunks)
    except (KeyError, ValueError, IndexError):
        return ""
    return (
        "both give the same results for every sum that exponentials have and every one of them: they were run"
        if same
        else ""
    )


def _section(lines: Sequence[str], at: int) -> tuple[int, int]:
    begin = next((n for n in range(at, -1, -1) if lines[n].startswith((_FROM, _TO))), at)
    end = next((n for n in range(at, len(lines)) if lines[n].startswith((_TO, "    .size"))), at)
    return (begin, end) if lines[begin].startswith(_FROM) else (at, at)


_MOST_ADDED = 16
"""Longest row in elements for which possible sums are computed exactly. For longer rows every sum counts as possible.
"""


def _sums(entries: np.ndarray, elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether each sum, less the largest element's term, is possible: with an element less, and with all elements."""
    terms = np.unique(_term(entries.astype(np.int64))).tolist()
    if elements > _MOST_ADDED:
        every = np.ones(elements << 19 | 1, bool)
        return every, every
    found = [1]
    for _ in range(elements - 1):
        found.append(reduce(lambda sums, term: sums | found[-1] << term, terms, 0))
    size = elements << 16 | 1
    one, other = (np.frombuffer(each.to_bytes(size, "little"), np.uint8) for each in found[-2:])
    return np.unpackbits(one, bitorder="little").astype(bool), np.unpackbits(other, bitorder="little").astype(bool)


def _same(
    before: Sequence[str],
    after: Sequence[str],
    sums: np.ndarray,
    entries: np.ndarray,
    possible: tuple[np.ndarray, np.ndarray],
) -> bool:
    both = list[Registers]()
    for lines in (before, after):
        registers: Registers = {"r6": sums.astype(np.int64)}
        _run(lines, registers)
        both.append({name: np.broadcast_to(registers[name], sums.shape) for name in ("r7", "r8", "r9")})
    differ = np.any([both[0][name] != both[1][name] for name in ("r7", "r8", "r9")], axis=0)
    one, other = ([each[name][differ] for name in ("r7", "r8", "r9")] for each in both)
    largest, wrong = int(entries.max()), sums[differ]
    return not any(
        ((_results(entry, *one) != _results(entry, *other)) & _may_have(entry, wrong, largest, possible)).any()
        for entry in entries.tolist()
    )


def _term(entry: Any) -> Any:
    """The term of the sum of a table's entry."""
    return ((entry >> 1) + (1 << 30) + 2048) >> 12


def _may_have(entry: int, sums: np.ndarray, largest: int, possible: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Whether a row with each sum may contain the exponential `entry`. The largest is in every row."""
    left = sums - (1 << 19) - (_term(entry) if entry < largest else 0)
    return (left >= 0) & possible[entry == largest][np.maximum(left, 0)]


def _results(entry: int, factor: np.ndarray, shift: np.ndarray, half: np.ndarray) -> np.ndarray:
    """The routine's results: the entry times the factor, rounded, with the addend; clipped to 8 bits."""
    high = (entry * factor.astype(np.int64) + (1 << 31) >> 32) + half & _MASK
    return np.clip(_shifted(high, "lsr", "n", {"n": shift}), 0, 255) - 128


# ---- assembly: results that nothing reads ----

_ENDS = re.compile(r"^(\w+:| +(b|bl|bx|beq|bne|bgt|bge|ble|blt|cbz|cbnz|it\w*|pop|push)\b)")
_LOADS = re.compile(r"^    (?:ldr|ldrb|ldrsb|ldrh|ldrsh|mov|movw|mvn)\s+(r\d+), (.*)$")
_PAIR = re.compile(r"^    ldrd\s+(r\d+), (r\d+), (.*)$")
_WRITES = re.compile(r"^    (?:add|sub|rsb|mul|lsl|lsr|asr|orr|and|eor|mov|mvn|sxtb|sxtb16)\s+(r\d+), ")


_WRITES_BACK = re.compile(r"^    (?:str|ldr)\w*\s+(\w+), \[(r[0-3])\], #\d+$")
_RETURNS = re.compile(r"^    (pop \{.*pc\}|bx lr)$")


def _written(mutant: Mutant) -> str:
    """The register written by both a line and the mutant, if nothing else differs; else empty."""
    for pattern, group in ((_WRITES, 1), (_WRITES_BACK, 2)):
        before, after = (pattern.match(each) for each in (mutant.before, mutant.after))
        if before and after and before[group] == after[group]:
            same = pattern is _WRITES or mutant.before.rpartition("#")[0] == mutant.after.rpartition("#")[0]
            return before[group] if same else ""
    return ""


def of_unread(mutant: Mutant, text: str) -> str:
    """The reason why nothing reads the register in which line and mutant differ. In the straight code after the
    line the register is loaded again before any use, or it is r0 to r3 when the routine, which returns no value, ends.
    """
    register = _written(mutant) if mutant.kind == "assembly" else ""
    name = re.compile(rf"\b{register}\b")
    for line in text.split("\n")[mutant.line :] if register else ():
        if _RETURNS.match(line) and register in ("r0", "r1", "r2", "r3"):
            return f"the routine returns, and nothing reads its {register}"
        if _ENDS.match(line) or _in_list(line, register):
            return ""
        if _loads(line, register):
            return f"{register} is loaded anew before anything reads it"
        if name.search(line.split("@")[0]):
            return ""
    return ""


def _loads(line: str, register: str) -> bool:
    """True if the line loads the register and does not read the register."""
    one, pair = _LOADS.match(line), _PAIR.match(line)
    targets, rest = ((one[1],), one[2]) if one else ((pair[1], pair[2]), pair[3]) if pair else ((), "")
    return register in targets and re.search(rf"\b{register}\b", rest) is None


def _in_list(line: str, register: str) -> bool:
    """True if the line has a register list with a range around the register: `{r4-r11}`."""
    found = re.search(r"\{(.*)\}", line)
    spans = re.findall(r"r(\d+)-r(\d+)", found[1]) if found else []
    return any(int(first) <= int(register[1:]) <= int(last) for first, last in spans)


_STORE = re.compile(r"^    str([bh]?) (r\d+|lr), \[r1(?:, #(\d+))?\](?:, #(\d+))?$")
_STORED = "kind", "register", "offset", "step"


def _stored(line: str) -> dict[str, str]:
    """The parts of a store through r1; empty for another line."""
    match = _STORE.match(line)
    return {name: found or "0" for name, found in zip(_STORED, match.groups(), strict=True)} if match else {}


def of_overwritten(mutant: Mutant, text: str) -> str:
    """The reason why the second byte of a halfword store has no effect: the next store overwrites the byte."""
    before, after = _stored(mutant.before), _stored(mutant.after)
    if before.get("kind") != "b" or after != {**before, "kind": "h"}:
        return ""
    for line in text.split("\n")[mutant.line :]:
        store = _stored(line)
        if _ENDS.match(line) or (re.search(r"\br1\b", line) and not store):
            return ""
        if store:
            next_byte = int(before["offset"]) + 1 - int(before["step"])
            return "the store behind it writes the second byte" if int(store["offset"]) == next_byte else ""
    return ""


# ---- parameters of the MAC array ----

_BYTES_OF_A_LANE = 9
_LANES = (4, 16)
"""Lanes of a block of parameters: for a convolution, and for planes."""


def of_parameters(before: np.ndarray, after: np.ndarray, net: Net) -> str:
    """The reason why changed biases, multipliers and shifts give the same outputs: compared for every sum that the
    weights allow, on every channel with matching parameters. `before`, `after`: the bytes. Bytes that match no channel
    prove nothing."""
    at, size = int(np.flatnonzero(before != after)[0]), len(before)
    blocks = {lanes * _BYTES_OF_A_LANE for lanes in _LANES if lanes * _BYTES_OF_A_LANE < size} | {size}
    pieces = [slice(at // block * block, (at // block + 1) * block) for block in sorted(blocks)]
    return next((reason for each in pieces if (reason := _of_block(before[each], after[each], net))), "")


def _of_block(before: np.ndarray, after: np.ndarray, net: Net) -> str:
    ranges, lanes = value_ranges(net), (_lanes(before), _lanes(after))
    changed = np.flatnonzero(np.any([one != other for one, other in zip(*lanes, strict=True)], axis=0))
    found = False
    for part in (part for op in net.ops for part in op.parts):
        made = filter_of(net, part)
        if made is None:
            continue
        sums = accumulators(made, ranges.get(part.inputs[0]))
        for first in _places(net, part, lanes[0]):
            found = True
            own = [int(lane) for lane in changed if first + lane < len(made.bias)]
            given = [[[int(column[lane]) for column in each] for each in lanes] for lane in own]
            if not all(
                _same_outputs(net, made, sums, first + lane, *two) for lane, two in zip(own, given, strict=True)
            ):
                return ""
    return "every sum that the weights allow gives the same output, or no channel has these parameters" if found else ""


Lane = Sequence[int]
"""Bias, multiplier and shift of a lane."""
Lanes = tuple[np.ndarray, np.ndarray, np.ndarray]


def _lanes(data: np.ndarray) -> Lanes:
    count = len(data) // _BYTES_OF_A_LANE
    raw = data.astype(np.uint8).tobytes()
    words = np.frombuffer(raw[: 8 * count], "<i4").astype(np.int64)
    return words[:count], words[count:], np.frombuffer(raw[8 * count :], np.int8).astype(np.int64)


def _places(net: Net, op: Op, lanes: Lanes) -> list[int]:
    """The first channels of the blocks of an op whose parameters these lanes hold."""
    factors, count = requantization(net, op), len(lanes[0])
    both = [(factors.multipliers, lanes[1]), (factors.shifts, lanes[2])]
    return [
        first
        for first in range(len(factors.shifts))
        if all(np.array_equal(own[first : first + count], lane[: len(own) - first]) for own, lane in both)
    ]


def _same_outputs(net: Net, made: LayerWeights, sums: Range, channel: int, before: Lane, after: Lane) -> bool:
    every = np.arange(sums.low[channel], sums.high[channel] + 1)
    zero = quantization(net, made.op.output).zero_point
    made_of_both = [
        np.clip(multiply_by_quantized_multiplier(every + bias - before[0], multiplier, shift) + zero, *made.clamp)
        for bias, multiplier, shift in (before, after)
    ]
    return np.array_equal(made_of_both[0], made_of_both[1])


# ---- tables on the core ----


def of_exponential(before: int, after: int, routine: str, elements: int) -> str:
    """The reason why another entry of a softmax's table gives the same results with every sum. The entry's term in the
    sum must be the same."""
    lines = routine.split("\n")
    begin = next((n for n, line in enumerate(lines) if line.startswith(_FROM)), -1)
    if begin < 0 or _term(before) != _term(after):
        return ""
    section = lines[begin : _section(lines, begin)[1]]
    for first in range(1 << 19, (elements << 19) + 1, _CHUNK):
        registers: Registers = {"r6": np.arange(first, min(first + _CHUNK, (elements << 19) + 1))}
        _run(section, registers)
        given = [np.broadcast_to(registers[name], registers["r7"].shape) for name in ("r7", "r8", "r9")]
        if not np.array_equal(_results(before, *given), _results(after, *given)):
            return ""
    return "both give the same results with every sum of exponentials, which they leave the same: they were run"


def of_share(before: int, after: int, values: Sequence[int], routine: str) -> str:
    """The reason why another table entry for one operand of an addition gives the same outputs with every value of the
    other operand."""
    left, right = (
        re.search(pattern, routine) for pattern in (r"add r4, r4, r8, lsl #(\d+)", r"ssat r4, #8, r4, asr #(\d+)")
    )
    if not left or not right:
        return ""
    factor, added, others = values[0], values[1], np.arange(-128, 128) << int(left[1])
    one, other = (
        np.clip(((share + others) * factor + (added << 32) + (1 << 31) >> 32) >> int(right[1]), -128, 127)
        for share in (before, after)
    )
    return "every value of the other operand gives the same output" if np.array_equal(one, other) else ""


# ---- proofs by kind of mutant ----


def of_assembly(mutant: Mutant, routines: str, constants: str, net: Net) -> str:
    """The reason why a change of a routine has no effect, proven by a program; empty if not proven."""
    plain = of_unread(mutant, routines) or of_overwritten(mutant, routines)
    rows = [each.inputs[0] for each in net.ops if each.kind == Softmax.kind]
    if plain or len(rows) != 1:
        return plain
    tables = [each for each in _arrays(constants) if each.comment == ROW_CONSTANTS]
    entries = np.unique(np.concatenate([each.values for each in tables])) if tables else np.zeros(0, np.int64)
    return of_reciprocal(mutant, routines, entries, net.tensor(rows[0]).shape[-1]) if len(entries) else ""


def of_constants(mutant: Mutant, constants: str, routines: str, net: Net) -> str:
    """The reason why a change of a number in an array of constants has no effect; empty if not proven."""
    here = next((each for each in _arrays(constants) if each.first < mutant.line <= each.last), None)
    after = next((each for each in _arrays(mutant.text(constants)) if here and each.first == here.first), None)
    if here is None or after is None or here.comment not in _ARRAYS:
        return ""
    return _ARRAYS[here.comment](here.values, after.values, routines, net)


def _parameters(before: np.ndarray, after: np.ndarray, routines: str, net: Net) -> str:
    return of_parameters(before, after, net)


def _exponentials(before: np.ndarray, after: np.ndarray, routines: str, net: Net) -> str:
    (at,) = np.flatnonzero(before != after)
    rows = [net.tensor(each.inputs[0]).shape[-1] for each in net.ops if each.kind == Softmax.kind]
    return of_exponential(int(before[at]), int(after[at]), routines, rows[0]) if len(rows) == 1 else ""


def _shares(before: np.ndarray, after: np.ndarray, routines: str, net: Net) -> str:
    (at,) = np.flatnonzero(before != after)
    body = routines.partition("\nadd_by_table")[2].partition("\n    .size")[0]
    return of_share(int(before[at]), int(after[at]), before[:2].tolist(), body) if at > 1 else ""


_ARRAYS: Mapping[str, Callable[[np.ndarray, np.ndarray, str, Net], str]] = {
    "biases, multipliers, shifts": _parameters,
    ROW_CONSTANTS: _exponentials,
    "add by table": _shares,
}
"""Proofs by the comment above an array."""


@dataclass(frozen=True, eq=False)
class _Array:
    comment: str
    first: int
    last: int
    values: np.ndarray


def _arrays(constants: str) -> list[_Array]:
    """The arrays of numbers, with their first and last line numbers."""
    found = re.finditer(r"/\* (.*) \*/\n\.\w+ = \{\n((?:    [-\d, ]+\n)+)\},", constants)
    return [
        _Array(
            match[1].partition(";")[0],
            constants.count("\n", 0, match.start(2)),
            constants.count("\n", 0, match.end(2)),
            np.array([int(number) for number in re.findall(r"-?\d+", match[2])]),
        )
        for match in found
    ]
