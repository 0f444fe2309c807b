"""Constants that do not fit, streamed: cut into weight tiles, of which each PE holds a few at a time.

A weight tile is asked of DRAM by one PE, its prefetching PE, once all PEs that compute with it have told the
prefetching PE that they have room, and multicast to all of them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES, DRAM
from npukit.net.box import Box
from npukit.plan.emit.messages import SIGNAL, Parcel, Traffic, signal
from npukit.plan.emit.pe_program import Block, use_of
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.names import Name
from npukit.plan.tensors.boxes import GRAINS
from npukit.plan.tensors.dma_copies import LARGEST

WEIGHT_TILE_BYTES = 8 << 10
"""Constants are streamed in weight tiles of about this size, unless a batch says otherwise; `WEIGHT_TILES` has what is
tried."""

MOST_LISTED = 96 << 10
"""Bytes of descriptors for weight tiles that a PE which does nothing else has room for. With half as many a held-out
ResNet is 3.3 % slower on 152 PEs, with more none is faster (`planner_constants.py batches`)."""

LARGEST_WEIGHT_TILE = 2
"""Times the size that is wanted."""

MOST_WEIGHT_TILE_BYTES = 32 << 10
"""Larger weight tiles keep engines waiting for the first."""

WEIGHT_TILES_IN_MEMORY = 3
"""One in use, one there, one arriving; unless a batch says otherwise."""


@dataclass(frozen=True)
class StreamWeights:
    """A strategy: the constants of some ops stay in DRAM and come in weight tiles, of which a PE has room for a few.

    Small weight tiles leave more memory for all else; large ones are less often interrupted.
    """

    ops: frozenset[str] = frozenset()
    tile_bytes: int = WEIGHT_TILE_BYTES
    tiles: int = WEIGHT_TILES_IN_MEMORY
    """Weight tiles that have room in a PE together: one in use, others there or arriving."""
    room: int | None = None
    """Bytes that tensors and weight tiles may take together, or what they take of the most crowded PE if that is more:
    where tensors leave more of them, weight tiles are larger. Nothing given, none are."""
    prefetch_distance: int = 1
    """The number of ops before they are computed with that weight tiles may arrive."""

    @property
    def least_bytes(self) -> int:
        """The bytes for weight tiles where there is least room."""
        return self.tile_bytes * self.tiles

    def of(self, ops: Iterable[str]) -> StreamWeights:
        """The same weight tiles of the constants of these ops."""
        return replace(self, ops=frozenset(ops))


@dataclass(frozen=True)
class Piece:
    """A part of a tile, computed with one weight tile: of which frame, on which PE, what of the output."""

    frame: int
    tile: Tile
    box: Box


@dataclass(frozen=True, eq=False)
class WeightTile:
    """Constants that some pieces of one op share: in DRAM, and for a while in the PEs of these pieces."""

    place: int
    """The place of the op's turn among all turns of the batch."""
    source: Block
    block: Block
    pieces: tuple[Piece, ...]

    @property
    def pes(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(piece.tile.pe for piece in self.pieces))


