"""Streamed constants: constants that do not fit, cut into weight tiles. Each PE holds a few weight tiles at a time.

All PEs that compute with a weight tile first signal room (a credit) to its prefetching PE. The prefetching PE then
fetches the weight tile from DRAM and multicasts it to them.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from npukit.accel.interface import Engines
from npukit.board.board import Board
from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES, DRAM, LARGEST_COPY
from npukit.net.box import Box
from npukit.net.net import CORE
from npukit.plan.emit.messages import Parcel, Traffic, signal
from npukit.plan.emit.pe_program import Block, use_of
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.names import Name
from npukit.plan.tensors.boxes import GRAINS
from npukit.plan.tensors.graph import Graph

LARGEST_WEIGHT_TILE = 2
"""Largest size of a weight tile, as a multiple of the target size."""

MOST_WEIGHT_TILE_BYTES = 32 << 10
"""Largest target size of a weight tile in bytes. Larger weight tiles keep engines waiting for the first."""


@dataclass(frozen=True)
class StreamWeights:
    """The constants of some ops stay in DRAM and arrive in weight tiles. A PE has room for a few weight tiles.

    Small weight tiles leave more memory; large weight tiles interrupt the engines less often.
    """

    ops: frozenset[str] = frozenset()
    tile_bytes: int = 8 << 10
    tiles: int = 3
    """Number of weight tiles on a PE together: the first in use, the others ready or arriving."""
    room: int | None = None
    """Bytes of tensors and weight tiles together on a PE, or the need of the fullest PE if larger. Weight tiles are
    larger where tensors leave more room. None: all weight tiles have the same target size."""
    prefetch_distance: int = 1
    """Number of ops by which a weight tile may arrive early."""

    @property
    def least_bytes(self) -> int:
        """Bytes for a PE's weight tiles where room is least."""
        return self.tile_bytes * self.tiles

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the largest target size of a weight tile in bytes."""
        return self.tile_bytes, self.tile_bytes if self.room is None else MOST_WEIGHT_TILE_BYTES

    def of(self, ops: Iterable[str]) -> StreamWeights:
        """The same strategy for the constants of these ops."""
        return replace(self, ops=frozenset(ops))


Piece = tuple[int, Tile, Box]
"""The part of a tile that is computed with one weight tile: frame, tile, and the piece's part of the output."""


@dataclass(frozen=True, eq=False)
class WeightTile:
    """Constants shared by pieces of one op: in DRAM (`source`), and temporarily on the PEs of the pieces (`block`).

    `place`: the index of the op's turn among all turns of the batch.
    """

    place: int
    source: Block
    block: Block
    pieces: tuple[Piece, ...]

    @property
    def pes(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(tile.pe for _, tile, _ in self.pieces))


