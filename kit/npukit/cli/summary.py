"""What a build is, or would be, as a table."""

from __future__ import annotations

from typing import Any

from npukit.cli.terminal import Terminal

WORST = 3
"""How many of the layers with the largest errors are named."""


def show_summary(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Each op and its engine, then what the whole needs."""
    headings = ("layer", "op", "engine", ">MACs", ">cycles, predicted", "why not accelerated")
    terminal.table(headings, [_row(op) for op in summary["ops"]])
    least = min(pe["free"] for pe in summary["memory"])
    latency = summary["predicted"]["latency_cycles"]
    used = "1 PE" if summary["pes_used"] == 1 else f"{summary['pes_used']} PEs, each"
    terminal.print(f"{used} with at least {least:,} bytes free; {latency:,} cycles predicted")
    _show_quantization(terminal, summary)


def _show_quantization(terminal: Terminal, summary: dict[str, Any]) -> None:
    """The layers that quantisation hurt most, and what became of the accuracy."""
    worst = sorted(summary.get("quantization", []), key=lambda layer: layer["sqnr_db"])[:WORST]
    if worst:
        layers = ", ".join(f"{layer['name']} {layer['sqnr_db']:g} dB" for layer in worst)
        terminal.print(f"quantised to int8; signal over error is least in {layers}")
    if "accuracy" in summary:
        told = summary["accuracy"]
        shares = f"float {told['float']:.1%}, int8 {told['int8']:.1%}"
        terminal.print(f"accuracy on the {told['cases']} calibration cases: {shares}")


def _row(op: dict[str, Any]) -> tuple[str, ...]:
    return op["name"], op["op"], op["engine"], f"{op['macs']:,}", f"{op['predicted_cycles']:,}", op["reason"]