def cut_in_weight_tiles(box: Box, size: Callable[[Box], int], weight_tile_bytes: int, most: int) -> list[Box]:
    """A tile cut along its channels so that the constants of each part, its `size`, are about so many bytes.

    Wide parts may have at `most` so many; narrower ones are taken only if they have an eighth less.
    """
    count = -(-size(box) // weight_tile_bytes)
    cuts = [_cut(box, max(box.shape[-1] // count // grain, 1) * grain) for grain in GRAINS]
    worth = cuts[0], *(parts for parts in cuts[1:] if 8 * size(parts[0]) <= 7 * size(cuts[0][0]))
    return next((parts for parts in worth if size(parts[0]) <= most), worth[-1])


def _cut(box: Box, step: int) -> list[Box]:
    cuts = [*range(box.start[-1], box.stop[-1], step), box.stop[-1]]
    return [Box((*box.start[:-1], a), (*box.stop[:-1], b)) for a, b in pairwise(cuts)]


def weight_tiles_of(
    place: int, micro_batch: int, pieces: Sequence[Sequence[Piece]], source_of: Callable[[Box], Block]
) -> Iterator[WeightTile]:
    """The weight tiles of the pieces of each tile, in the order of computing: the first of all, the second, ..."""
    for number, same in enumerate(zip_longest(*pieces), 1):
        shared: dict[Block, list[Piece]] = {}
        for piece in filter(None, same):
            shared.setdefault(source_of(piece.box), []).append(piece)
        for source, found in shared.items():
            block = Block(str(Name(source.name, micro_batch, number=number)), source.bytes, source.name)
            yield WeightTile(place, source, block, tuple(found))


class Residence:
    """Weight tiles of a batch in the order in which they are used: when each is asked for, and by which PE.

    `rooms`: for each the bytes that a PE has for it and those before it that are still in use. So many, at `least`,
    find room even if they are too large. They come so many places before their own of all `places`. With replica
    groups, these are those of one of `groups`. The root holds so many `output_bytes` of the batch as well.
    """

    def __init__(
        self,
        rooms: Mapping[WeightTile, int],
        least: int,
        places: int,
        prefetch_distance: int,
        prefetchers: Sequence[int],
        groups: int,
        root: int,
        output_bytes: int,
    ) -> None:
        self._groups = groups
        self._list_rooms = {pe: max(MOST_LISTED - (output_bytes if pe == root else 0), 0) for pe in prefetchers}
        self._listed: Counter[int] = Counter()
        """Bytes of each PE's descriptors of what it asks for, and of their lists of destinations."""
        self._prefetchers: dict[Hashable, int] = {}
        self._asked: dict[int | WeightTile, list[WeightTile]] = {}
        for moment, tile in _moments(tuple(rooms), _replaced_by(rooms, least), places, prefetch_distance):
            self._asked.setdefault(moment, []).append(tile)
            self._list(tile)

    @property
    def are_listed_apart(self) -> bool:
        """True if those that do nothing else have room for the descriptors of all."""
        return self._listed.total() <= sum(self._list_rooms.values())

    def asked(self, moment: int | WeightTile) -> Sequence[WeightTile]:
        """The weight tiles that are asked for before a place, or once all have computed with another weight tile."""
        return self._asked.get(moment, ())

    def prefetcher(self, tile: WeightTile) -> int:
        """The PE that asks for a weight tile: the same in every micro-batch."""
        return self._prefetchers[use_of(tile.block, 1)]

    def _list(self, tile: WeightTile) -> None:
        """The PE that prefetches least so far, of those that do nothing else and have room, or else of its own."""
        use = use_of(tile.block, 1)
        if use in self._prefetchers:
            return
        roomy = [pe for pe, room in self._list_rooms.items() if self._listed[pe] < room]
        found = min(roomy or tile.pes, key=self._listed.__getitem__)
        self._prefetchers[use] = found
        self._listed[found] += DESCRIPTOR_BYTES + DESTINATION_BYTES * len(tile.pes) * self._groups


def ask_for(traffic: Traffic, wanted: WeightTile, prefetcher: int) -> None:
    """Its PEs say that they have room; then the prefetching PE asks."""
    credit = Block(f"credit for {wanted.block.name}", SIGNAL)
    traffic.send([signal(pe, credit, [prefetcher]) for pe in wanted.pes if pe != prefetcher])
    traffic.wait_for(prefetcher, credit)
    parts = -(-wanted.source.bytes // LARGEST)
    to = tuple((pe, wanted.block) for pe in wanted.pes)
    traffic.send([Parcel(prefetcher, "", DRAM, wanted.source, wanted.source.box, to, parts)])


def _moments(
    tiles: Sequence[WeightTile], replaced: Mapping[WeightTile, set[WeightTile]], places: int, prefetch_distance: int
) -> Iterator[tuple[int | WeightTile, WeightTile]]:
    """Each weight tile, and when it is asked for: before a place, or once another one is used and leaves it room."""
    behind: dict[WeightTile, list[WeightTile]] = {}
    for tile in tiles:
        for each in replaced[tile]:
            behind.setdefault(each, []).append(tile)
    hindering = {tile: len(replaced[tile]) for tile in tiles}
    closed, used = deque(tiles), deque(tiles)
    opened = set[WeightTile]()
    for place in range(places):
        while closed and closed[0].place <= place + prefetch_distance:
            opened.add(tile := closed.popleft())
            if not hindering[tile]:
                yield place, tile
        while used and used[0].place == place:
            done = used.popleft()
            for tile in behind.get(done, ()):
                hindering[tile] -= 1
                if tile in opened and not hindering[tile]:
                    yield done, tile


def _replaced_by(rooms: Mapping[WeightTile, int], least: int) -> dict[WeightTile, set[WeightTile]]:
    """The weight tiles that must be gone before each one comes.

    On each PE that is the last of them, as weight tiles are used in order.
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
