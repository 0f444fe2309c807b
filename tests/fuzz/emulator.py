"""Random programs, descriptors, commands and fault plans for the built-in emulator: no crash, no hang."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from time import monotonic

import numpy as np

from emulator.commands import random_command, spoilt
from emulator.programs import program
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.fault_plan import Fault, FaultPlan
from npukit.emulator.faults import CoreFault
from npukit.errors import NpukitError
from npukit.project.images.image import Image
from oracles.dma_model import DRAM, MULTICAST, THIS_CHIP, Descriptor

PES = (0, 1, 5)
SCRIPT, DESCRIPTORS, COMMANDS, CODE, MEMORY = 0x1_1000, 0x1_1100, 0x1_2000, 0x1_8000, 0x2_0000
_SLOTS, _CODE_BYTES, _WORDS_OF_SCRIPT = 16, 0x800, 12
_SLEEP = bytes.fromhex("20bffde7")
"""A WFE loop: the core sleeps while the devices work."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_MOST_SECONDS = 10.0
_CYCLES = 200_000

# Writes the doorbells and registers of the script, with delays, then jumps to the host's random code.
PROGRAM = f"""#include "board.h"
int main(void)
{{
    const volatile uint32_t *script = (const volatile uint32_t *){SCRIPT}U;
    for (uint32_t i = 0; i < {_WORDS_OF_SCRIPT}; i += 3) {{
        if (script[i] == 1) {{ DMA_DOORBELL = script[i + 1]; }}
        if (script[i] == 2) {{ ARRAY_DOORBELL = script[i + 1]; }}
        if (script[i] == 3) {{ REGISTER(0xE000E000U + (script[i + 1] & 0xFFCU)) = script[i + 2]; }}
        for (uint32_t n = script[i + 2] & 0xFFF; n != 0; n--) {{ __asm volatile("nop"); }}
    }}
    __asm volatile("movw r0, #0x7fc0\\n\\tmovt r0, #1\\n\\tldr lr, =0x18001\\n\\tldm r0, {{r0-r12}}\\n\\tbx lr");
    return 0;
}}
"""


