"""Energy of a frame, if the board file says what an operation takes. An estimate, and only as good as those numbers."""

from __future__ import annotations

from npukit.board.board import Board
from npukit.measure.links import link_bytes
from npukit.net.cost import macs
from npukit.net.net import CORE, Net
from npukit.plan.ir.plan import Plan


def estimated_nanojoules(board: Board, net: Net, plan: Plan, instructions: int) -> float | None:
    """Products on accelerators, instructions of all cores, bytes times the links they pass. Nothing else is counted."""
    if board.energy is None:
        return None
    products = sum(macs(net, op) for op in net.ops if op.engine != CORE)
    moved = sum(link_bytes(board, net, plan).values()) / plan.frames
    energy = board.energy
    picojoules = (
        products * energy.pj_per_mac + instructions * energy.pj_per_instruction + moved * energy.pj_per_byte_hop
    )
    return round(picojoules / 1000, 3)
