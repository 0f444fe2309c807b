"""Tensors of a frame in the PEs' memories: an observed frame stops after a layer, and the host reads the tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice

import numpy as np

from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.cases import Cases, filled, reference_of, sequences
from npukit.measure.target import Target
from npukit.measure.validate import ALONE, Validation, difference, run_round, run_zeros, write_inputs
from npukit.net.box import Box
from npukit.net.net import NO_WORK, Net
from npukit.net.ops import Reshape
from npukit.plan.ir.plan import Buffer, Compute, PePlan, Plan
from npukit.plan.multi_chip import twin


@dataclass(frozen=True, eq=False)
class ReadTile:
    """A PE's part of a tensor, and the values in its memory."""

    pe: int
    box: Box
    values: np.ndarray


@dataclass(frozen=True)
class _Place:
    """A tile of the plan on a chip. `number`: the number of the layer on the PE."""

    pe: int
    like: PePlan
    step: Compute
    number: int

    @property
    def pieces(self) -> int:
        return self.like.tile_numbers.count(self.number)

    @property
    def buffer(self) -> Buffer:
        return self.like.buffer(self.step.output.buffer)


def tiles_of(
    session: Session, board: Board, net: Net, plan: Plan, cases: Cases, case: int, op: str, pes: Sequence[int] = ()
) -> list[ReadTile]:
    """The tiles of an op's output in the frame of a case, on `pes` or on all PEs with a tile.

    A single frame serves all PEs. A PE that waits for a stopped PE takes another frame. A frame of zeros precedes each,
    so a skipped layer does not find its own results in memory.
    """
    frames = plan.frames_of_all
    rounds = next(rounds for rounds in sequences(cases, frames) if any(case in chosen for chosen in rounds))
    at = next(number for number, chosen in enumerate(rounds) if case in chosen)
    left = [place for place in _places(board, plan, op, rounds[at].index(case)) if not pes or place.pe in pes]
    found = list[ReadTile]()
    while left:
        run_zeros(session, net, cases, frames)
        for chosen in rounds[:at]:
            run_round(session, net, cases, chosen, observe=False)
        write_inputs(session, cases, rounds[at])
        reached = session.run_and_stop({place.pe: (place.number, place.pieces) for place in left})
        found += [_read(session, net, place, reached[place.pe]) for place in left if place.pe in reached]
        if session.device.pe_count > 1:
            session.reset()
        if not reached:
            break
        left = [place for place in left if place.pe not in reached]
    return found


def located(target: Target, net: Net, plan: Plan, cases: Cases, found: Validation) -> Validation:
    """The validation with the differing elements in tiles of the first wrong layer, the cause of differences in later
    layers.

    Tiles that are right in the repeated frame keep their digests, and so do all tiles if the board no longer answers.
    """
    first = next((each for each in found.mismatches if each.box and each.path != ALONE), None)
    if first is None:
        return found
    whole, op = filled(net, cases, plan.frames_of_all), next(op for op in net.ops if op.output == first.tensor)
    alike = [each for each in found.mismatches if each.box and (each.case, each.tensor) == (first.case, first.tensor)]
    wrong = [each.pe for each in alike]
    try:
        tiles = tiles_of(target.session, target.board, net, plan, whole, first.case, op.name, wrong)
    except NpukitError:
        return found
    want = next(islice(reference_of(net, whole), first.case, None))[op.output]
    differ = {(t.pe, str(t.box)): difference(t.values, want[t.box.slices], t.box.start) for t in tiles}
    named = {each: replace(each, **differ.get((each.pe, each.box), {})) for each in alike}
    return replace(found, mismatches=tuple(named.get(each, each) for each in found.mismatches))


def dumped(target: Target, net: Net, plan: Plan, cases: Cases, ops: Sequence[str]) -> dict[str, np.ndarray]:
    """The outputs of ops in the frames of all cases, as computed by the PEs."""
    whole = filled(net, cases, plan.frames_of_all)
    found = dict[str, np.ndarray]()
    for op in ops:
        tiles = (tiles_of(target.session, target.board, net, plan, whole, case, op) for case in range(cases.count))
        found[op] = np.stack([assembled(net, op, each) for each in tiles])
    return found


def op_of(net: Net, name: str) -> str:
    """The name of the op whose output has this name, in the model or in the net."""
    for op in net.ops:
        if name in (op.name, op.output, net.tensor(op.output).title):
            if op.kind == Reshape.kind and op.reason == NO_WORK:
                raise NpukitError(f"{name} is no tensor of its own: it lies on {op.inputs[0]}", tries=[op.inputs[0]])
            return op.name
    near = get_close_matches(name, [op.name for op in net.ops], 3) or [op.name for op in net.ops][:3]
    raise NpukitError(f"no layer of {net.name} is called {name}", tries=[*near])


def assembled(net: Net, op: str, tiles: Sequence[ReadTile]) -> np.ndarray:
    """The whole tensor, assembled from its tiles; 0 in gaps."""
    tensor = net.tensor(next(each.output for each in net.ops if each.name == op))
    whole = np.zeros(tensor.shape, tensor.dtype)
    for tile in tiles:
        whole[tile.box.slices] = tile.values
    return whole


def _places(board: Board, plan: Plan, op: str, frame: int) -> Iterator[_Place]:
    """The tiles of a frame. Frames are numbered over all chips."""
    chip = plan.chips[frame // plan.frames]
    for like in plan.pes:
        for number, step in enumerate(like.tiles):
            if (step.op, step.frame) == (op, frame % plan.frames):
                yield _Place(twin(board, like.pe, plan.home, chip), like, step, number)


def _read(session: Session, net: Net, place: _Place, address: int) -> ReadTile:
    box, buffer = place.step.output.box, place.buffer
    if made := buffer.arrangement:
        memory = session.read_memory(address, made.bytes - made.origin, place.pe)
        stored = np.ndarray(made.shape, made.dtype, memory, 0, made.strides)
        tensor = net.tensor(buffer.tensor)
        values = (stored.astype(np.int64) + made.subtracted).reshape(tensor.shape).astype(tensor.dtype)
        return ReadTile(place.pe, box, values[box.slices])
    kind = np.dtype(net.tensor(buffer.tensor).dtype)
    strides = np.empty(buffer.box.shape, kind).strides
    size = sum(stride * (count - 1) for stride, count in zip(strides, box.shape, strict=True)) + kind.itemsize
    memory = session.read_memory(address, size, place.pe)
    return ReadTile(place.pe, box, np.ndarray(box.shape, kind, memory, 0, strides).copy())
