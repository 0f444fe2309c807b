"""The paragraph of docs/compatibility.md with the totals of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from differential import evidence
from differential.judge import EQUAL, LISTED, REFUSED, WITHIN
from docs.wrap import wrapped
from helpers import CHECKOUT

RESULTS = CHECKOUT / "benchmarks/differential/results.json"
PAGE = CHECKOUT / "docs/compatibility.md"
PARAGRAPH = re.compile(r"\*\*Random networks\.\*\*.*?\n\n", re.S)
NO_RUN: dict[str, Any] = {"refusals": {}, "outcomes": {}, "ops": {}, "kinds": {}}


def paragraph(figures: Mapping[str, Any]) -> str:
    """The text, with figures if there has been a run."""
    text = (
        "**Random networks.** `make differential` compares networks of one to four ops, of each op, type, "
        "granularity and format, with LiteRT, TFLite Micro, ONNX Runtime and PyTorch. "
        "`tests/differential/listed.toml` has the known faults and limits of the runtimes."
    )
    return wrapped(f"{text}{_counts(figures) if figures['outcomes'] else ''}\n")


def _counts(figures: Mapping[str, Any]) -> str:
    counts, (first, last) = figures["outcomes"], figures["seeds"]
    return (
        f" Of {sum(counts.values())} networks (seeds {first} to {last}, measured at {figures['commit']}) "
        f"{counts.get(EQUAL, 0)} are equal, {counts.get(WITHIN, 0)} within the bounds of this page, "
        f"{counts.get(REFUSED, 0)} refused by the name of an op or tensor, {counts.get(LISTED, 0)} listed. "
        f"{figures['built']} were built, and equal their reference on the emulator."
    )


def write(figures: Mapping[str, Any]) -> None:
    RESULTS.write_text(evidence.text(figures), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PARAGRAPH.sub(lambda _: paragraph(figures) + "\n", text), encoding="utf-8")


def recorded() -> dict[str, Any]:
    return NO_RUN | (json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {})
