"""Summary of a build, or of an expected build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from npukit.cli.terminal import Terminal
from npukit.display import IN_MODEL, in_model, shares

if TYPE_CHECKING:
    from npukit.project.build_folder import Build

LINE = 1e9
"""Bits a second of a fast line. Faster inputs of a network are reported as a multiple of this rate."""

MORE_CONSTANTS = 1.25
"""Ratio of the kernels' constants to the model's above which both are reported."""

WORST = 3
"""Number of layers listed with the largest errors."""


REASON = "why not accelerated"

LAYER_COLUMNS = ("layer", "engine", ">PEs", ">cycles", ">share", REASON)
"""Columns without --wide where some engine is an accelerator."""
COLUMNS_ON_CORES = ("layer", "op", ">MACs", "kernel", ">cycles", ">share")


def show_summary(terminal: Terminal, summary: dict[str, Any], next_step: str = "") -> None:
    """Print the needs of the whole network and the command to type next, then each layer with its engine."""
    pes = f"{summary['pes_used']} of {summary['pes_of_board']} PEs"
    terminal.print(f"fits: {summary['model']} on {summary['board']}, {pes}")
    show_costs(terminal, summary)
    _show_allowed(terminal, summary)
    _show_undivided(terminal, summary)
    _show_constants(terminal, summary["kernel_constants"])
    _show_trials(terminal, summary.get("energy_trials", ()))
    _show_states(terminal, summary)
    _show_quantization(terminal, summary)
    if summary.get("no_renode"):
        terminal.print(f"no project/renode: {summary['no_renode']}")
    if next_step:
        terminal.print(f"next: {next_step}")
    _show_layers(terminal, summary)
    terminal.print(f"inputs: {_ends(summary['inputs'])}; outputs: {_ends(summary['outputs'])}")
    if terminal.wide and "load" in summary:
        terminal.print(_load(summary))
    if terminal.wide and "fullest" in summary:
        terminal.print(_fullest(summary["fullest"]))


def _show_layers(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print the rows that add up to the frame. Rows of zero cycles only with --wide."""
    from npukit.net.net import CORE

    ops, several = {op["name"]: op for op in summary["ops"]}, summary["pes_used"] > 1
    spent = dict.fromkeys(ops, 0) | {row["name"]: row["cycles"] for row in summary["frame"]}
    rows = [
        (*_op_cells(name, ops.get(name), several), f"{cycles:,}", f"{share:.1f} %", ops.get(name, {}).get("reason", ""))
        for (name, cycles), share in zip(spent.items(), shares([*spent.values()]), strict=True)
        if cycles or (terminal.wide and name in ops)
    ]
    headings = ("layer", IN_MODEL, "op", "engine", "kernel", ">MACs", ">PEs", ">cycles alone", ">cycles", ">share")
    accelerated = any(op["engine"] != CORE for op in summary["ops"])
    terminal.print()
    terminal.table((*headings, REASON), rows, LAYER_COLUMNS if accelerated else COLUMNS_ON_CORES)


def _op_cells(name: str, op: dict[str, Any] | None, several: bool) -> tuple[str, ...]:
    """The cells of a layer's row without its cycles of the frame."""
    if op is None:
        return name, *[""] * 7
    engine = ", ".join(filter(None, (op["engine"], op["choice"])))
    counts = (f"{op['macs']:,}", str(len(op["pes"])) if several else "", f"{op['predicted_cycles']:,}")
    return name, in_model(op["title"]), op["op"], engine, op["kernel"] or "", *counts


def _ends(ends: list[dict[str, Any]]) -> str:
    """Inputs or outputs with their types."""
    return ", ".join(f"{end['name']} ({end['type']} {'x'.join(map(str, end['shape'])) or 'scalar'})" for end in ends)