class Fuzzer:
    """One emulator, set up anew for each case. Equal seeds give equal cases."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._arrays = np.random.default_rng(seed)
        self._emulator = Emulator(load_board("pe-mesh"), [Image(program(PROGRAM), PES)])
        self.outcomes: Counter[str] = Counter()

    def close(self) -> None:
        self._emulator.close()

    def one(self) -> None:
        """Run one case. A forbidden result raises AssertionError."""
        begun = monotonic()
        try:
            self._set_up()
            self._run()
            self.outcomes["ran"] += 1
        except CoreFault as fault:
            self.outcomes[_NUMBER.sub("N", fault.message.partition(": ")[2])] += 1
        except NpukitError as error:
            if "power went" not in error.message:
                raise
            self.outcomes["power"] += 1
        assert monotonic() - begun < _MOST_SECONDS, "it takes too long"

    def _set_up(self) -> None:
        emulator, chance = self._emulator, self._random
        emulator._strict = chance.random() < 0.5
        emulator._plan = self._plan() if chance.random() < 0.5 else None
        emulator._workers = chance.choice((1, 2))
        emulator._start()
        for pe in PES:
            if chance.random() < 0.8:
                emulator.write_memory(pe, COMMANDS, chance.randbytes(MEMORY - COMMANDS - 0x1000))
            self._write_work(pe)
            emulator.write_memory(pe, CODE, self._code())
            emulator.write_memory(pe, CODE - 64, b"".join(self._word() for _ in range(16)))

    def _run(self) -> None:
        emulator, chance = self._emulator, self._random
        emulator.write(chance.randbytes(chance.randrange(300)))
        for _ in range(chance.randrange(1, 4)):
            emulator.run(chance.randrange(1, _CYCLES))
        emulator.read(0.02)
        emulator.silence()

    def _write_work(self, pe: int) -> None:
        for slot in range(_SLOTS):
            self._emulator.write_memory(pe, DESCRIPTORS + 48 * slot, self._descriptor().pack())
            self._emulator.write_memory(pe, COMMANDS + 96 * slot, self._command())
        script = b"".join(self._step() for _ in range(_WORDS_OF_SCRIPT // 3))
        self._emulator.write_memory(pe, SCRIPT, script)

    def _step(self) -> bytes:
        kind = self._random.randrange(5)
        place = self._random.choice(
            (DESCRIPTORS + 48 * self._random.randrange(_SLOTS), COMMANDS + 96 * self._random.randrange(_SLOTS))
        )
        value = place if kind in (1, 2) and self._random.random() < 0.9 else self._random.getrandbits(32)
        return b"".join(number.to_bytes(4, "little") for number in (kind, value, self._random.getrandbits(32)))

    def _descriptor(self) -> Descriptor:
        chance = self._random
        place = lambda: chance.choice((0, 1, 5, 15, DRAM, THIS_CHIP, THIS_CHIP + DRAM, 16, chance.getrandbits(32)))  # noqa: E731
        address = lambda: chance.choice((chance.randrange(0x1_1000, MEMORY), chance.getrandbits(32)))  # noqa: E731
        multicast = chance.random() < 0.2
        return Descriptor(
            next=chance.choice((0, DESCRIPTORS + 48 * chance.randrange(_SLOTS))),
            kind=1 | MULTICAST * multicast | chance.getrandbits(16) << 16,
            source_pe=place(),
            source=address(),
            destination_pe=chance.randrange(0x1_1000, MEMORY) & ~3 if multicast else place(),
            destination=chance.randrange(40) if multicast else address(),
            row_bytes=chance.choice((16, 64, chance.getrandbits(16))),
            rows=chance.choice((1, 4, chance.getrandbits(16))),
            source_stride=chance.randrange(-300, 300),
            destination_stride=chance.randrange(-300, 300),
            source_flag=chance.choice((0xFF, 3, 64)),
            destination_flag=chance.choice((0xFF, 4, 65)),
        )

    def _command(self) -> bytes:
        if self._random.random() < 0.2:
            return self._random.randbytes(96)
        command = random_command(self._arrays, np.zeros(MEMORY, np.uint8))
        command = spoilt(self._arrays, command) if self._random.random() < 0.3 else command
        return replace(command, next=self._random.choice((0, COMMANDS + 96 * self._random.randrange(_SLOTS)))).pack()

    def _code(self) -> bytes:
        """Random halfwords. Some begin 32-bit instructions; loads and stores are more frequent."""
        if self._random.random() < 0.4:
            return _SLEEP
        likely = (0x6800, 0x6000, 0xE890, 0xE8D0, 0xE9D0, 0xED90, 0xBF08, 0xBF20, 0xBF30, 0xB500, 0xBD00, 0x4770)
        halves = (
            self._random.choice(likely) | self._random.getrandbits(6)
            if self._random.random() < 0.3
            else self._random.getrandbits(16)
            for _ in range(_CODE_BYTES // 2)
        )
        return b"".join(half.to_bytes(2, "little") for half in halves)

    def _word(self) -> bytes:
        """A register's value, often near a meaningful address."""
        bases = (0, 0x1_0000, CODE, MEMORY - 8, 0xE000E000, 0xE1000000, 0xE2000000, 0xE3000000, 0xE4000000)
        value = self._random.choice(
            (self._random.choice(bases) + self._random.randrange(64), self._random.getrandbits(32))
        )
        return (value & 0xFFFF_FFFF).to_bytes(4, "little")

    def _plan(self) -> FaultPlan:
        return FaultPlan(
            seed=self._random.getrandbits(32), fault=tuple(self._fault() for _ in range(self._random.randrange(1, 5)))
        )

    def _fault(self) -> Fault:
        chance = self._random
        said = chance.choice(
            (
                {"kind": chance.choice(("drop", "duplicate", "flip")), "chance": 0.3},
                {"kind": "delay", "cycles": chance.randrange(1, 99999), "packet": chance.randrange(5)},
                {"kind": "kill pe", "pe": chance.randrange(16), "at": chance.randrange(_CYCLES)},
                {"kind": "kill link", "between": (0, 1), "at": chance.randrange(_CYCLES)},
                {"kind": "stall dma", "pe": chance.randrange(16), "cycles": 9999, "packet": 0},
                {
                    "kind": "flip sram",
                    "pe": 0,
                    "address": chance.randrange(MEMORY),
                    "bit": 3,
                    "at": chance.randrange(_CYCLES),
                },
                {"kind": "cut power", "at": chance.randrange(10 * _CYCLES)},
            )
        )
        return Fault.model_validate(said)


def fuzz(seconds: float, seed: int = 1) -> Counter[str]:
    """Run cases for `seconds`. Returns the outcomes."""
    fuzzer, end = Fuzzer(seed), monotonic() + seconds
    try:
        while monotonic() < end:
            fuzzer.one()
    finally:
        fuzzer.close()
    return fuzzer.outcomes
