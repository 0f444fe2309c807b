"""The time of a frame by layer: the report's table of layers, largest share first, and a summary in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from npukit.display import shares
from npukit.net.net import CORE
from npukit.plan.predict.frame_table import MESSAGES, SETUP, from_json

_NO_LAYER = {
    MESSAGES: "from a message's departure to its arrival",
    SETUP: "the firmware's cycles between layers",
}
"""The rows of a frame other than layers."""


@dataclass(frozen=True)
class LayerRow:
    """A row of the table. `spent`: the basis of the shares, in cycles of the frame or in instructions. `predicted` and
    `cycles`: on the PE that spends most on the layer."""

    name: str
    op: str
    engine: str
    kernel: str | None
    pes: int | None
    macs: int | None
    predicted: int | None
    cycles: int | None
    instructions: int | None
    reason: str
    spent: int
    title: str = ""
    """The layer's name in the user's model."""
    sources: tuple[str, ...] = ()
    """`FILE:LINE` of the layer's first call in the project: in C, and in the TIR behind it."""
    share: float = 0.0
    width: float = 0.0


def layer_rows(summary: dict[str, Any], bench: dict[str, Any] | None) -> list[LayerRow]:
    """The rows of a frame as measured, or else as predicted."""
    measured = {layer["name"]: layer for layer in bench["layers"]} if bench else {}
    spent = _spent(summary, bench)
    rows = [_layer(op, measured.get(op["name"], {}), spent.get(op["name"], 0)) for op in summary["ops"]]
    no_layers = ((name, what) for name, what in _NO_LAYER.items() if spent.get(name))
    rows += [LayerRow(name, what, "", None, None, None, None, None, None, "", spent[name]) for name, what in no_layers]
    rows.sort(key=lambda row: -row.spent)
    most = max(rows[0].spent, 1)
    parts = shares([row.spent for row in rows])
    return [
        replace(row, share=part, width=round(100 * row.spent / most, 1)) for row, part in zip(rows, parts, strict=True)
    ]


def time_note(bench: dict[str, Any] | None) -> str:
    """A note on the unit and source of the table's figures."""
    if bench and bench["latency_cycles"] is None:
        return "Instructions of a frame, layer by layer."
    source = "" if bench else "Predicted by the cost model. "
    path = ""
    if adds_up(bench):
        path = " The shares are of the critical path, from the end back to the start: they add up to the whole."
    return f"{source}Cycles of a layer are those of the PE that takes longest for it.{path}"


def adds_up(bench: dict[str, Any] | None) -> bool:
    """True if rows that add up to a frame are known, from the prediction or from an emulator."""
    return bench is None or bool(bench["frame"])


def in_short(summary: dict[str, Any], bench: dict[str, Any] | None) -> str:
    """A sentence or two on the largest row, a remedy, and the share of messages. Empty if no cycles are known."""
    rows = layer_rows(summary, bench)
    if not adds_up(bench):
        return ""
    first = rows[0]
    part = "most" if first.share > 50 else "the largest part"
    name = first.name.capitalize() if first.name in _NO_LAYER else first.name
    takes = f"{name} takes {part} of a {unit_of(summary['frames'])}"
    text = f"{takes}: {first.spent:,} cycles, {first.share:g} %{_remedy(first, summary)}"
    others = {row.name: row for row in rows[1:]}
    if messages := others.get(MESSAGES):
        text += f". {MESSAGES.capitalize()} takes {messages.spent:,} ({messages.share:g} %)"
    return f"{text}{'' if bench else ', as predicted'}."


def unit_of(frames: int) -> str:
    """The unit of work started by the host: a frame or a batch."""
    return "frame" if frames == 1 else f"batch of {frames:,} frames"


def _remedy(row: LayerRow, summary: dict[str, Any]) -> str:
    """A remedy for the largest row, if there is a simple one."""
    if row.name == MESSAGES and summary["frames"] == 1:
        return "; --objective throughput overlaps the messages of a frame with the computing of others"
    elsewhere = any(op["engine"] != CORE for op in summary["ops"])
    if row.engine == CORE and row.reason and elsewhere:
        return f", on the core: {row.reason}"
    return ""


def _spent(summary: dict[str, Any], bench: dict[str, Any] | None) -> Mapping[str, int]:
    """The figure of each row: cycles of the frame if known, else cycles of the slowest PE, or instructions."""
    if bench is None or adds_up(bench):
        return from_json(bench["frame"] if bench else summary["frame"])
    column = "instructions" if bench["latency_cycles"] is None else "cycles"
    return {layer["name"]: layer[column] or 0 for layer in bench["layers"]}


def _layer(op: dict[str, Any], measured: dict[str, Any], spent: int) -> LayerRow:
    return LayerRow(
        name=op["name"],
        op=op["op"],
        engine=op["engine"],
        kernel=op["kernel"],
        pes=len(op["pes"]),
        macs=op["macs"],
        predicted=op["predicted_cycles"],
        cycles=measured.get("cycles", 0),
        instructions=measured.get("instructions"),
        reason=op["reason"],
        spent=spent,
        title=op["title"],
        sources=tuple(op.get("sources", ())),
    )
