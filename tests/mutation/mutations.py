"""Mutations: small changes of generated C, assembly, constants, commands, descriptors and firmware."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

CLASSES = ("C", "assembly", "constants", "commands", "descriptors", "firmware")


@dataclass(frozen=True)
class Mutant:
    """A change of lines of a file, or of a byte of a PE's own data."""

    kind: str
    file: str
    line: int
    """Line number from 1; for own data the byte's offset."""
    before: str
    after: str
    pe: int = -1

    def __str__(self) -> str:
        place = f"own data of PE {self.pe} at {self.line:#x}" if self.pe >= 0 else f"{self.file}:{self.line}"
        before, after = ("; ".join(map(str.strip, each.split("\n"))) for each in (self.before, self.after))
        return f"{self.kind}: {place}: `{before}` -> `{after}`"

    def text(self, whole: str) -> str:
        lines, end = whole.split("\n"), self.line + self.before.count("\n")
        assert "\n".join(lines[self.line - 1 : end]) == self.before
        return "\n".join([*lines[: self.line - 1], self.after, *lines[end:]])


Rewrite = tuple[re.Pattern[str], Callable[[re.Match[str], random.Random], str]]
"""A pattern for a part of a line, and a function for its replacement."""


def _step(match: re.Match[str], random: random.Random) -> str:
    """A decimal number near the matched one."""
    number = int(match[0])
    return str(number + random.choice([-1, 1, 2, 16] if number > 0 else [-1, 1, 2, 16][1:]))


def _rewrite(pattern: str, *texts: str) -> Rewrite:
    return re.compile(pattern), lambda match, random: random.choice([text for text in texts if text != match[0]])


_NUMBER = (re.compile(r"(?<![\w.#-])\d+(?![\w.])"), _step)
GENERATED_C: Sequence[Rewrite] = (
    (re.compile(r"noc_wait\((\d+), (.+?)\);"), lambda m, r: r.choice([
        f"noc_wait({m[1]}, {m[2]} - 1);", f"noc_wait({m[1]}, {m[2]} - {m[2]});", f"noc_wait({m[1]}, {m[2]} + 1);",
        f"noc_wait({int(m[1]) ^ 1}, {m[2]});", "0;"])),
    (re.compile(r"(noc_send|mac_array_run_one|mac_array_run|mac_array_wait)\(.*\);"), lambda m, r: "0;"),
    (re.compile(r"mac_array_(submit)\(.*\);"), lambda m, r: ";"),
    (re.compile(r"\bARENA\((at_\w+(?: \+ \d+)?)\)"), lambda m, r: f"ARENA({m[1]} + {r.choice([1, 2, 4, 16])})"),
    (re.compile(r"(net_end_layer)\((\d+)\)"), lambda m, r: f"{m[1]}({int(m[2]) + 1})"),
    (re.compile(r"^    (\w+_[0-9a-f]{8})\((.*)\);"), lambda m, r: "    ;"),
    (re.compile(r"(row_bytes|rows|planes) = (\d+)"), lambda m, r: f"{m[1]} = {int(m[2]) + r.choice([-1, 1])}"),
    _rewrite(r"if \(observed != 0\)", "if (observed == 0)"),
)  # fmt: skip
_DECLARES = "return|const|static|else|if|while|for|do|uint|int|bool|case|break"
FIRMWARE: Sequence[Rewrite] = (
    _NUMBER,
    _rewrite(r"(?<= )(==|!=|<=|>=|<|>)(?= )", "==", "!=", "<", ">="),
    _rewrite(r"(?<= )(&&|\|\|)(?= )", "&&", "||"),
    _rewrite(r"(?<= )(\+|-)(?= )", "+", "-"),
    _rewrite(r"(?<= )(&|\|)(?= )", "&", "|"),
    (re.compile(rf"^( +)(?!{_DECLARES})([\w>.\[\]*-]+ [+|&-]?= .*|\w+\(.*\));$"), lambda m, r: f"{m[1]};"),
)  # fmt: skip
_SIBLINGS = (
    ("smlad", "smladx", "smlsd"), ("smlabb", "smlabt", "smlatb", "smlatt"), ("smmlar", "smmla"), ("smmulr", "smmul"),
    ("ssat", "usat"), ("sxtb16", "uxtb16"), ("sxtb", "uxtb"), ("add", "sub", "rsb"), ("adds", "subs"),
    ("ldrsb", "ldrb"), ("ldrsh", "ldrh"), ("ldr", "ldrh"), ("strb", "strh"), ("str", "strh"), ("asr", "lsr"),
    ("lsl", "asr"), ("bne", "beq"), ("bgt", "bge", "ble"), ("mul", "add"), ("qadd", "add"), ("pkhbt", "pkhtb"),
    ("mla", "mls"), ("smull", "umull"), ("orr", "and", "eor"), ("movt", "movw"), ("mov", "mvn"),
)  # fmt: skip


