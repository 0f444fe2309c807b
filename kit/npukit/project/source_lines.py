"""Source lines of the calls of each layer: in the generated C, and in the TIR behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from npukit.codegen.frame import BEGIN, END
from npukit.codegen.render import NETWORK, TIR
from npukit.codegen.sources import Sources
from npukit.plan.ir.plan import Plan
from npukit.project.files import Project

_END = re.compile(rf"\b{END}\W+(\d+)\)")
_CALL = re.compile(r"\s*(?:status = )?(?:T\.call_extern|\w+)\(")


def source_lines(project: Project, sources: Sequence[Sources], plan: Plan) -> Mapping[str, list[str]]:
    """`FILE:LINE` of each op's first call, by name. A program in the form of a table calls no layer by name."""
    found: dict[str, list[str]] = {}
    for each, role in zip(sorted(sources, key=lambda each: each.role), project.roles, strict=True):
        pe, known = plan.by_pe.get(each.pes[0]), frozenset(found)
        tiles = pe.tiles if pe else ()  # the leader of another chip has no plan
        for file in (NETWORK, TIR) if tiles else ():
            for layer, line in _calls(each.files[file]).items():
                if tiles[layer].op not in known:
                    found.setdefault(tiles[layer].op, []).append(f"{role.net}/{file}:{line}")
    return found


def _calls(text: str) -> dict[int, int]:
    """The line of the first call of each layer, by its number."""
    begin, found = None, dict[int, int]()
    for number, line in enumerate(text.splitlines(), 1):
        if BEGIN in line:
            begin = None
        elif end := _END.search(line):
            found[int(end[1])] = begin or number
        elif begin is None and _CALL.match(line):
            begin = number
    return found
