"""Load of a plan by simulation: engines, links, DRAM; the parts too slow for a requested rate; and the use of a PE's
memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.net.ops import Transpose
from npukit.plan.ir.plan import PAGES, Buffer, PePlan, Plan
from npukit.plan.predict.memory import control_bytes
from npukit.plan.predict.noc import message_bytes
from npukit.plan.predict.simulate import ROUNDS, simulate
from npukit.plan.tensors.routes import Link


@dataclass(frozen=True)
class Load:
    """Shares of the run time of consecutive batches.

    `computing`: the average over the PEs, core or accelerator. `busiest_link`: the PEs at both ends of the link, None
    on a single PE.
    """

    computing: float
    busiest_link: tuple[int, int] | None
    busiest_link_share: float
    streamed_bytes: int
    """Bytes of constants from DRAM per batch."""
    fetched_bytes: int
    """Bytes of inputs from DRAM per batch."""


def load_of(net: Net, board: Board, plan: Plan) -> Load:
    seen = simulate(net, board, plan, ROUNDS)
    time = max(seen.frame_ends[-1], 1)
    link, busy = max(seen.links.items(), key=lambda item: (item[1], item[0]), default=(None, 0))
    fetched = _from_dram(net, plan)
    return Load(
        computing=round(sum(seen.computing.values()) / (time * len(plan.pes)), 4),
        busiest_link=(link.source, link.destination) if link else None,
        busiest_link_share=round(busy / time, 4),
        streamed_bytes=fetched[False],
        fetched_bytes=fetched[True],
    )


def _from_dram(net: Net, plan: Plan) -> Counter[bool]:
    """Bytes from DRAM per batch: inputs at True, constants at False."""
    found: Counter[bool] = Counter()
    for message in plan.messages:
        if message.source_pe == DRAM:
            found[bool(message.tensor)] += message_bytes(net, message)
    return found


_Budget = tuple[str, int, str]
"""A part of the board, its cycles per frame, and the remedy for too many cycles."""


def refuse_missed_rate(net: Net, board: Board, plan: Plan, frames_per_second: float) -> None:
    """Raise DoesNotFit if the plan misses the rate. The error names the shortfall and the parts too slow in any order
    of steps."""
    allowed, interval = int(board.core.clock_hz / frames_per_second + 1e-6), plan.predicted.interval_cycles
    if interval <= allowed:
        return
    budgets = list(_budgets(net, board, plan))
    remedies = [remedy for _, cycles, remedy in budgets if cycles > allowed]
    raise DoesNotFit(
        f"{net.name} on {plan.pes_used} PE{'s' if plan.pes_used > 1 else ''} of {board.name} gives"
        f" {board.core.clock_hz / interval:,.0f} frames a second, not {frames_per_second:,.0f}:"
        f" {interval:,} cycles between frames, {interval - allowed:,} more than may be",
        facts=[
            f"{part}: {cycles:,} cycles a frame of {allowed:,}, {cycles / allowed:.0%}"
            + (", which cannot hold" if cycles > allowed else "")
            for part, cycles, _ in budgets
        ],
        tries=[*dict.fromkeys(remedies), *_other_ways(net, board, plan)],
    )


def _budgets(net: Net, board: Board, plan: Plan) -> Iterator[_Budget]:
    """The load of the busiest PE, of the busiest link within a chip, of the busiest border, and of the DRAM."""
    seen, frames = simulate(net, board, plan, ROUNDS), ROUNDS * plan.frames_of_all
    pe, busy = max(seen.computing.items(), key=lambda item: (item[1], -item[0]))
    yield f"PE {pe} computes", busy // frames, "more PEs: a larger --pes, or a larger board"
    yield from _links(board, seen.links, frames)
    moved = _from_dram(net, plan).total()
    if board.noc and moved:
        rate = board.noc.dram_bytes_per_cycle
        cycles = moved // plan.frames_of_all // rate
        yield "DRAM moves constants and inputs", cycles, f"a DRAM of more than {rate} bytes a cycle"


def _links(board: Board, links: Mapping[Link, int], frames: int) -> Iterator[_Budget]:
    for border in (False, True):
        own = [(busy, link) for link, busy in links.items() if link.border is border]
        if not own or board.noc is None:
            continue
        busy, link = max(own)
        lanes = board.noc.chip_links_per_border if border else 1
        rate = board.noc.chip_link_bytes_per_cycle if border else board.noc.port_bytes_per_cycle
        name = f"the {'border' if border else 'link'} from PE {link.source} to {link.destination}"
        yield name, busy // frames // lanes, f"links of more than {rate} bytes a cycle at {name}"


def _other_ways(net: Net, board: Board, plan: Plan) -> Iterator[str]:
    """Remedies beside a larger board: an image with channels together, frames side by side, a lower rate."""
    to_pixels = Transpose((0, 2, 3, 1))  # from image planes, ONNX's order, to pixels with their channels together
    images = {op.name: op.inputs[0] for op in net.ops if op.inputs[0] in net.inputs and op.attributes == to_pixels}
    for op, name in images.items():
        spent = max(sum(s.predicted_cycles for s in pe.computes() if s.op == op) for pe in plan.pes) // plan.frames
        if spent:
            yield f"--preprocess 'layout=NHWC input={name}' saves {spent:,} cycles a frame of {op}"
    if plan.objective != "throughput" and board.noc and not net.states:
        yield "--objective throughput: frames side by side"
    yield "a lower rate, or a faster clock"


def kinds_of(plan: Plan, pe: PePlan) -> dict[str, int]:
    """The bytes of one PE of the plan by kind. Their sum is the sum of the PE's `MemoryUse`.

    The arena is counted at the step with the most bytes in use. Arena bytes unused at that step are `activations` too.
    """
    use, orders, records = pe.memory, pe.orders, control_bytes(len(pe.tiles))
    live, computes = _live_at_the_fullest_step(pe), list(pe.computes())
    landed = {landing.view.buffer for m in plan.messages for landing in m.landings if landing.pe == pe.pe}
    received = sum(_not_computed(pe, buffer) for buffer in live if buffer.tensor and buffer.name in landed)
    streamed, scratches = {step.constants for step in computes}, {step.scratch for step in computes}
    weight_tiles, scratch = (sum(b.bytes for b in live if b.name in names) for names in (streamed, scratches))
    pages = pe.by_name[PAGES].bytes if PAGES in pe.by_name else 0
    return {
        "code": use.code - use.variables,
        "variables": use.variables,  # constants copied near at start-up; once linked, also the firmware's own
        "constants": use.constants - orders.bytes,
        "commands": orders.commands,
        "descriptors": orders.descriptors,
        "table": orders.table + pages,
        "records": records,
        "activations": use.activations + sum(use.banks) - records - received - weight_tiles - scratch - pages,
        "receive_buffers": received,  # halos and other received parts in the buffers of tiles included
        "weight_tiles": weight_tiles,
        "scratch": scratch,
        "stack": use.stack,
    }


def _not_computed(pe: PePlan, buffer: Buffer) -> int:
    """Bytes of a tensor's buffer that the PE does not compute itself: halos, gathered parts."""
    made = {step.output.box for step in pe.computes() if step.output.buffer == buffer.name}
    elements = max(buffer.box.elements, 1)
    return buffer.bytes * max(elements - sum(box.elements for box in made), 0) // elements


def _live_at_the_fullest_step(pe: PePlan) -> list[Buffer]:
    """Buffers live at the step with the most bytes in use. Of several at one offset only the largest counts: of a
    tensor and its reshapes, the tensor."""
    by_size, fullest = [*reversed(pe.buffers)], list[Buffer]()
    by_size.sort(key=lambda buffer: buffer.bytes)
    for step in sorted({buffer.first for buffer in pe.buffers}):
        live = {buffer.offset: buffer for buffer in by_size if buffer.first <= step <= buffer.last}
        fullest = max(fullest, [*live.values()], key=lambda buffers: sum(buffer.bytes for buffer in buffers))
    return fullest
