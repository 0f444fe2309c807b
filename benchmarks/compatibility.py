"""The operators read by npukit: lists for docs/compatibility.md, and benchmarks/compatibility.md with all evidence.

    python benchmarks/compatibility.py            # fails if a page has other lists or tables
    python benchmarks/compatibility.py --write

Operators come from the importers and from the schemas of the formats, engines from `npukit ops`, outcomes from
`benchmarks/differential/results.json`, node tests from ONNX's package and `tests/frontend/onnx_node_failures.txt`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import tflite

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from benchmarks.state import CHECKOUT

from differential.evidence import ENDS
from differential.judge import EQUAL, LISTED
from differential.report import recorded
from differential.run import listed
from docs.wrap import wrapped
from frontend import onnx_nodes
from npukit import api
from npukit.frontend.onnx.file import known_ops
from npukit.frontend.tflite.graphs import MERGED
from npukit.frontend.tflite.model import CUSTOM, name_of
from npukit.frontend.tflite.ops import CONVERTERS

PAGES = LISTS, EVIDENCE = CHECKOUT / "docs/compatibility.md", Path(__file__).with_suffix(".md")
BOARD = "pe-mesh"
FORMS = ("tflite", "onnx", "pytorch")
CLASSES = {
    "int8": "int8",
    "qdq-int8": "QDQ int8",
    "int8-int4": "int8, 4-bit weights",
    "qdq-int8-int4": "QDQ int8, 4-bit weights",
    "uint8": "uint8",
    "qdq-uint8": "QDQ uint8",
    "int16": "int16",
    "qdq-int16": "QDQ int16",
    "qoperator-int8": "QOperator int8",
    "qoperator-uint8": "QOperator uint8",
    "dynamic": "dynamic",
    "float": "`--float`",
    "calibrated": "`--calibration`",
}
"""Headings by class of networks, in the order of columns."""


@dataclass(frozen=True)
class Facts:
    """The evidence of a format: operators that the importer takes, and results of runs."""

    form: str
    read: frozenset[str]
    engines: Mapping[str, str]
    """The engines of the ops named by `npukit ops`."""
    outcomes: Mapping[str, Mapping[str, Mapping[str, int]]]
    nodes: Mapping[str, str]
    """Passed and all node tests, by op."""

    @property
    def classes(self) -> list[str]:
        return [label for label in CLASSES if any(label in told for told in self.outcomes.values())]

    def rows(self) -> Iterator[str]:
        """A row for each op named by `npukit ops`, and each compared op."""
        more = ["node tests"] if self.nodes else []
        yield _row(["operator", "engine", *more, *(CLASSES[label] for label in self.classes)])
        yield _row(["---"] * (2 + len(more) + len(self.classes)))
        for op in self._named:
            told = self.outcomes.get(op, {})
            cells = (_cell(told.get(label, {})) for label in self.classes)
            nodes = [self.nodes.get(op, "")] if self.nodes else []
            yield _row([f"`{op}`", self.engines.get(op, ""), *nodes, *cells])

    @property
    def unproved(self) -> list[str]:
        return sorted(self.read - {*self._named})

    def of_engines(self, engines: Sequence[str]) -> list[str]:
        """The operators whose first engine in the order of `ORDER` is given; `°`: no comparison."""
        first = {op: min(self.engines.get(op, "").split(", "), key=ORDER.index) for op in self._named}
        found = (op for op in self._named if first[op] in engines)
        return [f"`{op}`{'' if {op} & {*self.outcomes, *self.nodes} else '°'}" for op in found]

    @property
    def _named(self) -> list[str]:
        return sorted({*self.engines, *self.outcomes, *self.nodes}, key=str.lower)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(told: Mapping[str, int]) -> str:
    """The number of compared networks, with `=` if all are equal, and `†` if any has a listed difference."""
    if not told:
        return ""
    sign = "= " if set(told) == {EQUAL} else ""
    return f"{sign}{sum(told.values())}{' †' if LISTED in told else ''}"


ENGINES = {"mac_array": "MAC array", "cpu": "core"}
ORDER = ("MAC array", "core", "loops", "")


def engines(form: str, kinds: Sequence[Mapping[str, Any]], measured: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The engines of each op: of the kinds that name the op, otherwise of the kinds in networks of the op alone."""
    of_kind = {kind["name"]: "loops" if kind["name"] == "tvm_code" else ENGINES[kind["engines"][0]] for kind in kinds}
    named: dict[str, list[str]] = {}
    for kind in kinds:
        for op in kind["formats"].get(form, ()):
            named.setdefault(op, []).append(kind["name"])
    return {
        op: ", ".join(dict.fromkeys(of_kind[name] for name in found)) for op, found in {**measured, **named}.items()
    }


