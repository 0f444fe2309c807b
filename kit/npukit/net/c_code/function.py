"""The C function of a `tvm_code` op: parameters, tokens, and text from `templates/ops` or the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.net.attributes import TvmCode
from npukit.net.net import Net, Op

_WHOLE = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
C_TYPES = {"bool": "bool", **{name: f"{name}_t" for name in _WHOLE}, "float32": "float"}

_CYCLES = """
    acosf 560 acoshf 884 asinf 544 asinhf 922 atan2f 508 atanf 513 atanhf 878 ceilf 20 copysignf 6 cosf 393
    coshf 333 erff 139 exp10f 220 exp2f 218 expf 48 expm1f 239 fabsf 3 floorf 20 fmodf 77 hypotf 291 ldexpf 78
    log10f 767 log1pf 831 log2f 765 logf 767 nearbyintf 21 powf 912 rintf 21 roundf 36 sinf 388 sinhf 299 sqrtf
    14 tanf 518 tanhf 353 truncf 14"""
MATH: Mapping[str, int] = dict(zip(_CYCLES.split()[::2], map(int, _CYCLES.split()[1::2]), strict=True))
"""The functions of `firmware/libm` with their cycles, measured by
`benchmarks/core/core_predictions.py --functions`."""
INT8_OF, INT8_OF_RATIO = "int8_of", "int8_of_ratio"
"""The functions of `firmware/libm/math.h` that round a real number, or a quotient, and add a zero point."""

_TOKEN = re.compile(
    r"\s+|(?P<word>[A-Za-z]\w*)|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?[fFuUlL]*"
    r"|/(?![/*])|%(?![:>])|<(?![:%])|:(?!>)|\?(?!\?)|[-+*=>!&|^~;,.(){}\[\]]",
    re.ASCII,
)
"""A token of C as TVM prints it. Directives, comments, digraphs and texts are no tokens."""
_UNUSED = """alignas alignof asm auto case constexpr default do enum extern goto inline long nullptr register short
    signed sizeof static static_assert struct switch thread_local typedef typeof typeof_unqual union unsigned
    volatile"""
_WORDS_OF_C = frozenset(_UNUSED.split())
"""Words of C in no code from TVM."""
MOST_CHARACTERS = 1 << 20
"""Limit of an op's code. The longest code from TVM so far had 1,411 characters."""
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")


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
    return frozenset((*MATH, INT8_OF, INT8_OF_RATIO)) & set(_CALLED.findall(code))


def check_code(code: str) -> None:
    """Raise an error if the code has tokens beyond plain arithmetic. A net may come from a file, and its code must not
    make a compiler read another file. The sandbox bounds the code at run time."""
    if len(code) > MOST_CHARACTERS:
        raise NpukitError(f"its code has {len(code):,} characters; npukit takes {MOST_CHARACTERS:,}")
    place = 0
    while place < len(code):
        token = _TOKEN.match(code, place)
        if token is None or token["word"] in _WORDS_OF_C:
            raise NpukitError(f"its code is not plain C arithmetic: {code[place : place + 20]!r}")
        place = token.end()


Words = Mapping[str, int | float | str]
"""Numbers, or other words, in place of words in C text."""

_PASSED = re.compile(r"/\*.*?\*/|//[^\n]*|(?<![\w.])[A-Za-z_]\w*", re.S)


@cache
def text_of(file: str) -> str:
    """The C of a file in `templates/ops`."""
    return (data_folder("templates") / "ops" / file).read_text(encoding="utf-8")


def body_of(text: str, words: Words) -> str:
    """The C without comments, and with numbers for words."""
    plain = _PASSED.sub(lambda found: _spelled(found[0], words), text)
    return "".join(f"{line.rstrip()}\n" for line in plain.splitlines() if line.strip())


def _spelled(found: str, words: Words) -> str:
    if found.startswith("/"):
        return " "
    value = words.get(found, found)
    if isinstance(value, str):
        return value
    spelled = f"{value!r}f" if isinstance(value, float) else str(int(value))
    return f"({spelled})" if value < 0 else spelled