def _show_states(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print the states that the network keeps between frames."""
    states = summary.get("states", [])
    if states:
        terminal.print(f"keeps state {_ends(states)} between frames, so frames come in order; a reset clears it")


def _show_undivided(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print how many layers gain nothing from more PEs, if more were allowed."""
    undivided, several = summary["undivided"], max(summary["pes_used"], summary["pes_allowed"] or 1) > 1
    if undivided and several:
        layers = f"{len(undivided)} of {len(summary['ops'])} layers"
        terminal.print(f"{layers} run on one PE each, because their C is no loop over rows")


def _show_constants(terminal: Terminal, told: dict[str, int] | None) -> None:
    """Print the size of the kernels' constants, if much larger than the model's."""
    if told and told["kernels"] > MORE_CONSTANTS * told["model"]:
        sizes = f"{told['kernels']:,} bytes of constants for {told['model']:,} in the model"
        terminal.print(f"kernels chosen for speed have {sizes}; --objective memory chooses the smallest")


def _show_allowed(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print a line if more PEs are allowed than the board has."""
    allowed, there = summary["pes_allowed"] or 0, summary["pes_of_board"]
    if allowed > there:
        terminal.print(f"--pes {allowed}: {summary['board']} has {there} PE{'s' * (there > 1)}")


def _load(summary: dict[str, Any]) -> str:
    """Load of PEs, links and DRAM under the plan."""
    load, interval = summary["load"], summary["predicted"]["interval_cycles"]
    parts = [f"interval {interval:,} cycles", f"PEs compute {load['computing']:.0%} of the time"]
    lines = 8 * summary["input_bytes"] * summary["clock_hz"] / (interval or 1) / LINE
    if lines > 1:
        parts.append(f"inputs need {lines:.1f} Gbit/s; a link of 1 Gbit/s carries one frame in {lines:.0f}")
    if load["busiest_link"]:
        here, there = load["busiest_link"]
        parts.append(f"the busiest link, from PE {here} to {there}, is {load['busiest_link_share']:.0%} busy")
    if load["streamed_bytes"]:
        parts.append(f"{load['streamed_bytes']:,} bytes of constants streamed from DRAM for {summary['frames']} frames")
    return "; ".join(parts)


def show_costs(terminal: Terminal, summary: dict[str, Any], bench: dict[str, Any] | None = None) -> None:
    """Print time, memory and energy of a frame, measured or predicted; with --wide each consumer of energy."""
    from npukit.report.costs import costs_of

    costs = costs_of(summary, bench)
    terminal.table(costs.headings, [*costs.rows, *(costs.parts if terminal.wide else ())])


def _show_trials(terminal: Terminal, trials: Sequence[str]) -> None:
    """Print the plans from which the plan with least energy was chosen."""
    if trials:
        terminal.print("plans compared for energy:")
    for trial in trials:
        terminal.print(f"  {trial}")


def _fullest(told: dict[str, int]) -> str:
    """Memory of the fullest PE by kind."""
    kinds = {kind: size for kind, size in told.items() if kind != "pe" and size}
    parts = (f"{kind.replace('_', ' ')} {size:,}" for kind, size in kinds.items())
    return f"memory of PE {told['pe']}, the fullest, in bytes: {', '.join(parts)}"


def _show_quantization(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print the layers with the largest quantisation errors, and the accuracy before and after."""
    worst = sorted(summary.get("quantization", []), key=lambda layer: layer["sqnr_db"])[:WORST]
    if worst:
        layers = ", ".join(f"{layer['name']} {layer['sqnr_db']:g} dB" for layer in worst)
        terminal.print(f"quantised to int8; lowest signal-to-noise ratio: {layers}")
    if "accuracy" in summary:
        told = summary["accuracy"]
        shares = f"float {told['float']:.1%}, int8 {told['int8']:.1%}"
        terminal.print(f"accuracy on the {told['cases']} calibration cases: {shares}")


def show_modified(terminal: Terminal, *builds: Build) -> None:
    """Print which files of builds were changed by hand."""
    for build in builds:
        if build.modified is not None:
            terminal.print(f"{build.folder}, modified by hand: {', '.join(build.modified) or 'nothing'}")


def told_of(build: Build) -> dict[str, Any]:
    """Files of a build that were changed by hand, for a verb's JSON."""
    return {} if build.modified is None else {"modified": list(build.modified)}
