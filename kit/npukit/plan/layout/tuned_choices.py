"""The choices of tuning, by kernel and shapes, and by network on one core.

A choice in a tuning record is a readable text: `code 0.25` or `memory-relaxed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from npukit.accel.core_kernels import CostPreference
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Reshape, TvmCode
from npukit.plan.tensors.routes import pes_to_use
from npukit.tuning import Database

CODE, MEMORY_RELAXED = "code", "memory-relaxed"


def preference_for(database: Database, net: Net, board: Board, objective: str, max_pes: int | None) -> CostPreference:
    """The preference of the tuning records for this network."""
    found = {op.name: database.choice(kernel_key(net, op, board)) for op in core_ops(net)}
    worth = {name: worth_of(choice) for name, choice in found.items() if choice}
    whole = database.choice(network_key(net, board, objective, max_pes))
    return CostPreference(worth, memory_relaxed=whole == MEMORY_RELAXED)


def core_ops(net: Net) -> list[Op]:
    """The ops on the core with kernels in assembly to choose from."""
    return [op for op in net.ops if op.engine == CORE and not isinstance(op.attributes, Reshape | TvmCode)]


def kernel_key(net: Net, op: Op, board: Board) -> str:
    """The key of a kernel: kind, attributes, shapes and board, without the weights."""
    slot = board.accelerator_named(op.engine)
    figures = [op.engine, slot.model_dump_json(exclude={"plugin"})] if slot else []
    return _digest([board.name, board.core.model_dump_json(), *figures, _described(net, op)])


def tuned_choice(database: Database, board: Board, net: Net, op: Op) -> str | None:
    """The tuned choice for an op on an accelerator, if any."""
    return database.choice(kernel_key(net, op, board))


def kernel_name(net: Net, op: Op, board: Board) -> str:
    """A readable name for a kernel's key."""
    return f"{op.kind} {_shape(net, op.inputs[0])} -> {_shape(net, op.output)} on {board.name}"


def network_key(net: Net, board: Board, objective: str, max_pes: int | None) -> str:
    """The key of a network's layouts: ops and readers, every figure of the board, PEs, and whether frames are planned
    as a batch."""
    places = {name: str(index) for index, name in enumerate((*net.begins, *(o for op in net.ops for o in op.outputs)))}
    reads = [" ".join([op.engine, *(places[name] for name in net.activations(op))]) for op in net.ops]
    pes = " ".join(map(str, pes_to_use(board, max_pes)))
    whole = ["batches"] if objective == "throughput" else []
    return _digest([board.model_dump_json(), pes, *whole, *reads, *(_described(net, op) for op in net.ops)])


def worth_of(choice: str) -> float:
    """The number in a choice of code."""
    word, _, number = choice.partition(" ")
    try:
        if word == CODE and float(number) >= 0:
            return float(number)
    except ValueError:
        pass
    raise NpukitError(f"{choice!r} is no tuning record", tries=["remove the file of tuning results"])


def _described(net: Net, op: Op) -> str:
    shapes = (f"{net.tensor(name).dtype} {_shape(net, name)}" for name in (*op.inputs, *op.outputs))
    return " ".join([op.title, *(f"{part.kind} {part.attributes}" for part in op.parts), *shapes])


def _shape(net: Net, name: str) -> str:
    return "x".join(map(str, net.tensor(name).shape))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
