"""The purpose of each message and wait of a plan, in words: for comments in `plan.txt` and in the generated C."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from npukit.board.noc import DRAM
from npukit.plan.ir.plan import SENT_FLAG, Message, PePlan, Plan, Send, Wait


def purposes(plan: Plan, pe: PePlan) -> dict[int, str]:
    """The purpose of each send and wait of a PE, by step number."""
    arrived, found = awaited(plan, pe), dict[int, str]()
    for index, step in enumerate(pe.steps):
        match step:
            case Send(number):
                message = plan.messages[number]
                found[index] = f"{_content(message)} to {_pes(each.pe for each in message.landings)}"
            case Wait(flag) if flag == SENT_FLAG:
                found[index] = "sent messages have left"
            case Wait():
                found[index] = _arrivals([plan.messages[number] for number in arrived[index]])
    return found


def awaited(plan: Plan, pe: PePlan) -> dict[int, tuple[int, ...]]:
    """The messages taken by each wait of a PE, by step number.

    A flag is reused only after waits for everything counted before (`Traffic.send`). The waits for a flag therefore
    take the messages to the flag in the order of their numbers.
    """
    landing = {flag: deque(numbers) for flag, numbers in plan.landing_on[pe.pe].items()}
    waits = ((i, step) for i, step in enumerate(pe.steps) if isinstance(step, Wait) and step.flag != SENT_FLAG)
    return {i: tuple(landing[step.flag].popleft() for _ in range(step.count)) for i, step in waits}


def _arrivals(messages: Sequence[Message]) -> str:
    """`conv2d_0 from PEs 1, 2; constants of dense_0 from DRAM`"""
    sources: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        sources[_content(message)].append(message.source_pe)
    return "; ".join(f"{content} from {_pes(pes)}" for content, pes in sources.items())


def _content(message: Message) -> str:
    """The tensor, or the plan's name of the streamed constants or the signal."""
    return message.tensor or message.source.buffer


def _pes(pes: Iterable[int]) -> str:
    """`PE 1`, `PEs 1, 2, DRAM`"""
    names = ["DRAM" if pe >= DRAM else str(pe) for pe in sorted(set(pes))]
    if names == ["DRAM"]:
        return "DRAM"
    return f"PE{'' if len(names) == 1 else 's'} {', '.join(names)}"
