"""The C function of a `tvm_code` op: its parameters, its tokens, what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from npukit.errors import NpukitError
from npukit.net.c_code.intervals import Interval, Known, bounds, number
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode

C_TYPES = {
    "bool": "bool",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
}

_NAMES = """acosf acoshf asinf asinhf atan2f atanf atanhf ceilf copysignf cosf coshf erff exp10f exp2f expf expm1f
    fabsf floorf fmodf hypotf ldexpf log10f log1pf log2f logf nearbyintf powf rintf roundf sinf sinhf sqrtf tanf tanhf
    truncf"""
MATH = frozenset(_NAMES.split())
"""The functions of `firmware/libm`: what the code can call."""

_TOKEN = re.compile(
    r"\s+|(?P<word>[A-Za-z]\w*)|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*"
    r"|/(?![/*])|%(?![:>])|<(?![:%])|:(?!>)|\?(?!\?)|[-+*=>!&|^~;,.(){}\[\]]",
    re.ASCII,
)
"""A token of what TVM prints. What C reads as more than that (directives, comments, digraphs, texts) is none."""
_UNUSED = """alignas alignof asm auto case constexpr default do enum extern goto inline long nullptr register short
    signed sizeof static static_assert struct switch thread_local typedef typeof typeof_unqual union unsigned
    volatile"""
_WORDS_OF_C = frozenset(_UNUSED.split())
"""Words of C of which TVM needs none."""
LONGEST = 1 << 20
"""Characters of an op's code; of what TVM has made of operators so far, the longest had 1,411."""
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_LOOP = re.compile(
    r"for \((?:\w+ \w+ = (?P<first>[^;]+))?; (?P<name>\w+)(?: \+ \d+)? <(?P<even>=?) (?P<last>[^;]+);"
    r" (?:\+\+\w+|\w+ \+= (?P<step>\d+))\)"
)
_SHIFTS = re.compile(r"for \([^;]*; \w+ > 0; \w+ >>= (\d+)\)")
_SHIFTED_BITS = 28
"""Bits that a loop shifts out: numbers seldom fill a word, and long ones are those of which half are shifted out."""
_NAMED = re.compile(r"const int32_t (\w+) = ([^;,]+);")
_LENGTHS = re.compile(r" < (p\d+)\[\w+\];")
_WIDE = re.compile(r"uint64_t (?!\*)(\w[^;]*);")
_WORD = re.compile(r"uint64_t \*|[A-Za-z_]\w*")
_DECLARED = re.compile(r"(\w+) =")
_OPERATION = re.compile(r"[-+*/%<>?]|\[")

_CYCLES_OF_A_CALL = 60


@dataclass(frozen=True)
class Pointer:
    """A parameter. `tensor` is empty for the workspace."""

    name: str
    dtype: str
    tensor: str
    written: bool = False


def pointers(net: Net, op: Op) -> list[Pointer]:
    """The parameters in their order: inputs, output, workspace."""
    attributes = op.attributes
    assert isinstance(attributes, TvmCode)
    inputs = [Pointer(f"p{index}", net.tensor(name).dtype, name) for index, name in enumerate(op.inputs)]
    work = [Pointer("work", "uint8", "", written=True)] if attributes.work_bytes else []
    return [*inputs, Pointer("output", net.tensor(op.output).dtype, op.output, written=True), *work]


def declaration(kind: str, name: str, *, written: bool) -> str:
    """A pointer parameter."""
    return f"{'' if written else 'const '}{C_TYPES[kind]} *restrict {name}"


def math_functions(code: str) -> frozenset[str]:
    """The functions of `firmware/libm` that the code calls."""
    return MATH & set(_CALLED.findall(code))


def check_code(code: str) -> None:
    """An error if this is not made of the tokens of plain arithmetic: a net may come from a file.

    So nothing in it can have a compiler read another file. What it does when it is run is for the sandbox to bound.
    """
    if len(code) > LONGEST:
        raise NpukitError(f"its code has {len(code):,} characters; npukit takes {LONGEST:,}")
    place = 0
    while place < len(code):
        token = _TOKEN.match(code, place)
        if token is None or token["word"] in _WORDS_OF_C:
            raise NpukitError(f"its code is not plain C arithmetic: {code[place : place + 20]!r}")
        place = token.end()


