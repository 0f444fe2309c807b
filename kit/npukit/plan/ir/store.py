"""Plans as files in the text form of `ir/text.py`, and a check of a loaded plan against a network and a board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Compute, PePlan, Plan, Send
from npukit.plan.ir.text import print_plan


def save_plan(plan: Plan, path: Path) -> None:
    path.write_text(print_plan(plan), encoding="utf-8", newline="\n")


def load_plan(path: Path) -> Plan:
    try:
        return parse_plan(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise NpukitError(f"plan {path} is wrong: it is no text") from error
    except NpukitError as error:
        raise NpukitError(f"plan {path} is wrong: {error.message}") from error


def check_plan(plan: Plan, net: Net, board: Board) -> Plan:
    """The plan, unchanged. Raises NpukitError with the first mismatch between the plan and the net or the board."""
    if fault := next(_faults(plan, net, board), None):
        raise NpukitError(f"the plan of {net.name} is none for {board.name}: {fault}", tries=["build again"])
    return plan


def _faults(plan: Plan, net: Net, board: Board) -> Iterator[str]:
    numbers = [pe.pe for pe in plan.pes]
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= pe < board.pe_count for pe in numbers):
        yield "its PEs are not those of the board"
    chips = plan.chips
    if not chips or len(set(chips)) < len(chips) or not all(0 <= chip < board.mesh.chips.count for chip in chips):
        yield "its chips are not those of the board"
    if not 1 <= plan.frames <= 1 << 16:  # the largest so far have 152 in each of several micro-batches
        yield f"it takes {plan.frames:,} frames together"
    shapes = {op.name: [net.tensor(name).shape for name in op.outputs] for op in net.ops}
    for pe in plan.pes:
        yield from _faults_of(pe, plan, shapes)
    sent = Counter(step.message for pe in plan.pes for step in pe.steps if isinstance(step, Send))
    yield from (f"message {message} is sent {times} times" for message, times in sent.items() if times > 1)
    known = {DRAM, *numbers}
    for number, message in enumerate(plan.messages):
        if message.source_pe not in known or not known.issuperset(landing.pe for landing in message.landings):
            yield f"message {number} is of a PE that has no part in it"


def _faults_of(pe: PePlan, plan: Plan, shapes: dict[str, list[tuple[int, ...]]]) -> Iterator[str]:
    buffers = {buffer.name for buffer in pe.buffers}
    for step in pe.steps:
        if isinstance(step, Send) and not 0 <= step.message < len(plan.messages):
            yield f"PE {pe.pe} sends message {step.message} of {len(plan.messages)}"
        if not isinstance(step, Compute):
            continue
        if step.op not in shapes or not any(_within(step.output.box, shape) for shape in shapes[step.op]):
            yield f"PE {pe.pe} computes {step.op!r} {step.output.box}, which is no part of the network"
        if not {step.output.buffer, *(view.buffer for view in step.inputs)} <= buffers:
            yield f"PE {pe.pe} computes {step.op!r} in a buffer that it has not"
        if not 0 <= step.frame < plan.frames:
            yield f"PE {pe.pe} computes {step.op!r} for frame {step.frame}"


def _within(box: Box, shape: tuple[int, ...]) -> bool:
    return len(box.start) == len(box.stop) == len(shape) and not box.empty and Box.whole(shape).contains(box)