def node_tests() -> dict[str, str]:
    """Passed and all claimed node tests of ONNX, by op."""
    kinds = [(test.name, test.kind) for test in onnx_nodes.claimed_tests()]
    every, known = Counter(kind for _, kind in kinds), onnx_nodes.listed()
    failed = Counter(kind for name, kind in kinds if name in known)
    return {kind: f"{count - failed[kind]} of {count}" for kind, count in every.items()}


def facts() -> list[Facts]:
    kinds, results = api.ops(board=BOARD), recorded()
    read = {"tflite": {*CONVERTERS, *MERGED}, "onnx": {*known_ops()}, "pytorch": set[str]()}
    return [
        Facts(
            form,
            frozenset(read[form]),
            engines(form, kinds, results["kinds"].get(form, {})),
            results["ops"].get(form, {}),
            node_tests() if form == "onnx" else {},
        )
        for form in FORMS
    ]


def unread() -> dict[str, list[str]]:
    """The standard's operators that the importer does not take, by format."""
    builtin = {name for name in vars(tflite.BuiltinOperator) if name.isupper()} - {"CUSTOM", "DELEGATE"}
    of_onnx = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    return {
        "tflite": sorted(name for name in builtin - {*CONVERTERS, *MERGED} if not name.startswith("PLACEHOLDER")),
        "onnx": sorted(of_onnx - {*known_ops(), *ENDS}),
    }


BLOCK = re.compile(r"(<!-- made: ([\w ]+) -->\n\n).*?(<!-- end -->)", re.S)
"""A part of a page that the module writes."""
PREFIX = "STABLEHLO_"


def blocks() -> dict[str, str]:
    """The parts of the pages, by name."""
    found, results = facts(), recorded()
    return {
        "run": f"Networks: {sum(results['outcomes'].values())}, seeds {results['seeds'][0]} to {results['seeds'][1]}, "
        f"measured at {results['commit']} by\n`python benchmarks/compatibility.py --write`.\n",
        **{f"evidence of {each.form}": _lines(each.rows()) for each in found},
        **{f"operators of {each.form}": "\n".join(map(wrapped, _lists(each))) for each in found},
        "differences": _lines(_by_reason("networks", ((f"`{each.networks}`", each.reason) for each in listed()))),
        "refusals": _lines(_by_reason("networks", ((str(n), why) for why, n in results["refusals"].items()))),
        "failures": _lines(_by_reason("node tests", ((f"`{name}`", why) for name, why in onnx_nodes.listed().items()))),
    }


def page(path: Path, made: Mapping[str, str]) -> str:
    """A page with new parts."""
    return BLOCK.sub(lambda found: f"{found[1]}{made[found[2]]}\n{found[3]}", path.read_text(encoding="utf-8"))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _lists(each: Facts) -> Iterator[str]:
    """Operators by engine, those of the importer alone, and those that are not read."""
    engines = {"Compared": ORDER} if each.form == "pytorch" else {f"**{name}**": (name,) for name in ORDER[:3]}
    without, custom = unread().get(each.form, []), [name_of(op) for op in each.unproved if op.startswith(CUSTOM)]
    names = [name for name in without if not name.startswith(PREFIX)]
    for said, found in (
        *((said, each.of_engines(order)) for said, order in engines.items()),
        ("Custom operators of TFLite Micro and MediaPipe", _quoted(custom)),
        ("Read in some forms, refused in others", _quoted(op for op in each.unproved if not op.startswith(CUSTOM))),
        ("Not read", _quoted(names + [f"{PREFIX}…"] * (len(names) < len(without)))),
    ):
        if found:
            yield f"{said}: {', '.join(found)}.\n"


def _quoted(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def _by_reason(kind: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A row for each reason, with all its names."""
    found: dict[str, list[str]] = {}
    for name, reason in pairs:
        found.setdefault(reason, []).append(name)
    yield from (f"| {kind} | reason |", "|---|---|")
    yield from (f"| {', '.join(names)} | {reason} |" for reason, names in found.items())


def main() -> None:
    made = blocks()
    for path in PAGES:
        text = page(path, made)
        if "--write" in sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif text != path.read_text(encoding="utf-8"):
            sys.exit(f"{path.name} is another page: python benchmarks/compatibility.py --write")


if __name__ == "__main__":
    main()
