"""The PEs that a plan may use, in their order: neighbours in the order are neighbours on the mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import permutations

from npukit.board.board import Board, Grid
from npukit.errors import DoesNotFit
from npukit.plan.tensors.routes import Routes


def pes_in_order(board: Board) -> list[int]:
    """The live PEs along a snake through each chip, chips along a snake too; the root comes first."""
    order = [pe for pe in _snake_of_pes(board) if pe not in board.mesh.dead_pes]
    if not order:
        raise DoesNotFit(f"every PE of {board.name} is dead", tries=["another board"])
    return _all_reachable(board, [board.root_pe, *(pe for pe in order if pe != board.root_pe)])


def pes_to_use(board: Board, most: int | None, engines: Collection[str] = ()) -> list[int]:
    """The first PEs of the order, as many as are allowed; without a limit, those of the root's chip.

    Where PEs differ, those that carry more of the engines come first, and kinds of which none carries more take turns.
    """
    order, chip = _best_equipped_first(board, engines), board.mesh.pes.count
    return order[:most] if most else [pe for pe in order if pe // chip == board.root_pe // chip]


def _best_equipped_first(board: Board, engines: Collection[str]) -> list[int]:
    root, *others = pes_in_order(board)
    lacking = {pe: frozenset(name for name in engines if pe in board.lacking.get(name, ())) for pe in others}
    kinds = set(lacking.values())
    better_ones = {kind: sum(other < kind for other in kinds) for kind in kinds}
    before: Counter[frozenset[str]] = Counter()
    keys: dict[int, tuple[int, int]] = {}
    for pe, kind in lacking.items():
        keys[pe] = better_ones[kind], before[kind]
        before[kind] += 1
    return [root, *sorted(others, key=lambda pe: keys[pe])]


def _all_reachable(board: Board, order: list[int]) -> list[int]:
    """The PEs without those that others reach only over a dead link: those in the way of most, never the root."""
    pairs = _cut_pairs(board, order) if board.mesh.dead_links else []
    while pairs:
        hindered = Counter(pe for pair in pairs for pe in pair if pe != order[0])
        worst = max(hindered, key=lambda pe: (hindered[pe], pe))
        order = [pe for pe in order if pe != worst]
        pairs = [pair for pair in pairs if worst not in pair]
    return order


def _cut_pairs(board: Board, order: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of PEs between which the route crosses a dead link."""
    routes = Routes(board)
    return [(a, b) for a, b in permutations(order, 2) if not routes.reaches(a, b)]


def _snake_of_pes(board: Board) -> Iterator[int]:
    for chip in _snake(board.mesh.chips):
        for place in _snake(board.mesh.pes):
            yield chip * board.mesh.pes.count + place


def _snake(grid: Grid) -> Iterator[int]:
    """Row by row, every second row backwards."""
    for row in range(grid.rows):
        columns = range(grid.columns)
        for column in columns if row % 2 == 0 else reversed(columns):
            yield row * grid.columns + column
