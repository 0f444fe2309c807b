"""Whether a plan fits, and what to say if it does not."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.interface import Accelerator
from npukit.board.board import Board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.plan.memory import shortfall
from npukit.plan.plan import Compute, PePlan, Plan


def refuse_what_does_not_fit(net: Net, board: Board, engines: Mapping[str, Accelerator], plan: Plan) -> None:
    """DoesNotFit if the memory of any PE is too small, naming what takes the most of the fullest."""
    pe = max(plan.pes, key=lambda pe: shortfall(board, pe.memory))
    missing = shortfall(board, pe.memory)
    if missing:
        use = pe.memory
        raise DoesNotFit(
            f"{net.name} on {len(plan.pes)} PEs needs {missing:,} bytes more than PE {pe.pe} of {board.name} has: "
            f"constants {use.constants:,} (most: {_largest_constants(net, engines, pe)}), "
            f"activations {use.activations:,} (most: {_largest_buffer(net, pe)}), "
            f"code and stack {use.code + use.stack:,}",
            tries=_remedies(board),
        )


def _largest_constants(net: Net, engines: Mapping[str, Accelerator], pe: PePlan) -> str:
    ops = {op.name: op for op in net.ops}

    def size(step: Compute) -> int:
        return engines[step.engine].cost(net, ops[step.op], step.output.box).constant_bytes

    largest = max(pe.computes(), key=size, default=None)
    return f"{largest.op}, {size(largest):,}" if largest else "none"


def _largest_buffer(net: Net, pe: PePlan) -> str:
    largest = max(pe.buffers, key=lambda b: b.bytes, default=None)
    if largest is None:
        return "none"
    consumers = [op.name for op in net.ops if largest.tensor in op.inputs]
    return f"{largest.name}, {largest.bytes:,}, for {', '.join(consumers) or 'the output'}"


def _remedies(board: Board) -> list[str]:
    more = ["let it use more PEs: --pes N"] if board.pe_count > 1 else ["a board with more PEs: npukit boards"]
    return [*more, "a smaller network", "a board with more memory"]
