"""Explanation of firmware that waits for ever: each waiting PE, and the PE it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from npukit.board.board import Noc
from npukit.board.noc import DRAM
from npukit.emulator.messages import place

Senders = Mapping[tuple[int, int], Sequence[int]]
"""PEs and DRAMs whose data count a PE's flag, by PE and flag."""

_FIRST_FLAG = 0x100
_STATES = ("has no program", "runs", "sleeps", "has stopped", "is dead")
"""States in the order of `enum pe_state` in npukit_emulator/core/pe.h."""
_RUNNING, _ASLEEP = 1, 2


@dataclass(frozen=True)
class Waiting:
    """State of a PE without progress, and the register read last."""

    state: int
    pc: int
    address: int
    value: int

    def flag(self, noc: Noc) -> int | None:
        """The flag awaited by the PE, or None."""
        number, odd = divmod(self.address - noc.base - _FIRST_FLAG, 4)
        waits = self.state in (_RUNNING, _ASLEEP) and not odd and 0 <= number < noc.flags
        return number if waits else None


def chain_of_waits(
    root: int, wait_of: Callable[[int], Waiting], noc: Noc, senders: Senders, place_of: Callable[[int, int], str]
) -> tuple[list[int], list[str]]:
    """Chain of PEs that wait for each other, from the root PE on: the PEs, and a line for each. Ends with a PE that
    waits for no other, or is in the chain already. `place_of`: function at a PE's pc."""
    chain: list[int] = []
    lines: list[str] = []
    pe: int | None = root
    while pe is not None and pe not in chain:
        wait = wait_of(pe)
        chain.append(pe)
        flag = wait.flag(noc)
        others = sorted(set(senders.get((pe, flag), ())) - {pe}) if flag is not None else []
        lines.append(_line(pe, wait, flag, others, place_of(pe, wait.pc)))
        pes = [other for other in others if other < DRAM]
        pe = next((other for other in pes if other not in chain), pes[0] if pes else None)
    if pe is not None:
        lines.append(f"PE {' and PE '.join(map(str, chain[chain.index(pe) :]))} wait for each other")
    return chain, lines


def _line(pe: int, wait: Waiting, flag: int | None, others: Sequence[int], function: str) -> str:
    where = f" at pc {wait.pc:#010x}{f' in {function}' if function else ''}"
    if flag is None:
        looks = f", and has read {wait.value:#x} from the register at {wait.address:#010x}" if wait.address else ""
        return f"PE {pe} {_STATES[wait.state]}{where}{looks if wait.state in (_RUNNING, _ASLEEP) else ''}"
    sources = [f"data from {place(other)}" if other >= DRAM else place(other) for other in others]
    whose = f", which {' and '.join(sources)} counts" if others else ""
    return f"PE {pe} waits for flag {flag} (it reads {wait.value}){whose}:{where}"
