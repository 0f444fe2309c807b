"""An account of a chip's cycles during a batch: how much of the arrays' peak goes to products, how much is lost, and
where.

    python benchmarks/large/account.py MODEL... [--board pe-mesh-152] [--pes COUNT] [--preprocess layout=NHWC]

The plan for throughput is simulated. A row is a kind of layer, a column a use of cycles, in percent of the cycles of
all PEs. The rows below count cycles in which neither a PE's array nor its core computes, by the cause of the wait.
"""

from __future__ import annotations

import argparse
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from planner_constants import prepared, with_models

from npukit.accel.geometry import Plane, depth_of, window_of
from npukit.accel.mac_array.cycles import RAW_WRITE_BACK, WRITE_BACK, Figures, along_pixels, ceil_div
from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import CORE, Net, Op
from npukit.pipeline import plan_on
from npukit.plan.ir.plan import Compute, Plan
from npukit.plan.predict.simulate import predicted_timeline
from npukit.plan.predict.timeline import WAIT, Timeline, TimeSlice
from npukit.progress import Silent

MACS_A_CYCLE = 64
COLUMNS = ("products", "rounding", "write-back", "operands", "set-up", "port", "core")
FROM_DRAM, FROM_PES, CALLS, OUTSIDE = IDLE = (
    "waits for DRAM",
    "waits for other PEs",
    "calls, starts",
    "PEs in no group",
)


def account(net: Net, board: Board, plan: Plan) -> tuple[Counter[tuple[str, str]], int]:
    """The cycles of all PEs in a batch by row and column, and their total."""
    timeline, found = predicted_timeline(net, board, plan), Counter[tuple[str, str]]()
    ops = {op.name: op for op in net.ops}
    slot = board.accelerator_named("mac_array")
    assert slot
    figures, by_pe = Figures.of(slot), defaultdict[int, list[TimeSlice]](list)
    for each in timeline.slices:
        by_pe[each.pe].append(each)
    for pe in plan.pes:
        busy = [each for each in by_pe[pe.pe] if each.layer]
        for each in busy:
            step = pe.steps[each.step or 0]
            assert isinstance(step, Compute)
            found.update(_of_tile(net, ops[each.layer], step, each.cycles, figures))
        found.update(_idle(timeline, pe.pe, by_pe[pe.pe]))
    found[OUTSIDE, ""] += (board.pe_count - len(plan.pes)) * timeline.end
    return found, timeline.end * board.pe_count


def _of_tile(net: Net, op: Op, step: Compute, cycles: int, figures: Figures) -> dict[tuple[str, str], int]:
    """The cycles of a tile, or of a piece of a tile, by row and column."""
    if step.engine == CORE:
        return {("the core's", "core"): cycles}
    main, plane = op.parts[0], Plane.of(step.output.box)
    taps, blocks = window_of(net, main).taps, ceil_div(plane.channels, figures.width)
    outputs, setup = plane.pixels * plane.channels, figures.setup_cycles
    if main.kind in ("conv2d", "dense", "sums"):
        depth = depth_of(net, main)
        row = "dense" if main.kind == "dense" else f"{'1 x 1' if taps == 1 else 'wider'}, {_depth(depth)}"
        setup = figures.convolution(1, plane.channels, 0, along_pixels=False, write_back=0)
        pixels_wide = along_pixels(figures, plane, depth)
        axes = (plane.pixels, plane.channels) if pixels_wide else (plane.channels, plane.pixels)
        groups = ceil_div(axes[0], figures.width) * ceil_div(axes[1], figures.lanes)
        work, ideal = groups * depth, outputs * depth // MACS_A_CYCLE
        raw = RAW_WRITE_BACK if main.kind == "sums" else WRITE_BACK
        written = groups * (raw + (WRITE_BACK if len(op.parts) > 1 else 0))
        loads = step.cycles - setup - work - written
    else:
        row = "depthwise" if main.kind == "depthwise_conv2d" else "additions, pools"
        products = outputs * taps if main.kind == "depthwise_conv2d" else 0
        ideal, work, written = products // MACS_A_CYCLE, plane.pixels * blocks * taps, plane.pixels * blocks
        loads, setup = 0, step.cycles - work - written
    parts = (ideal, work - ideal, written, loads, setup, cycles - step.cycles)
    return {(row, column): part for column, part in zip(COLUMNS, parts, strict=False)}


def _depth(depth: int) -> str:
    return "at most 1024 products" if depth <= 1024 else "more products"


def _idle(timeline: Timeline, pe: int, slices: Sequence[TimeSlice]) -> Counter[tuple[str, str]]:
    """The cycles in which a PE computes nothing, by the source of the transfer that ended each wait: DRAM or another
    PE."""
    busy = _merged(each for each in slices if each.layer)
    if not busy:
        return Counter({(OUTSIDE, ""): timeline.end})
    found = Counter[tuple[str, str]]()
    arrived = sorted((each.end, each.source) for each in timeline.movements if each.target == pe)
    for wait in (each for each in slices if each.name == WAIT):
        last = bisect_right(arrived, (wait.end, inf)) - 1
        row = FROM_DRAM if last >= 0 and arrived[last][1] >= DRAM else FROM_PES
        found[row, ""] += wait.cycles - sum(max(min(b, wait.end) - max(a, wait.start), 0) for a, b in busy)
    found[CALLS, ""] += timeline.end - sum(stop - start for start, stop in busy) - found.total()
    return found


def _merged(slices: Iterable[TimeSlice]) -> list[tuple[int, int]]:
    """The union of the slices as disjoint spans, in order."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted((each.start, each.end) for each in slices):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def _told(found: Counter[tuple[str, str]], cycles: int) -> Iterator[str]:
    """The lines of the account as a Markdown table, in percent."""
    yield "| | " + " | ".join((*COLUMNS, "all")) + " |"
    yield "|---|" + "--:|" * (len(COLUMNS) + 1)
    rows = sorted({row for row, _ in found}, key=lambda row: (row in IDLE, row))
    for row in rows:
        parts = [found[row, column] for column in ("", *COLUMNS)]
        cells = [f"{part / cycles:.1%}" if part else "" for part in (*parts[1:], sum(parts))]
        yield f"| {row} | " + " | ".join(cells) + " |"
    sums = [sum(found[row, column] for row in rows) for column in COLUMNS]
    yield "| all | " + " | ".join(f"{part / cycles:.1%}" for part in (*sums, found.total())) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = with_models(parser)
    board, options, nets = prepared(given, "throughput", "pe-mesh-152")
    for net in nets:
        compiled = plan_on(board, net, options, Silent())
        print(f"{compiled.net.name}: {compiled.plan.headline()}\n")
        print(*_told(*account(compiled.net, board, compiled.plan)), "", sep="\n", flush=True)


if __name__ == "__main__":
    main()