def _sibling(match: re.Match[str], random: random.Random) -> str:
    name = match[0]
    others = [other for group in _SIBLINGS if name in group for other in group if other != name]
    return random.choice(others) if others else name


ASSEMBLY: Sequence[Rewrite] = (
    (re.compile(r"(?<=^    )[a-z0-9]+(?= )"), _sibling),
    (re.compile(r"(?<=#)-?\d+(?!x|\d)"), lambda m, r: str(int(m[0]) + r.choice([1, -1, 4]))),
    (re.compile(r"\br(\d+)(?=,|\]|$)"), lambda m, r: f"r{(int(m[1]) + r.choice([1, 2, 7])) % 12}"),
    (re.compile(r"^    [a-z].*$"), lambda m, r: "    nop"),
    (re.compile(r"r4-r11"), lambda m, r: "r4-r10, r12"),
    (re.compile(r"r4-r10"), lambda m, r: "r4-r9, r12"),
)
_INT8 = (re.compile(r"-?\d+(?=,|$)"), lambda m, r: str(_other_byte(int(m[0]), r)))


def _other_byte(value: int, random: random.Random) -> int:
    """Another number of the same sign, valid as signed and unsigned byte, because the line does not state the type."""
    if not -128 <= value <= 255:
        return value ^ (1 << random.randrange(16))
    return ((value & 0xFF) ^ (1 << random.randrange(7))) - (256 if value < 0 else 0)


def rewrites(line: str, rules: Sequence[Rewrite], random: random.Random) -> list[str]:
    """At most a single changed line for each rule, at a random match."""
    found = []
    for pattern, change in rules:
        places = list(pattern.finditer(line))
        if places:
            place = random.choice(places)
            found.append(line[: place.start()] + change(place, random) + line[place.end() :])
    return [each for each in dict.fromkeys(found) if each != line]


# ---- places ----