def cut_in_weight_tiles(box: Box, size: Callable[[Box], int], weight_tile_bytes: int, most: int) -> list[Box]:
    """Cut a tile along the channels into parts with about `weight_tile_bytes` of constants (`size`) each.

    Parts of the widest grain may take up to `most` bytes. Parts of narrower grain must take at least an eighth less
    than these.
    """
    count = -(-size(box) // weight_tile_bytes)
    cuts = [
        [box.cut(-1, *ends) for ends in pairwise([*range(box.start[-1], box.stop[-1], width), box.stop[-1]])]
        for width in widths(box.shape[-1], [count])
    ]
    worth = cuts[0], *(parts for parts in cuts[1:] if 8 * size(parts[0]) <= 7 * size(cuts[0][0]))
    return next((parts for parts in worth if size(parts[0]) <= most), worth[-1])


def widths(channels: int, counts: Iterable[int]) -> Iterable[int]:
    """The channels of a weight tile in each grain, the widest first, for any number in `counts` of weight tiles."""
    wanted = (max(channels // count // grain, 1) * grain for count in counts for grain in GRAINS)
    return dict.fromkeys(min(width, channels) for width in wanted)


def weight_tiles_of(
    place: int, micro_batch: int, pieces: Sequence[Sequence[Piece]], source_of: Callable[[Box], Block]
) -> Iterator[WeightTile]:
    """The weight tiles of `pieces`, listed by tile, in the order of computation: the first piece of every tile, then
    the second, ..."""
    for number, same in enumerate(zip_longest(*pieces), 1):
        shared: dict[Block, list[Piece]] = {}
        for piece in filter(None, same):
            shared.setdefault(source_of(piece[2]), []).append(piece)
        for source, found in shared.items():
            block = Block(str(Name(source.name, micro_batch, number=number)), source.bytes, source.name)
            yield WeightTile(place, source, block, tuple(found))


def prefetchers_of(
    fetched: Iterable[WeightTile], rooms: Mapping[int, int], groups: int
) -> tuple[dict[Hashable, int], bool]:
    """The PE that fetches each weight tile, by use, the same in every micro-batch; and True if the descriptors of all
    weight tiles have room on the dedicated PEs.

    A weight tile goes to the PE with the fewest bytes of descriptors: a dedicated PE with room, else a PE that computes
    with the weight tile. `fetched`: the weight tiles of one group of `groups`, by time. `rooms`: bytes for descriptors
    on each dedicated PE.
    """
    found, listed = dict[Hashable, int](), Counter[int]()
    for tile in fetched:
        use = use_of(tile.block, 1)
        if use not in found:
            roomy = [pe for pe, room in rooms.items() if listed[pe] < room]
            found[use] = pe = min(roomy or tile.pes, key=listed.__getitem__)
            listed[pe] += DESCRIPTOR_BYTES + DESTINATION_BYTES * len(tile.pes) * groups
    return found, listed.total() <= sum(rooms.values())


def most_listed(board: Board) -> int:
    """Bytes of a dedicated prefetching PE for descriptors of weight tiles: three quarters of its memory. With half as
    many a held-out ResNet is 3.3 % slower on 152 PEs, with more none is faster."""
    return 3 * board.memory_for("constants").size // 4


def ask_for(traffic: Traffic, wanted: WeightTile, prefetcher: int) -> None:
    """Emit the credits of the computing PEs, then the fetch by the prefetching PE."""
    credit = Block(f"credit for {wanted.block.name}")
    traffic.send([signal(pe, credit, [prefetcher]) for pe in wanted.pes if pe != prefetcher])
    traffic.wait_for(prefetcher, credit)
    parts = -(-wanted.source.bytes // LARGEST_COPY)
    to = tuple((pe, wanted.block) for pe in wanted.pes)
    traffic.send([Parcel(prefetcher, "", DRAM, wanted.source, wanted.source.box, to, parts)])


def fetches_of(
    rooms: Mapping[WeightTile, int], least: int, places: int, prefetch_distance: int
) -> dict[int | WeightTile, list[WeightTile]]:
    """The weight tiles to fetch before one of the `places`, or after the use of another weight tile.

    `rooms`: bytes for each weight tile, in order of use, with its predecessors in use. `least` have room at least.
    """
    behind, hindering = defaultdict[WeightTile, list[WeightTile]](list), dict[WeightTile, int]()
    for tile, replaced in _replaced_by(rooms, least).items():
        hindering[tile] = len(replaced)
        for each in replaced:
            behind[each].append(tile)
    closed, used, opened = deque(rooms), deque(rooms), set[WeightTile]()
    found = defaultdict[int | WeightTile, list[WeightTile]](list)
    for place in range(places):
        while closed and closed[0].place <= place + prefetch_distance:
            opened.add(tile := closed.popleft())
            if not hindering[tile]:
                found[place].append(tile)
        while used and used[0].place == place:
            done = used.popleft()
            for tile in behind[done]:
                hindering[tile] -= 1
                if tile in opened and not hindering[tile]:
                    found[done].append(tile)
    return found


def _replaced_by(rooms: Mapping[WeightTile, int], least: int) -> dict[WeightTile, set[WeightTile]]:
    """The weight tiles that must be used up before each weight tile arrives.

    On each PE the last of them suffices, because weight tiles are used in order.
    """
    found: dict[WeightTile, set[WeightTile]] = {each: set() for each in rooms}
    held: dict[int, deque[WeightTile]] = {}
    gone: dict[int, WeightTile] = {}
    for each, room in rooms.items():
        for pe in each.pes:
            before = held.setdefault(pe, deque())
            while len(before) >= least and sum(other.source.bytes for other in before) + each.source.bytes > room:
                gone[pe] = before.popleft()
            before.append(each)
            found[each] |= {gone[pe]} if pe in gone else set()
    return found


def heaviest_ops(graph: Graph, engines: Engines, assignment: Assignment) -> list[str]:
    """Ops with constants worth streaming, of more than 256 bytes on a PE, the heaviest first."""
    sizes = {
        op.name: max(engines[op.engine].cost(graph.net, op, tile.box).constant_bytes for tile in assignment[op.name])
        for op in graph.ops
        if op.engine != CORE and assignment[op.name]
    }
    return sorted((name for name in sizes if sizes[name] > 256), key=lambda name: (-sizes[name], name))