def mean_lengths(net: Net, op: Op) -> dict[str, float]:
    """The average turns of loops whose ends are the elements of a constant, by its parameter."""
    attributes = op.attributes
    assert isinstance(attributes, TvmCode)
    constants = ((name, net.constants.get(op.inputs[int(name[1:])])) for name in _LENGTHS.findall(attributes.code))
    return {name: float(values.mean()) for name, values in constants if values is not None}


def cycles(code: str, lengths: Mapping[str, float] = MappingProxyType({})) -> int:
    """Roughly what running the code takes on the core. `lengths`: how often a loop turns on the average whose end is an
    element of a parameter."""
    return _cycles(code, tuple(lengths.items()))


@cache
def _cycles(code: str, lengths: tuple[tuple[str, float], ...]) -> int:
    """The same, once for each code: a search asks for every tile, and steps of a recurrent layer have one code."""
    wide = {"uint64_t", *(name for declared in _WIDE.findall(code) for name in _DECLARED.findall(declared))}
    lines = ((times, line, not wide.isdisjoint(_WORD.findall(line))) for times, line in _lines(code, dict(lengths)))
    return round(sum(times * _cost(line) * (1 + twice) for times, line, twice in lines))


def _cost(line: str) -> int:
    calls = len(math_functions(line)) and sum(line.count(f"{name}(") for name in math_functions(line))
    return _CYCLES_OF_A_CALL * calls + len(_OPERATION.findall(line))


def _lines(code: str, lengths: Mapping[str, float]) -> Iterator[tuple[float, str]]:
    """Each line, with the number of times that it is run at most; once, of a loop whose bounds are not known."""
    depths, known, rests = [1.0], dict[str, Interval](), dict[tuple[str, str], int]()
    for line in map(str.strip, code.splitlines()):
        if line.startswith("}"):
            depths = depths[:-1] or [1]
        yield depths[-1], line
        if named := _NAMED.fullmatch(line):
            value = _most(named[2], known)
            known |= {named[1]: number(value, 1)} if value is not None else {}
        if line.endswith("{"):
            loop, turns = _LOOP.match(line), _turns_of_numbers(line, lengths)
            depths.append(depths[-1] * (turns or (_turns(loop, known, rests) if loop else 1)))
            if turns:  # no compiler can unroll it: its condition and its step are done in each turn
                yield depths[-1], line.partition(";")[2]


def _turns_of_numbers(line: str, lengths: Mapping[str, float]) -> float | None:
    """The turns of a loop that goes on for the bits of a number, or for as many as a constant holds."""
    shifts, table = _SHIFTS.match(line), _LENGTHS.search(line)
    return _SHIFTED_BITS / max(int(shifts[1]), 1) if shifts else lengths.get(table[1]) if table else None


def _turns(loop: re.Match[str], known: Known, rests: dict[tuple[str, str], int]) -> int:
    """The turns of a loop. One that goes on where another of the same end left off has what did not fill its steps."""
    first, last, step = _most(loop["first"] or "0", known), _most(loop["last"], known), int(loop["step"] or 1)
    if first is None or last is None:
        return 1
    turns = -(-max(last + len(loop["even"]) - first, 0) // step)
    rest = rests.get((loop["name"], loop["last"]), turns) if loop["first"] is None else turns
    rests[loop["name"], loop["last"]] = step - 1
    return min(turns, rest)


def _most(text: str, known: Known) -> int | None:
    """The largest number that an expression of known ones can be; of a choice, any of what may be chosen."""
    choices = re.split(" : ", text.partition(" ? ")[2]) if " ? " in text else [text]
    found = [bounds(choice, known, 1) for choice in choices]
    return max((int(each.high[0]) for each in found if each), default=None)
