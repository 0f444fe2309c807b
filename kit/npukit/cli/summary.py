"""Table of a build, or of an expected build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from npukit.cli.terminal import Terminal
from npukit.display import IN_MODEL, in_model, milliseconds, of_kilobytes

if TYPE_CHECKING:
    from npukit.project.build_folder import Build

LINE = 1e9
"""Bits a second of a fast line. Faster inputs of a network are reported as a multiple of this rate."""

MORE_CONSTANTS = 1.25
"""Ratio of the kernels' constants to the model's above which both are reported."""

WORST = 3
"""Number of layers listed with the largest errors."""


def show_summary(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print each op with its engine, then the needs of the whole network."""
    counts = (">MACs", ">predicted cycles", of_frame(summary["frames"]))
    headings = ("layer", IN_MODEL, "op", "engine", *counts, "CPU kernel", "why not accelerated")
    spent = {row["name"]: row["cycles"] for row in summary["frame"]}
    rows = [_row(op, spent.pop(op["name"], 0)) for op in summary["ops"]]
    terminal.table(headings, [*rows, *(_no_layer(name, cycles) for name, cycles in spent.items() if cycles)])
    terminal.print(_footprint(summary))
    terminal.print(f"takes {_ends(summary['inputs'])}; gives {_ends(summary['outputs'])}")
    _show_undivided(terminal, summary)
    _show_allowed(terminal, summary)
    if "load" in summary:
        terminal.print(_load(summary))
    if "fullest" in summary:
        terminal.print(_fullest(summary["fullest"]))
    _show_constants(terminal, summary["kernel_constants"])
    show_costs(terminal, summary)
    _show_trials(terminal, summary.get("energy_trials", ()))
    _show_states(terminal, summary)
    _show_quantization(terminal, summary)
    if summary.get("no_renode"):
        terminal.print(f"no project/renode: {summary['no_renode']}")


def _footprint(summary: dict[str, Any]) -> str:
    """Memory of the fullest PE, and predicted time of a frame or batch."""
    pes, cycles, hertz = summary["pes_used"], summary["predicted"]["latency_cycles"], summary["clock_hz"]
    used = "1 PE:" if pes == 1 else f"{pes} PEs, the fullest with"
    memory = ", ".join(
        f"{region['name']} {of_kilobytes(region['used'], region['size'])}" for region in summary["regions"]
    )
    time = f"{milliseconds(cycles, hertz)} ({cycles:,} cycles predicted at {hertz / 1e6:g} MHz)"
    return f"{used} {memory}, {time}"


def _ends(ends: list[dict[str, Any]]) -> str:
    """Inputs or outputs with their types."""
    return ", ".join(f"{end['name']} ({end['type']} {'x'.join(map(str, end['shape'])) or 'scalar'})" for end in ends)


