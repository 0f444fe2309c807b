"""The MAC array in SystemVerilog (`rtl/array`), compiled by Verilator, beside the numpy model."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from emulator.commands import SRAM_BYTES, overlaps, random_command, spoilt
from oracles.mac_array_command import COMMAND_BYTES, Command, Error
from oracles.mac_array_model import Array

RTL = Path(__file__).resolve().parents[2] / "rtl"
PROGRAM = "mac_array"
HEAD = struct.Struct("<6I")
"""An answer of the program before the SRAM."""
CHAIN = 0x1000
"""Address of the first command of a chain."""


@dataclass(frozen=True)
class Outcome:
    """The registers when a chain has ended, cycles in which the array was frozen, failed assertions, and the SRAM."""

    error: int
    error_command: int
    cycles: int
    frozen: int
    completed: int
    violations: int
    sram: np.ndarray


def sources(folder: Path = RTL / "array") -> list[Path]:
    """Packages first."""
    return sorted(folder.glob("*.sv"), key=lambda path: ("_pkg" not in path.name, path.name))


def lint() -> str:
    """The warnings of Verilator."""
    command = ["verilator", "--lint-only", "-Wall", "--top-module", "mac_array", *map(str, sources())]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def compile_array(folder: Path) -> Path:
    command = [
        *("verilator", "--cc", "--exe", "--build", "--assert", "-O3", "-j", "2", "--x-assign", "fast"),
        *("-Wno-fatal", "-Wno-WIDTH", "-Wno-UNUSED", "-Wno-VARHIDDEN", "-CFLAGS", "-O2 -DVL_USER_STOP"),
        *("--top-module", "mac_array", "--Mdir", str(folder), "-o", PROGRAM),
        *map(str, sources()),
        str(RTL / "testbench" / "mac_array_main.cpp"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / PROGRAM


def is_installed() -> bool:
    return shutil.which("verilator") is not None


def simulated(program: Path, cases: Sequence[tuple[np.ndarray, int]]) -> list[Outcome]:
    """Run the chain at `CHAIN` of each SRAM. A freeze seed that is not 0 takes the port away in random cycles."""
    request = b"".join(
        struct.pack("<I", SRAM_BYTES) + sram.tobytes() + struct.pack("<II", CHAIN, seed) for sram, seed in cases
    )
    done = subprocess.run([program], input=request, capture_output=True, check=False)
    size = HEAD.size + SRAM_BYTES
    assert len(done.stdout) == size * len(cases), done.stderr.decode()
    answers = (done.stdout[at : at + size] for at in range(0, size * len(cases), size))
    return list(map(_outcome, answers))


def _outcome(answer: bytes) -> Outcome:
    error, command, cycles, frozen, completed, violations = HEAD.unpack_from(answer)
    sram = np.frombuffer(answer, np.uint8, offset=HEAD.size)
    return Outcome(error, command, cycles, frozen, completed, violations, sram)


def modelled(sram: np.ndarray, figures: Mapping[str, int]) -> Outcome:
    """The outcome of the numpy model."""
    sram, address, total, completed = sram.copy(), CHAIN, 0, 0
    array = Array(sram, figures)
    while True:
        error, cycles = array.execute(address, first=completed == 0)
        total += cycles
        if error is not Error.NONE:
            return Outcome(error, address, total, 0, completed, 0, sram)
        completed += 1
        address = int(sram[address : address + 4].view("<u4")[0])
        if address == 0:
            return Outcome(0, 0, total, 0, completed, 0, sram)


def random_chain(random: np.random.Generator) -> np.ndarray:
    """An SRAM with a chain of one to three commands, sometimes with an error, each output apart from the operands."""
    while True:
        sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
        count = int(random.choice([1, 1, 2, 3]))
        commands = [random_command(random, sram) for _ in range(count)]
        if random.random() < 0.1:
            commands[-1] = spoilt(random, commands[-1])
        if any(map(overlaps, commands)):
            continue
        for index, command in enumerate(commands):
            place = CHAIN + index * COMMAND_BYTES
            last = index + 1 == count
            data = replace(command, next=0 if last else place + COMMAND_BYTES).pack()
            sram[place : place + COMMAND_BYTES] = np.frombuffer(data, np.uint8)
        return sram


def commands_of(sram: np.ndarray) -> list[Command]:
    address, found = CHAIN, []
    while address:
        found.append(Command.unpack(sram[address : address + COMMAND_BYTES].tobytes()))
        address = found[-1].next
    return found


def differences(program: Path, figures: Mapping[str, int], seed: int, count: int) -> list[str]:
    """What differs between `count` random chains in RTL and in the model: cycles, registers, or bytes of the SRAM."""
    random = np.random.default_rng(seed)
    cases = [(random_chain(random), int(random.choice([0, 0, 1 + index]))) for index in range(count)]
    found = []
    for (sram, _), outcome in zip(cases, simulated(program, cases), strict=True):
        expected = modelled(sram, figures)
        same = outcome.cycles == expected.cycles + outcome.frozen and outcome.violations == 0
        same &= (outcome.error, outcome.error_command) == (expected.error, expected.error_command)
        same &= outcome.completed == expected.completed and np.array_equal(outcome.sram, expected.sram)
        if not same:
            found.append(f"{commands_of(sram)}: {outcome} instead of {expected}")
    return found
