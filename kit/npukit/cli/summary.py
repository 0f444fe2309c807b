"""What a build is, or would be, as a table."""

from __future__ import annotations

from typing import Any

from npukit.cli.terminal import Terminal


def show_summary(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Each op and its engine, then what the whole needs."""
    headings = ("layer", "op", "engine", ">MACs", ">cycles, predicted", "why not accelerated")
    terminal.table(headings, [_row(op) for op in summary["ops"]])
    least = min(pe["free"] for pe in summary["memory"])
    latency = summary["predicted"]["latency_cycles"]
    used = "1 PE" if summary["pes_used"] == 1 else f"{summary['pes_used']} PEs, each"
    terminal.print(f"{used} with at least {least:,} bytes free; {latency:,} cycles predicted")


def _row(op: dict[str, Any]) -> tuple[str, ...]:
    return op["name"], op["op"], op["engine"], f"{op['macs']:,}", f"{op['predicted_cycles']:,}", op["reason"]