def _show_states(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print the states that the network keeps between frames."""
    states = summary.get("states", [])
    if states:
        terminal.print(f"remembers {_ends(states)}: give it frames in their order; a reset makes it forget")


def _show_undivided(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print how many layers gain nothing from more PEs, if more were allowed."""
    undivided, several = summary["undivided"], max(summary["pes_used"], summary["pes_allowed"] or 1) > 1
    if undivided and several:
        layers = f"{len(undivided)} of {len(summary['ops'])} layers"
        terminal.print(f"{layers} are C that is no loop over rows: each runs on one PE, however many there are")


def _show_constants(terminal: Terminal, told: dict[str, int] | None) -> None:
    """Print the size of the kernels' constants, if much larger than the model's."""
    if told and told["kernels"] > MORE_CONSTANTS * told["model"]:
        sizes = f"{told['kernels']:,} bytes of constants for {told['model']:,} in the model"
        terminal.print(f"kernels chosen for speed have {sizes}; --objective memory chooses those with fewest")


def _show_allowed(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print a line if more PEs are allowed than the board has."""
    allowed, there = summary["pes_allowed"] or 0, summary["pes_of_board"]
    if allowed > there:
        terminal.print(f"--pes {allowed}: {summary['board']} has {there} PE{'s' * (there > 1)}")


def _load(summary: dict[str, Any]) -> str:
    """Load of PEs, links and DRAM under the plan."""
    load, interval = summary["load"], summary["predicted"]["interval_cycles"]
    parts = [f"{interval:,} cycles between frames", f"PEs compute {load['computing']:.0%} of the time"]
    lines = 8 * summary["input_bytes"] * summary["clock_hz"] / (interval or 1) / LINE
    if lines > 1:
        parts.append(f"inputs come at {lines:.1f} Gbit/s, of which 1 Gbit/s carries one in {lines:.0f}")
    if load["busiest_link"]:
        here, there = load["busiest_link"]
        parts.append(f"the busiest link, from PE {here} to {there}, is taken {load['busiest_link_share']:.0%}")
    if load["streamed_bytes"]:
        parts.append(f"{load['streamed_bytes']:,} bytes of constants streamed from DRAM for {summary['frames']} frames")
    return "; ".join(parts)


def show_costs(terminal: Terminal, summary: dict[str, Any], bench: dict[str, Any] | None = None) -> None:
    """Print time, memory and energy of a frame, measured or predicted, if the board file has `[energy]`."""
    from npukit.report.costs import costs_of

    costs = costs_of(summary, bench)
    if costs:
        terminal.table(costs.headings, costs.rows)


def _show_trials(terminal: Terminal, trials: Sequence[str]) -> None:
    """Print the plans from which the plan with least energy was chosen."""
    if trials:
        terminal.print("chosen for least energy, of")
    for trial in trials:
        terminal.print(f"  {trial}")


def _fullest(told: dict[str, int]) -> str:
    """Memory of the fullest PE by kind."""
    kinds = {kind: size for kind, size in told.items() if kind != "pe" and size}
    parts = (f"{kind.replace('_', ' ')} {size:,}" for kind, size in kinds.items())
    return f"bytes of PE {told['pe']}, the fullest: {', '.join(parts)}"


def _show_quantization(terminal: Terminal, summary: dict[str, Any]) -> None:
    """Print the layers with the largest quantisation errors, and the accuracy before and after."""
    worst = sorted(summary.get("quantization", []), key=lambda layer: layer["sqnr_db"])[:WORST]
    if worst:
        layers = ", ".join(f"{layer['name']} {layer['sqnr_db']:g} dB" for layer in worst)
        terminal.print(f"quantised to int8; signal over error is least in {layers}")
    if "accuracy" in summary:
        told = summary["accuracy"]
        shares = f"float {told['float']:.1%}, int8 {told['int8']:.1%}"
        terminal.print(f"accuracy on the {told['cases']} calibration cases: {shares}")


def of_frame(frames: int) -> str:
    """Heading of the cycles that add up to a frame or batch."""
    return f">of the {'frame' if frames == 1 else f'batch of {frames:,}'}"


def _no_layer(name: str, cycles: int) -> tuple[str, ...]:
    return name, "", "", "", "", "", f"{cycles:,}", "", ""


def _row(op: dict[str, Any], spent: int) -> tuple[str, ...]:
    counts = (f"{op['macs']:,}", f"{op['predicted_cycles']:,}", f"{spent:,}")
    engine = ", ".join(filter(None, (op["engine"], op["choice"])))
    return op["name"], in_model(op["title"]), op["op"], engine, *counts, op["kernel"] or "", op["reason"]


def show_modified(terminal: Terminal, *builds: Build) -> None:
    """Print which files of builds were changed by hand."""
    for build in builds:
        if build.modified is not None:
            terminal.print(f"{build.folder}, modified by hand: {', '.join(build.modified) or 'nothing'}")


def told_of(build: Build) -> dict[str, Any]:
    """Files of a build that were changed by hand, for a verb's JSON."""
    return {} if build.modified is None else {"modified": list(build.modified)}
