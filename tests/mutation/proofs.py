"""Proofs that a mutant computes the same in every frame: of members ignored by a device because of other members, of
waits that change places, and of single mutants, by `proofs.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from mutation.mutations import Mutant
from npukit.plan.ir.plan import Plan, Send

_FIELD = re.compile(r"^    \.(\w+) = (.*),$")
Members = Mapping[str, int]


def members(text: str, line: int) -> dict[str, int]:
    """The numeric members of the structure around a line."""
    lines = text.split("\n")
    begin = next(at for at in range(line - 1, -1, -1) if lines[at].endswith("= {"))
    end = next(at for at in range(line - 1, len(lines)) if lines[at] == "},")
    found = (match for at in range(begin, end) if (match := _FIELD.match(lines[at])))
    return {match[1]: int(match[2]) for match in found if re.fullmatch(r"-?\d+", match[2])}


def _reach(given: Members, axis: str, side: str) -> int:
    """The last row or column of the input read by any output."""
    taps = (given[f"kernel_{axis}"] - 1) * given[f"dilation_{side}"]
    pad = given.get("pad_top" if side == "y" else "pad_left", 0)
    return (given[f"output_{axis}"] - 1) * given[f"stride_{side}"] + taps - pad


def _extent(axis: str, side: str) -> Callable[[Members, Members], bool]:
    def holds(before: Members, after: Members) -> bool:
        return f"kernel_{axis}" in before and _reach(before, axis, side) < min(
            before[f"input_{axis}"], after[f"input_{axis}"]
        )

    return holds


def _unpadded(before: Members, after: Members) -> bool:
    axes = (("height", "y", "pad_top"), ("width", "x", "pad_left"))
    return "kernel_height" in before and all(
        before.get(pad, 0) == 0 and _reach(before, axis, side) < before[f"input_{axis}"] for axis, side, pad in axes
    )


def _single(member: str) -> Callable[[Members, Members], bool]:
    return lambda before, after: before.get(member) == 1


_RULES: Mapping[str, tuple[Callable[[Members, Members], bool], str]] = {
    "input_height": (_extent("height", "y"), "no output reads a row behind the smaller of the two heights"),
    "input_width": (_extent("width", "x"), "no output reads a column behind the smaller of the two widths"),
    "input_zero": (_unpadded, "no output reads padding, the one thing that has this value"),
    "dilation_y": (_single("kernel_height"), "a kernel of one row has no distance between rows"),
    "dilation_x": (_single("kernel_width"), "a kernel of one column has no distance between columns"),
    "stride_y": (_single("output_height"), "one row of outputs has no distance to a next one"),
    "stride_x": (_single("output_width"), "one column of outputs has no distance to a next one"),
    "input_row_stride": (_single("input_height"), "one row has no distance to a next one"),
    "input_pixel_stride": (_single("input_width"), "one column has no distance to a next one"),
    "output_row_stride": (_single("output_height"), "one row has no distance to a next one"),
    "output_pixel_stride": (_single("output_width"), "one column has no distance to a next one"),
    "extra_row_stride": (_single("output_height"), "one row has no distance to a next one"),
    "extra_pixel_stride": (_single("output_width"), "one column has no distance to a next one"),
}


def of_nothing(mutant: Mutant, text: str) -> str:
    """The reason why a descriptor without bytes moves nothing, for any source and number of rows; else empty."""
    match = _FIELD.match(mutant.before)
    if (
        mutant.kind != "descriptors"
        or mutant.pe >= 0
        or match is None
        or match[1] not in ("rows", "source_pe", "source")
    ):
        return ""
    empty = members(text, mutant.line).get("row_bytes") == 0
    return "a descriptor without bytes moves nothing, and counts its flags: `boards/pe-mesh.md`" if empty else ""


def of_member(mutant: Mutant, text: str) -> str:
    """The reason why a device ignores the change of a command's member; empty if the change may matter."""
    match = _FIELD.match(mutant.before)
    if mutant.kind != "commands" or mutant.pe >= 0 or match is None or match[1] not in _RULES:
        return ""
    holds, reason = _RULES[match[1]]
    before, after = members(text, mutant.line), members(mutant.text(text), mutant.line)
    return reason if match[1] in after and holds(before, after) else ""


_WAIT, _ROLE = re.compile(r"noc_wait\((\d+), 1\); /\* (\S+) from "), re.compile(r"roles/(\d+)/")


def of_waits(mutant: Mutant, plan: Plan) -> str:
    """The reason why two waits may change places, with computations between them: a single PE asks for their messages
    from a single place, which keeps the order, and the wait for the later message comes first now. Else empty."""
    before, after = (_WAIT.findall(text) for text in (mutant.before, mutant.after))
    if mutant.kind != "C" or "noc_send(" in mutant.before or len(before) != 2 or after != before[::-1]:
        return ""
    role = _ROLE.search(mutant.file)
    pes = [pe.pe for pe in plan.pes if role is None or pe.role == int(role[1])]
    landing = [[_landing(plan, pe, int(flag), name) for flag, name in before] for pe in pes]
    in_order = any(map(any, landing)) and all(_comes_first(plan, *each) for each in landing if any(each))
    return "a PE asks for both in this order: after the second both are there" if in_order else ""


