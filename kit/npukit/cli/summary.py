"""Summary of a build, or of an expected build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
COLUMNS_ON_CORES = ("layer", "kernel", ">MACs", ">cycles", ">share")


def show_summary(terminal: Terminal, summary: dict[str, Any], next_step: str = "") -> None:
    """Print the needs of the whole network and the command to type next, then each layer with its engine."""
    pes = f"{summary['pes_used']} of {summary['pes_of_board']} PEs"
    terminal.print(f"fits: {summary['model']} on {summary['board']}, {pes}")
    show_costs(terminal, summary)
    for remark in (*_remarks(summary), *_quantization(summary)):
        terminal.print(remark)
    if summary.get("no_renode"):
        terminal.print(f"no project/renode: {summary['no_renode']}")
    if next_step:
        terminal.print(f"next: {next_step}")
    _show_layers(terminal, summary)
    terminal.print(f"inputs: {_ends(summary['inputs'])}; outputs: {_ends(summary['outputs'])}")
    if terminal.wide and "load" in summary:
        terminal.print(_load(summary))
    if terminal.wide and "fullest" in summary:
        kinds = {kind: size for kind, size in summary["fullest"].items() if kind != "pe" and size}
        parts = (f"{kind.replace('_', ' ')} {size:,}" for kind, size in kinds.items())
        terminal.print(f"memory of PE {summary['fullest']['pe']}, the fullest, in bytes: {', '.join(parts)}")


def _remarks(summary: dict[str, Any]) -> Iterator[str]:
    """Lines on PEs, layers that PEs cannot share, constants, energy and states, where there is something to say."""
    allowed, there = summary["pes_allowed"] or 0, summary["pes_of_board"]
    if allowed > there:
        yield f"--pes {allowed}: {summary['board']} has {there} PE{'s' * (there > 1)}"
    if summary["undivided"] and max(summary["pes_used"], allowed) > 1:
        layers = f"{len(summary['undivided'])} of {len(summary['ops'])} layers"
        yield f"{layers} run on one PE each, because their C is no loop over rows"
    constants = summary["kernel_constants"]
    if constants and constants["kernels"] > MORE_CONSTANTS * constants["model"]:
        sizes = f"{constants['kernels']:,} bytes of constants for {constants['model']:,} in the model"
        yield f"kernels chosen for speed have {sizes}; --objective memory chooses the smallest"
    if trials := summary.get("energy_trials"):
        yield from ("plans compared for energy:", *(f"  {trial}" for trial in trials))
    yield from summary.get("remarks", ())
    if states := summary.get("states"):
        yield f"keeps state {_ends(states)} between frames, so frames come in order; a reset clears it"


def _quantization(summary: dict[str, Any]) -> Iterator[str]:
    """Lines on the layers with the largest quantisation errors, and the accuracy before and after."""
    worst = sorted(summary.get("quantization", []), key=lambda layer: layer["sqnr_db"])[:WORST]
    if reached := summary.get("reached"):
        cases = (
            "the only case, also calibrated with" if reached["alone"] else f"{len(reached['cases'])} cases held back"
        )
        yield f"quantised: outputs {reached['db']:g} dB from float on {cases}; target {reached['target_db']:g} dB"
        yield from (f"  {step}" for step in reached["steps"])
    if worst:
        yield f"quantised to int8; lowest signal-to-noise ratio: {', '.join(map(_layer_error, worst))}"
    if accuracy := summary.get("accuracy"):
        shares = f"float {accuracy['float']:.1%}, int8 {accuracy['int8']:.1%}"
        yield f"accuracy on the {accuracy['cases']} calibration cases: {shares}"


def _layer_error(layer: dict[str, Any]) -> str:
    """The errors of a layer, and the steps of the search for it."""
    done = "".join(f", {step}" for step in layer["done"])
    return f"{layer['name']} {layer['sqnr_db']:g} dB ({layer['alone_db']:g} dB alone{done})"


def show_tried(terminal: Terminal, tried: Sequence[str]) -> None:
    """Print the candidates of the planner's search by strategy."""
    if tried:
        terminal.print()
        terminal.print("candidates by strategy:")
    for line in tried:
        terminal.print(f"  {line}")


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
    if terminal.wide or not accelerated:
        for reason, count in Counter(filter(None, (_kernel(op)[1] for op in ops.values()))).items():
            terminal.print(f"plain C for {count} layer{'s' * (count > 1)}: {reason}")


def _op_cells(name: str, op: dict[str, Any] | None, several: bool) -> tuple[str, ...]:
    """The cells of a layer's row without its cycles of the frame."""
    if op is None:
        return name, *[""] * 7
    engine = ", ".join(filter(None, (op["engine"], op["choice"])))
    counts = (f"{op['macs']:,}", str(len(op["pes"])) if several else "", f"{op['predicted_cycles']:,}")
    return name, in_model(op["title"]), op["op"], engine, _kernel(op)[0], *counts


def _kernel(op: dict[str, Any]) -> tuple[str, str]:
    """The kernel of an op, and the reason if it is plain C."""
    kernel, _, reason = (op["kernel"] or "").partition(": ")
    return kernel, reason


def _ends(ends: list[dict[str, Any]]) -> str:
    """Inputs or outputs with their types."""
    return ", ".join(f"{end['name']} ({end['type']} {'x'.join(map(str, end['shape'])) or 'scalar'})" for end in ends)


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


def show_modified(terminal: Terminal, *builds: Build) -> None:
    """Print which files of builds were changed by hand."""
    for build in builds:
        if build.modified is not None:
            terminal.print(f"{build.folder}, modified by hand: {', '.join(build.modified) or 'nothing'}")


def told_of(build: Build) -> dict[str, Any]:
    """Files of a build that were changed by hand, for a verb's JSON."""
    return {} if build.modified is None else {"modified": list(build.modified)}
