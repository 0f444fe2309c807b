"""A plan for one chip, repeated on equal chips.

For throughput, every equal chip runs the plan of the root's chip on separate frames from the chip's DRAM. The leader of
a chip is the PE in the root's position. The root signals the leader to start a batch, and the leader signals back when
the outputs are in place. Only these signals, inputs and outputs cross a chip's border.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from npukit.board.board import Board, Grid, Mesh
from npukit.plan.ir.plan import Plan, Predicted
from npukit.plan.predict.noc import Links
from npukit.plan.tensors.core_cycles import DOORBELL_CYCLES, WAKE_CYCLES
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import Routes, pes_in_order


def equal_chips(board: Board) -> tuple[int, ...]:
    """The chips equal to the root's chip, with the most PEs in all. The root's chip comes first.

    A PE dead on one chip is unused on all.
    """
    count = board.mesh.pes.count
    home, leader = divmod(board.root_pe, count)
    dead = {chip: _dead_on(board, chip) for chip in range(board.mesh.chips.count)}
    others = [
        chip
        for chip in dead
        if chip != home
        and leader not in dead[chip]
        and _kinds_on(board, chip) == _kinds_on(board, home)
        and _is_reached(board, chip)
    ]
    ordered = [home, *sorted(others, key=lambda chip: (len(dead[chip] | dead[home]), chip))]

    def pes_of(number: int) -> int:
        """PEs in use on the first `number` chips together."""
        return number * (count - len(set[int]().union(*(dead[chip] for chip in ordered[:number]))))

    best = max(range(1, len(ordered) + 1), key=pes_of)
    return (home, *sorted(ordered[1:best]))


def _kinds_on(board: Board, chip: int) -> list[tuple[object, ...]]:
    """The core of each PE of the chip, the memory, and the missing accelerators."""
    count = board.mesh.pes.count
    pes = range(chip * count, (chip + 1) * count)
    lacking = [{name for name, without in board.lacking.items() if pe in without} for pe in pes]
    return [(board.cpu_of(pe), board.memory_bytes_of(pe), lacks) for pe, lacks in zip(pes, lacking, strict=True)]


def chips_to_fill(problem: Problem) -> tuple[int, ...]:
    """The chips filled by the permitted PEs, if several and the root's chip is the board's first; else none."""
    board = problem.board
    chips = equal_chips(board) if board.mesh.chips.count > 1 else ()
    if not chips:
        return ()
    filled = chips[: (problem.max_pes or board.pe_count) // len(pes_in_order(board_of_one(board, chips)))]
    return filled if len(filled) > 1 and filled[0] == 0 else ()


def board_of_one(board: Board, chips: Sequence[int]) -> Board:
    """The board as a single chip, with the PEs and links alive on all of these chips."""
    count = board.mesh.pes.count
    pes = sorted({pe for chip in chips for pe in _dead_on(board, chip)})
    links = sorted({(a % count, b % count) for a, b in board.mesh.dead_links if a // count == b // count in chips})
    mesh = Mesh(chips=Grid(columns=1, rows=1), pes=board.mesh.pes, dead_pes=tuple(pes), dead_links=tuple(links))
    return board.model_copy(update={"mesh": mesh})


def on_chips(board: Board, plan: Plan, chips: Sequence[int]) -> Plan:
    """The plan of one chip on all of these chips, with the cycles of the root's signals added to the batch."""
    cycles = plan.predicted.latency_cycles + _signal_cycles(board, plan.pes[0].pe, chips)
    interval = max(round(cycles / (plan.frames * len(chips))), 1)
    return replace(plan, chips=tuple(chips), predicted=Predicted(cycles, interval))


def twin(board: Board, pe: int, home: int, chip: int) -> int:
    """The PE of a chip in the position of `pe` on chip `home`."""
    return pe + (chip - home) * board.mesh.pes.count


def twins(board: Board, plan: Plan) -> Iterator[tuple[int, int]]:
    """Every PE that runs the plan, chip by chip, each with the corresponding PE of the plan."""
    return ((twin(board, pe.pe, plan.home, chip), pe.pe) for chip in plan.chips for pe in plan.pes)


def _signal_cycles(board: Board, root: int, chips: Sequence[int]) -> int:
    """Cycles from the root's start signal to the other leaders until the last answer. A signal is a flit."""
    assert board.noc is not None
    one, all_of = board.noc.packets(0, 0), board.noc.packets(0, 0, len(chips) - 1)
    network, leaders = Links(board), [twin(board, root, chips[0], chip) for chip in chips[1:]]
    started = network.carry(DOORBELL_CYCLES, root, root, leaders, all_of).arrived
    answers = sorted((at + WAKE_CYCLES + DOORBELL_CYCLES, leader) for leader, at in started.items())
    return WAKE_CYCLES + max(network.carry(at, pe, pe, [root], one).arrived[root] for at, pe in answers)


def _dead_on(board: Board, chip: int) -> set[int]:
    """The dead PEs of a chip, numbered within the chip."""
    count = board.mesh.pes.count
    return {pe % count for pe in board.mesh.dead_pes if pe // count == chip}


def _is_reached(board: Board, chip: int) -> bool:
    """True if root and leader reach each other, and the root reaches the chip's DRAM."""
    root, count = board.root_pe, board.mesh.pes.count
    routes, leader, dram = Routes(board), chip * count + root % count, chip * count
    return routes.reaches(root, leader) and routes.reaches(leader, root) and routes.reaches(root, dram)