def _landing(plan: Plan, pe: int, flag: int, tensor: str) -> list[int]:
    """The messages with parts of a tensor that a flag of a PE counts."""
    return [each for each in plan.landing_on[pe].get(flag, []) if plan.messages[each].tensor == tensor]


def _comes_first(plan: Plan, first: Sequence[int], second: Sequence[int]) -> bool:
    """True if all messages of `first` arrive before those of `second`: numbers of messages for a PE."""
    sent = {step.message: (pe.pe, at) for pe in plan.pes for at, step in enumerate(pe.steps) if isinstance(step, Send)}
    ways = {(sent[each][0], plan.messages[each].source_pe) for each in (*first, *second)}
    places = [[sent[each][1] for each in numbers] for numbers in (first, second)]
    return len(ways) == 1 and all(places) and max(places[0]) < min(places[1])


_CALL = re.compile(r"(\w+_[0-9a-f]{8})\((.*)\);")
_SCRATCH, _ITS_REGISTER = 2, re.compile(r"\br[0-2]-|\br2\b")
_LOADED_FIRST = re.compile(r" +(?:ldr|ldrb|ldrsb|ldrh|mov|movw) r2, (?!.*\br2\b)")


def of_scratch(mutant: Mutant, routines: str) -> str:
    """The reason why an assembly routine does not read the third argument, scratch memory; else empty."""
    before, after = _CALL.search(mutant.before), _CALL.search(mutant.after)
    if not before or not after or before[1] != after[1]:
        return ""
    one, other = (match[2].split(", ") for match in (before, after))
    differ = [number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    body = routines.partition(f"\n{before[1]}:\n")[2].partition("\n    .size")[0]
    naming = next((line for line in body.split("\n") if _ITS_REGISTER.search(line)), "")
    unread = bool(body) and (not naming or _LOADED_FIRST.match(naming) is not None)
    return (
        "the routine writes r2 before it reads it: it takes no scratch memory"
        if differ == [_SCRATCH] and unread
        else ""
    )


_MEMBER = re.compile(r"^ +(?:const )?(?:struct )?(\w+) (\**)(\w+);", re.MULTILINE)
_SIZES = {"uint8_t": 1, "int8_t": 1, "uint16_t": 2, "int16_t": 2}


def _layout(header: str) -> dict[str, tuple[int, int]]:
    """Offset and size of each member of a command. Members are aligned to their size."""
    body = header[header.index("struct mac_array_command {") :]
    found, at = dict[str, tuple[int, int]](), 0
    for kind, pointer, name in _MEMBER.findall(body[: body.index("};")]):
        size = 4 if pointer else _SIZES.get(kind, 4)
        at = -(-at // size) * size
        found[name] = at, size
        at += size
    return found


def of_own_member(mutant: Mutant, listing: str, data: bytes, header: str) -> str:
    """The reason as by `of_member`, for a byte of a command in a PE's own data. The listing names the data's parts."""
    commands = re.finditer(r"^0x([0-9a-f]+)  (struct mac_array_command.*)$", listing, re.MULTILINE)
    parts = [(int(match[1], 16), match[2]) for match in commands]
    start, told = max(((at, told) for at, told in parts if at <= mutant.line), default=(0, ""))
    before = {name: int(number) for name, number in re.findall(r"(\w+) = (-?\d+)(?=,|$)", told)}
    inside = ((n, at, size) for n, (at, size) in _layout(header).items() if at <= mutant.line - start < at + size)
    name, at, size = next(inside, ("", 0, 0))
    if mutant.kind != "commands" or name not in _RULES:
        return ""
    changed = data[: mutant.line] + bytes([int(mutant.after, 16)]) + data[mutant.line + 1 :]
    after = {**before, name: int.from_bytes(changed[start + at : start + at + size], "little", signed=True)}
    holds, reason = _RULES[name]
    return reason if holds(before, after) else ""


@cache
def _listed(file: str) -> tuple[tuple[str, str], ...]:
    listed = json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))
    return tuple((each["mutant"], each["reason"]) for each in listed)


def of_listed(told: str) -> str:
    """The reason in `proofs.json` whose pattern matches a mutant; empty if none does."""
    return _reason("proofs.json", told)


def why_it_survives(told: str) -> str:
    """The explanation in `survivors.json` for a mutant found by no check and excused by no proof."""
    return _reason("survivors.json", told)


def _reason(file: str, told: str) -> str:
    return next((reason for pattern, reason in _listed(file) if re.search(pattern, told)), "")
