"""The page of the operators read by npukit, with the evidence of each.

    python benchmarks/compatibility.py            # fails if docs/compatibility.md is another page
    python benchmarks/compatibility.py --write

Operators come from the importers and from the schemas of the formats, engines from `npukit ops`, outcomes from
`benchmarks/differential/results.json`, node tests from ONNX's package and `tests/frontend/onnx_node_failures.txt`.
"""

from __future__ import annotations

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

PAGE = CHECKOUT / "docs/compatibility.md"
BOARD = "pe-mesh"
TITLES = {"tflite": "TFLite", "onnx": "ONNX", "pytorch": "PyTorch, `torch.export`"}
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
        for op in sorted({*self.engines, *self.outcomes, *self.nodes}, key=str.lower):
            told = self.outcomes.get(op, {})
            cells = (_cell(told.get(label, {})) for label in self.classes)
            nodes = [self.nodes.get(op, "")] if self.nodes else []
            yield _row([f"`{op}`", self.engines.get(op, ""), *nodes, *cells])

    @property
    def unproved(self) -> list[str]:
        return sorted(self.read - {*self.engines, *self.outcomes, *self.nodes})


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(told: Mapping[str, int]) -> str:
    """The number of compared networks, with `=` if all are equal, and `†` if any has a listed difference."""
    if not told:
        return ""
    sign = "= " if set(told) == {EQUAL} else ""
    return f"{sign}{sum(told.values())}{' †' if LISTED in told else ''}"


ENGINES = {"mac_array": "MAC array", "cpu": "core"}


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
    read = {
        "tflite": {*CONVERTERS, *MERGED},
        "onnx": set(known_ops()),
        "pytorch": set[str](),
    }
    return [
        Facts(
            form,
            frozenset(read[form]),
            engines(form, kinds, results["kinds"].get(form, {})),
            results["ops"].get(form, {}),
            node_tests() if form == "onnx" else {},
        )
        for form in TITLES
    ]


def unread() -> dict[str, list[str]]:
    """The standard's operators that the importer does not take, by format."""
    builtin = {name for name in vars(tflite.BuiltinOperator) if name.isupper()} - {"CUSTOM", "DELEGATE"}
    of_onnx = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    return {
        "tflite": sorted(name for name in builtin - {*CONVERTERS, *MERGED} if not name.startswith("PLACEHOLDER")),
        "onnx": sorted(of_onnx - {*known_ops(), *ENDS}),
    }


INTRODUCTION = """# Which models npukit reads

`npukit fit MODEL` gives the answer for a file: each op with its engine, or the name of the first op
that npukit does not read. The tables of this page have all operators, and the comparisons behind
each. `npukit ops` prints the same operators by the kind of op in npukit. `docs/models.md` describes
types, quantisation and exceptions.

An operator that npukit does not read has three ways out:

- Export otherwise: the newest opset, QDQ form, or float with `--calibration`.
- Give C for the op: `--custom NAME=FILE.c` (`docs/models.md`, "Custom ops").
- Add the op to npukit: five short files (`docs/architecture.md`, "Add an op").

A number is a count of random networks with the operator, alone or in a chain, that `make
differential` compared with another runtime (LiteRT, TFLite Micro, ONNX Runtime, PyTorch). Scales by
tensor and by channel are drawn equally often. `= 4`: all four are equal bit for bit. `4`: some
differ within the bounds of `docs/models.md`, mostly by a step. `†`: some differ by a known fault of
a runtime, see the end of the page. An empty cell: the operator had no network of the type.

- *Engine*: on `pe-mesh` in int8. `MAC array`: the accelerator for all shapes that it takes. `core`:
  a kernel on the core. `loops`: C that TVM prints, on the core.
- *`--float`*, *`--calibration`*: a float file, computed in float, or quantised by npukit.
- *Node tests*: ONNX's own tests of the operator that pass through the generated C
  (`make onnx-nodes`).
"""


def page() -> str:
    found, results = facts(), recorded()
    parts = [INTRODUCTION, f"{_of_run(results)}\n"]
    for each in found:
        parts += [f"## {TITLES[each.form]}\n", *_section(each)]
    return "\n".join([*parts, "## Known differences and refusals\n", *_limits(results)])


def _of_run(results: Mapping[str, Any]) -> str:
    count, (first, last) = sum(results["outcomes"].values()), results["seeds"]
    return wrapped(
        f"Networks: {count}, seeds {first} to {last}, measured at {results['commit']}. "
        "`python benchmarks/compatibility.py --write` writes the page.\n"
    ).rstrip()


def _section(each: Facts) -> Iterator[str]:
    yield "\n".join(each.rows()) + "\n"
    custom = [name_of(op) for op in each.unproved if op.startswith(CUSTOM)]
    plain = [op for op in each.unproved if not op.startswith(CUSTOM)]
    without = unread().get(each.form, [])
    for said, names in (
        ("Custom operators of TFLite Micro and MediaPipe", custom),
        ("In the importer, without a comparison on this page; npukit refuses some forms of these by name", plain),
        ("Not read", without),
    ):
        if names:
            yield wrapped(f"{said}: {', '.join(f'`{name}`' for name in names)}.\n")
    if each.form == "pytorch":
        yield wrapped("PyTorch decomposes other operators into simpler ones. npukit names an operator without them.\n")


def _limits(results: Mapping[str, Any]) -> Iterator[str]:
    rows = ["| networks | difference |", "|---|---|"]
    rows += [f"| `{each.networks}` | {each.reason} |" for each in listed()]
    yield "\n".join(rows) + "\n"
    rows = ["| refused | networks |", "|---|--:|"]
    rows += [f"| {reason} | {count} |" for reason, count in results["refusals"].items()]
    yield "\n".join(rows) + "\n"
    rows = ["| node test of ONNX | reason |", "|---|---|"]
    rows += [f"| `{name}` | {reason} |" for name, reason in onnx_nodes.listed().items()]
    yield "\n".join(rows) + "\n"


def main() -> None:
    made = page()
    if "--write" in sys.argv[1:]:
        PAGE.write_text(made, encoding="utf-8")
    elif made != PAGE.read_text(encoding="utf-8"):
        sys.exit(f"{PAGE.name} is another page: python benchmarks/compatibility.py --write")


if __name__ == "__main__":
    main()
