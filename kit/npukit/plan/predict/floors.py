"""Floors: cycles that the frames of a plan need at least, by three bounds of different causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.board.noc import DRAM, Packets
from npukit.net.net import Net
from npukit.net.ops.table import macs
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.noc import Departure, Flight, Links, link_bytes, message_bytes, port_cycles
from npukit.plan.predict.simulate import ROUNDS, simulate

FLOOR_LABELS = {"products": "products over peak", "messages": "bytes over links", "path": "critical path"}

Floors = Mapping[str, Mapping[str, int]]
"""Cycles of `latency` (of a batch) and `interval` at least.

`products`: all products of accelerators at the peak rate of all PEs in use; 0 without a peak rate. `messages`: the
bytes of the busiest link, SRAM port or DRAM at its full rate. `path`: the plan with messages that take no time.
"""


def floors_of(net: Net, board: Board, plan: Plan, engines: Mapping[str, Accelerator]) -> Floors:
    """The floors of a plan."""
    seen = simulate(net, board, plan, ROUNDS, _AtOnce(board) if board.noc else None)
    frames, moved = plan.frames_of_all, _cycles_of_bytes(net, board, plan)
    products = _cycles_of_products(net, plan, engines)
    batch = {"products": products * frames, "messages": moved, "path": seen.latency_cycles}
    interval = {"products": products, "messages": moved / frames, "path": seen.interval_cycles / frames}
    return {
        name: {key: round(cycles) for key, cycles in each.items()}
        for name, each in (("latency", batch), ("interval", interval))
    }


def _cycles_of_products(net: Net, plan: Plan, engines: Mapping[str, Accelerator]) -> float:
    """Cycles of a frame's products at the peak of all PEs."""
    peaks = {name: engine.abilities.products_per_cycle * plan.pes_used for name, engine in engines.items()}
    return sum(macs(net, op) / peaks[op.engine] for op in net.ops if peaks.get(op.engine))


def _cycles_of_bytes(net: Net, board: Board, plan: Plan) -> float:
    """Cycles of the busiest link, SRAM port or DRAM in a batch."""
    noc = board.noc
    if noc is None:
        return 0
    border = noc.chip_link_bytes_per_cycle * noc.chip_links_per_border
    links = [
        moved / (border if link.border else noc.port_bytes_per_cycle)
        for link, moved in link_bytes(board, net, plan).items()
    ]
    ports = [cycles for place, cycles in port_cycles(noc, net, plan).items() if place < DRAM]
    read = sum(message_bytes(net, each) for each in plan.messages if each.source_pe == DRAM)
    return max([*links, *ports, read / noc.dram_bytes_per_cycle])


class _AtOnce(Links):
    """A network whose messages take no time."""

    def departure(self, start: int, sender: int, source: int, load: Packets) -> Departure:
        return start, start

    def asked(self, sender: int) -> int:
        return 0

    def deliver(
        self, departure: Departure, sender: int, source: int, destinations: Sequence[int], load: Packets
    ) -> Flight:
        return Flight(departure[0], dict.fromkeys(destinations, departure[0]))


def with_measured(told: Floors, latency: int, interval: int) -> list[tuple[str, int, int]]:
    """Rows of a table: each floor, then the cycles of the plan, measured or predicted. Floors of 0 are left out."""
    low, between = told["latency"], told["interval"]
    found = [(label, low[name], between[name]) for name, label in FLOOR_LABELS.items() if low[name]]
    return [*found, ("this plan", latency, interval)]
