"""The mesh as a picture: one square for each PE, coloured by utilisation, and arrows for traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.net.net import Net
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.noc import link_bytes
from npukit.plan.tensors.routes import Link

GAP = 2
"""Gap between chips, in squares."""
MOST_WITH_NUMBERS = 256
SHADES = 5
SQUARE = 0.6
SIDE = 0.1


@dataclass(frozen=True)
class Cell:
    """A PE. `x`, `y`: in squares. `shade`: 0 unused, 1 to `SHADES` by utilisation, -1 dead."""

    pe: int
    x: int
    y: int
    shade: int
    share: str
    title: str


@dataclass(frozen=True)
class Arrow:
    """A frame's traffic over one link. `weight`: 0 to 1, relative to the busiest link."""

    x1: float
    y1: float
    x2: float
    y2: float
    weight: float
    title: str


@dataclass(frozen=True)
class Chip:
    """A chip as a single shape, in squares. `alike`: True if equal to the first, False if unused."""

    x: int
    y: int
    alike: bool
    title: str


@dataclass(frozen=True)
class MeshPicture:
    """The picture. `cells` and `arrows` belong to the chips drawn PE by PE."""

    columns: int
    rows: int
    chip_columns: int
    chip_rows: int
    cells: tuple[Cell, ...]
    chips: tuple[Chip, ...]
    arrows: tuple[Arrow, ...]
    numbers: bool
    busiest: str


def mesh_picture(board: Board, net: Net, plan: Plan, shares: Mapping[int, float], unit: str = "frame") -> MeshPicture:
    """The picture of a plan's mesh. `shares`: the utilisation of each PE in a `unit`."""
    mesh = board.mesh
    traffic = link_bytes(board, net, plan)
    return MeshPicture(
        columns=mesh.chips.columns * (mesh.pes.columns + GAP) - GAP,
        rows=mesh.chips.rows * (mesh.pes.rows + GAP) - GAP,
        chip_columns=mesh.pes.columns,
        chip_rows=mesh.pes.rows,
        cells=tuple(_cell(board, pe, shares, unit) for pe in _drawn(board, plan, shares)),
        chips=tuple(_chips(board, plan, shares)),
        arrows=tuple(_arrow(board, link, count, max(traffic.values())) for link, count in sorted(traffic.items())),
        numbers=board.pe_count <= MOST_WITH_NUMBERS,
        busiest=_busiest(traffic, unit) + (" on each chip" if traffic and len(plan.chips) > 1 else ""),
    )


def _drawn(board: Board, plan: Plan, shares: Mapping[int, float]) -> Iterator[int]:
    """The PEs of the chips drawn PE by PE."""
    count, as_one = board.mesh.pes.count, {*plan.chips[1:], *_idle(board, plan, shares)}
    return (pe for pe in range(board.pe_count) if pe // count not in as_one)


def _idle(board: Board, plan: Plan, shares: Mapping[int, float]) -> list[int]:
    """Chips, other than the first, without a PE that is used or dead."""
    count = board.mesh.pes.count
    told = {pe // count for pe in (*shares, *board.mesh.dead_pes)}
    return [chip for chip in range(1, board.mesh.chips.count) if chip not in told and chip not in plan.chips]


def _chips(board: Board, plan: Plan, shares: Mapping[int, float]) -> Iterator[Chip]:
    count = board.mesh.pes.count
    for chip in plan.chips[1:]:
        does = f"chip {chip}, PEs {chip * count} to {(chip + 1) * count - 1}: as chip {plan.chips[0]}"
        yield Chip(*_place(board, chip * count), True, does)
    for chip in _idle(board, plan, shares):
        yield Chip(*_place(board, chip * count), False, f"chip {chip}: not used")


def _place(board: Board, pe: int) -> tuple[int, int]:
    chip, place = divmod(pe, board.mesh.pes.count)
    row, column = divmod(place, board.mesh.pes.columns)
    chip_row, chip_column = divmod(chip, board.mesh.chips.columns)
    return chip_column * (board.mesh.pes.columns + GAP) + column, chip_row * (board.mesh.pes.rows + GAP) + row


def _cell(board: Board, pe: int, shares: Mapping[int, float], unit: str) -> Cell:
    x, y = _place(board, pe)
    if pe in board.mesh.dead_pes:
        return Cell(pe, x, y, -1, "dead", f"PE {pe}: dead")
    if pe not in shares:
        return Cell(pe, x, y, 0, "", f"PE {pe}: not used")
    share = shares[pe]
    shade = min(1 + int(share * SHADES), SHADES)
    return Cell(pe, x, y, shade, f"{share:.0%}", f"PE {pe}: at work {share:.0%} of a {unit}")


def _arrow(board: Board, link: Link, count: int, most: int) -> Arrow:
    """The arrow between the edges of two squares, or chips, shifted to keep both directions visible."""
    scale = board.mesh.pes.count if link.border else 1
    here, there = (_middle(board, end * scale, link.border) for end in (link.source, link.destination))
    dx, dy = there[0] - here[0], there[1] - here[1]
    length = max(abs(dx), abs(dy), 1)
    ux, uy = dx / length, dy / length
    pes = board.mesh.pes
    reach = (pes.columns if dx else pes.rows) / 2 if link.border else SQUARE / 2  # from the centre to the edge
    x, y = here[0] - SIDE * uy, here[1] + SIDE * ux
    (x1, y1), (x2, y2) = (x + ux * reach, y + uy * reach), (x + ux * (length - reach), y + uy * (length - reach))
    what = "chip" if link.border else "PE"
    return Arrow(x1, y1, x2, y2, count / most, f"{what} {link.source} to {what} {link.destination}: {count:,} bytes")


def _middle(board: Board, pe: int, of_chip: bool) -> tuple[float, float]:
    x, y = _place(board, pe)
    pes = board.mesh.pes
    return (x + pes.columns / 2, y + pes.rows / 2) if of_chip else (x + 0.5, y + 0.5)


def _busiest(traffic: Counter[Link], unit: str) -> str:
    if not traffic:
        return ""
    (link, count), *_ = traffic.most_common(1)
    what = "chip" if link.border else "PE"
    return f"{what} {link.source} to {what} {link.destination} with {count:,} bytes a {unit}"
