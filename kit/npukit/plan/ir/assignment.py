"""Assignment of tiles to PEs: PE and box of each tile of each op. The result of a search or of a user's mapper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, compress

from npukit.net.box import Box
from npukit.plan.tensors.boxes import common, from_boxes, to_boxes, volumes
from npukit.plan.tensors.graph import Graph


@dataclass(frozen=True)
class Tile:
    """A box of an op's output, and the PE that computes it."""

    pe: int
    box: Box


Assignment = Mapping[str, tuple[Tile, ...]]
"""Tiles by op name. The tiles of an op are disjoint, lie on different PEs, and together cover the output."""


def pes_of(*assignments: Assignment) -> list[int]:
    """The PEs of assignments, without repetition."""
    return list(dict.fromkeys(tile.pe for each in assignments for tiles in each.values() for tile in tiles))


def fault_of(shape: tuple[int, ...], tiles: Sequence[Tile], live: set[int]) -> str | None:
    """The reason why the tiles do not cover an output of this shape on live PEs, or None if they do."""
    whole = Box.whole(shape)
    dead = [tile.pe for tile in tiles if tile.pe not in live]
    if dead:
        return f"PE {dead[0]} is dead, or not on the board"
    twice = [tile.pe for tile in tiles if sum(tile.pe == other.pe for other in tiles) > 1]
    if twice:
        return f"PE {twice[0]} has two tiles"
    outside = [tile for tile in tiles if tile.box.empty or not whole.contains(tile.box)]
    if outside:
        return f"{outside[0].box} of PE {outside[0].pe} is not inside {whole}"
    over = next((pair for pair in combinations(tiles, 2) if not pair[0].box.intersection(pair[1].box).empty), None)
    if over:
        return f"the tiles of PE {over[0].pe} and PE {over[1].pe} overlap"
    missing = whole.elements - sum(tile.box.elements for tile in tiles)
    return f"{missing} elements of {whole} are on no PE" if missing else None


def useful(graph: Graph, assignment: Assignment) -> Assignment:
    """The assignment without unused tiles, for example outside a cropping window."""
    needed: dict[str, list[Box]] = {name: [Box.whole(graph.shape(name))] for name in graph.outlasting}
    kept: dict[str, tuple[Tile, ...]] = {}
    for op in reversed(graph.ops):
        if op.output in needed:
            boxes = from_boxes([tile.box for tile in assignment[op.name]])
            met = volumes(common(boxes[:, None], from_boxes(needed[op.output]))).max(1) > 0
            kept[op.name] = tuple(compress(assignment[op.name], met))
            for home, needs in graph.needs(op, boxes[met]) if met.any() else ():
                needed.setdefault(home, []).extend(to_boxes(needs))
    return {op.name: kept.get(op.name, ()) for op in graph.ops}
