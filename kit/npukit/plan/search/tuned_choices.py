"""The advice of tuning: by kernels and shapes for the core, by whole networks for the PEs of a board.

A tuning record's choice is a text for people: `code 0.25`, `memory-relaxed`, `splits 1x2x1x8 1x1x1x16`, or a batch
(`BatchSpec`), from which it is planned again without a search.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from npukit.accel.core_kernels import CostPreference
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Reshape, TvmCode
from npukit.plan.tensors.boxes import Split
from npukit.plan.tensors.routes import pes_to_use
from npukit.tuning import Database

CODE, MEMORY_RELAXED, SPLITS = "code", "memory-relaxed", "splits"


BATCHES = "batches"
_TEXT = re.compile(
    rf"{BATCHES} on groups of (\d+) PEs with (\d+) interleaved frames and (\d+) micro-batches,"
    r" room for (\d+) weight tiles of (\d+) bytes: (.+)"
)


@dataclass(frozen=True)
class BatchSpec:
    """Groups of so many PEs, each op split so on every group; frames, and the weight tiles of streamed constants."""

    pes: int
    splits: tuple[Split, ...]
    interleaved: int
    micro_batches: int
    weight_tiles: int
    weight_tile_bytes: int

    def __str__(self) -> str:
        return (
            f"{BATCHES} on groups of {self.pes} PEs with {self.interleaved} interleaved frames"
            f" and {self.micro_batches} micro-batches,"
            f" room for {self.weight_tiles} weight tiles of {self.weight_tile_bytes} bytes:"
            f" {spelled_splits(self.splits)}"
        )

    @classmethod
    def parse(cls, text: str) -> BatchSpec:
        match = _TEXT.fullmatch(text)
        if match is None or "0" in match.groups()[:5]:
            raise unreadable(text)
        pes, interleaved, micro_batches, weight_tiles, weight_tile_bytes = map(int, match.groups()[:5])
        return cls(pes, read_splits(match[6], text), interleaved, micro_batches, weight_tiles, weight_tile_bytes)


def spelled_splits(splits: Sequence[Split]) -> str:
    return " ".join("x".join(map(str, split)) or "-" for split in splits)


def read_splits(part: str, choice: str) -> tuple[Split, ...]:
    """The splits that a part of a choice spells."""
    try:
        found = tuple(() if word == "-" else tuple(map(int, word.split("x"))) for word in part.split())
    except ValueError as error:
        raise unreadable(choice) from error
    if any(number < 1 for split in found for number in split):
        raise unreadable(choice)
    return found


def unreadable(choice: str) -> NpukitError:
    return NpukitError(f"{choice!r} is no tuning record", tries=["remove the file of tuning results"])


@dataclass(frozen=True)
class Advice:
    """Advice for one network on one board. Without splits or a batch the planner finds its own."""

    preference: CostPreference = field(default_factory=CostPreference)
    splits: tuple[Split, ...] = ()
    """The split of each op that is a step."""
    batch: BatchSpec | None = None
    """The batch for throughput."""


NO_ADVICE = Advice()


def advice_for(database: Database, net: Net, board: Board, objective: str, max_pes: int | None) -> Advice:
    """The advice of the tuning records for this network."""
    found = {op.name: database.choice(kernel_key(net, op, board)) for op in core_ops(net)}
    worth = {name: worth_of(choice) for name, choice in found.items() if choice}
    return advice_of(worth, database.choice(network_key(net, board, objective, max_pes)) or "")


def advice_of(worth: Mapping[str, float], whole: str) -> Advice:
    """The advice of the worth of a byte of each op's code, and the choice for the whole network."""
    splits = splits_of(whole) if whole.startswith(SPLITS) else ()
    wanted = BatchSpec.parse(whole) if whole.startswith(BATCHES) else None
    return Advice(CostPreference(worth, memory_relaxed=whole == MEMORY_RELAXED), splits, wanted)


def core_ops(net: Net) -> list[Op]:
    """The ops that may have kernels in assembly on the core."""
    return [op for op in net.ops if op.engine == CORE and not isinstance(op.attributes, Reshape | TvmCode)]


def kernel_key(net: Net, op: Op, board: Board) -> str:
    """Kind, attributes, shapes and board: what a kernel depends on, but for the weights."""
    slot = board.accelerator_named(op.engine)
    figures = [op.engine, slot.model_dump_json(exclude={"plugin"})] if slot else []
    return _digest([board.name, board.core.model_dump_json(), *figures, _described(net, op)])


def tuned_choice(database: Database, board: Board, net: Net, op: Op) -> str | None:
    """The choice that tuning found for an op on an accelerator."""
    return database.choice(kernel_key(net, op, board))


def kernel_name(net: Net, op: Op, board: Board) -> str:
    """The same for people."""
    return f"{op.kind} {_shape(net, op.inputs[0])} -> {_shape(net, op.output)} on {board.name}"


def network_key(net: Net, board: Board, objective: str, max_pes: int | None) -> str:
    """The key of a network's mapping.

    It depends on the ops and their readers, every figure of the board, the PEs, and whether it is a frame's or a
    batch's.
    """
    places = {name: str(index) for index, name in enumerate((*net.begins, *(o for op in net.ops for o in op.outputs)))}
    reads = [" ".join([op.engine, *(places[name] for name in net.activations(op))]) for op in net.ops]
    pes = " ".join(map(str, pes_to_use(board, max_pes)))
    whole = ["batches"] if objective == "throughput" else []
    return _digest([board.model_dump_json(), pes, *whole, *reads, *(_described(net, op) for op in net.ops)])


def worth_of(choice: str) -> float:
    word, _, number = choice.partition(" ")
    try:
        if word == CODE and float(number) >= 0:
            return float(number)
    except ValueError:
        pass
    raise unreadable(choice)


def spelled(splits: Sequence[Split]) -> str:
    return f"{SPLITS} {spelled_splits(splits)}"


def splits_of(choice: str) -> tuple[Split, ...]:
    word, _, part = choice.partition(" ")
    if word != SPLITS:
        raise unreadable(choice)
    return read_splits(part, choice)


def _described(net: Net, op: Op) -> str:
    return " ".join([op.title, *(f"{part.kind} {part.attributes}" for part in op.parts), *_shapes(net, op)])


def _shapes(net: Net, op: Op) -> Iterator[str]:
    return (f"{net.tensor(name).dtype} {_shape(net, name)}" for name in (*op.inputs, *op.outputs))


def _shape(net: Net, name: str) -> str:
    return "x".join(map(str, net.tensor(name).shape))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