def in_lines(
    kind: str, file: str, text: str, rules: Sequence[Rewrite], random: random.Random, lines: set[int] | None = None
) -> list[Mutant]:
    """Mutants of the given lines of a text, or of all lines."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        code, comment = _without_comment(line)
        if (lines is None or number in lines) and code.strip():
            found += [Mutant(kind, file, number, line, new + comment) for new in rewrites(code, rules, random)]
    return found


def _without_comment(line: str) -> tuple[str, str]:
    if line.lstrip().startswith(("*", "/*", "#", "@", "_Static", ".syntax", "enum", "struct")):
        return "", line
    at = line.find("/*")
    return (line, "") if at < 0 else (line[:at], line[at:])


def swapped_calls(file: str, text: str) -> Iterator[Mutant]:
    """Mutants with two neighbouring steps of a frame in reverse order: array commands, sends, waits."""
    lines = text.split("\n")
    steps = [i for i, line in enumerate(lines) if re.match(r"    status = \w+\(.*\);", line)]
    for first, second in pairwise(steps):
        between = lines[first + 1 : second]
        before, after = ([lines[one], *between, lines[other]] for one, other in ((first, second), (second, first)))
        yield Mutant("C", file, first + 1, "\n".join(before), "\n".join(after))


_STRUCT = re.compile(r"^\.(\w+?) = \{$")
_FIELD = re.compile(r"^    \.(\w+) = (.*),$")
_UNREAD = {"tag"}
"""Members read by no device."""
_OF_ROWS = {"source_stride": "rows", "destination_stride": "rows"}
"""Strides, by the member whose 1 makes the stride irrelevant."""


def in_structs(file: str, text: str, random: random.Random) -> list[Mutant]:
    """Mutants of the members of commands and descriptors, and of the numbers of weights, parameters and tables."""
    found, name, members = list[Mutant](), "", dict[str, tuple[int, str]]()
    for number, line in enumerate(text.split("\n"), 1):
        if match := _STRUCT.match(line):
            name, members = match[1], {}
        elif line == "},":
            found += _of_members(file, name, members, random)
            name, members = "", {}
        elif match := _FIELD.match(line):
            members[match[1]] = number, line
        elif name and re.match(r"^ +-?\d", line):
            found += [Mutant("constants", file, number, line, new) for new in rewrites(line, [_INT8], random)]
    return found


def _of_members(
    file: str, name: str, members: Mapping[str, tuple[int, str]], random: random.Random
) -> Iterator[Mutant]:
    kind = "commands" if name.endswith("_command") else "descriptors"
    for member, (number, line) in members.items():
        rows = _OF_ROWS.get(member)
        if member in _UNREAD or (rows and members.get(rows, (0, " = 1,"))[1].endswith(" = 1,")):
            continue
        for new in rewrites(line, [*GENERATED_C, _MEMBER_NUMBER, *_NAMES], random)[:2]:
            yield Mutant(kind, file, number, line, new)


_MEMBER_NUMBER = (re.compile(r"(?<== )-?\d+(?=,$)"), lambda m, r: str(_near(int(m[0]), r)))
_NAMES = (
    _rewrite(r"MAC_ARRAY_CONVOLUTION", "MAC_ARRAY_DEPTHWISE"),
    _rewrite(r"MAC_ARRAY_DEPTHWISE", "MAC_ARRAY_CONVOLUTION"),
    _rewrite(r"MAC_ARRAY_PIXELS", "0"),
    _rewrite(r"= &net_constants\.\w+", "= 0"),
)


def _near(value: int, random: random.Random) -> int:
    return (
        value - 1 if value >= 127 else value + random.choice([1, 2]) if value <= 0 else value + random.choice([-1, 1])
    )


_LISTED = re.compile(r"^0x([0-9a-f]+)  (.*)$")


def in_own_data(pe: int, data: bytes, listing: str, random: random.Random) -> Iterator[Mutant]:
    """Mutants with a set bit of a PE's own data cleared. The project's listing names the parts."""
    parts = [(int(m[1], 16), m[2]) for line in listing.splitlines() if (m := _LISTED.match(line))]
    ends = [start for start, _ in parts[1:]] + [len(data)]
    for (start, told), end in zip(parts, ends, strict=True):
        kind = _kind_of(told)
        places = [at for at in range(start, end) if data[at] and not _is_tag(told, at - start)]
        if kind and places:
            for at in random.sample(places, min(len(places), 6)):
                bits = [bit for bit in range(8) if data[at] >> bit & 1]
                after = data[at] ^ 1 << random.choice(bits)
                yield Mutant(kind, "own.bin", at, f"{data[at]:#04x}, of {told[:40]}", f"{after:#04x}", pe)


def _kind_of(told: str) -> str:
    if told.startswith("struct mac_array_command"):
        return "commands"
    if told.startswith("struct noc_"):
        return "descriptors"
    return "constants" if "weights or parameters" in told else ""


def _is_tag(told: str, offset: int) -> bool:
    """True for tags, and for strides of a single row: nothing reads these."""
    stride = told.startswith("struct noc_descriptor") and "rows = 1," in told and 28 <= offset < 36
    return (told.startswith(("struct mac_array", "struct noc_desc")) and offset in (6, 7)) or stride
