"""Random commands of the MAC array and copies of the DMA, with the results of Renode's C# devices.

`device_vectors.json` is made where Mono is: PYTHONPATH=kit:tests python -m emulator.device_vectors. The memories are
bytes of SHAKE-128: the file holds only changes to them.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from emulator.commands import FIRST_FREE, FIRST_STACK, SRAM_BYTES, random_command, spoilt
from emulator.renode.devices import Devices, compile_devices
from npukit.board.board import load_board
from oracles.dma_model import NO_FLAG, Descriptor

FILE = Path(__file__).with_name("device_vectors.json")
COMMAND, DESCRIPTOR = 0x1000, 0x1_1000
COPIED = (0x1_2000, 0x1_C000)
"""Address range of sources and destinations of copies."""

_COMMANDS, _COPIES = 48, 32
_ARRAY_DOORBELL, _BUSY_CYCLES, _ARRAY_ERROR = 0x00, 0x0C, 0x10
_DMA_DOORBELL, _DMA_ERROR = 0x00, 0x0C


@dataclass(frozen=True)
class CommandVector:
    """A command and the patches of its random memory; error, cycles, and the CRC of the memory afterwards from
    FIRST_FREE on."""

    number: int
    command: str
    patches: tuple[tuple[int, str], ...]
    error: int
    cycles: int
    crc: int

    def memory(self) -> np.ndarray:
        sram = random_memory(f"command {self.number}")
        for address, content in (*self.patches, (COMMAND, self.command)):
            put(sram, address, bytes.fromhex(content))
        return sram


@dataclass(frozen=True)
class CopyVector:
    """A descriptor of PE 0; error, and CRCs of the memories afterwards by number of PE."""

    number: int
    descriptor: str
    error: int
    crcs: dict[str, int]

    def memories(self) -> dict[int, np.ndarray]:
        found = {int(pe): random_memory(f"copy {self.number} PE {pe}") for pe in self.crcs}
        put(found[0], DESCRIPTOR, bytes.fromhex(self.descriptor))
        return found


def load() -> tuple[list[CommandVector], list[CopyVector]]:
    told = json.loads(FILE.read_text())
    commands = [CommandVector(**{**v, "patches": tuple(map(tuple, v["patches"]))}) for v in told["commands"]]
    return commands, [CopyVector(**v) for v in told["copies"]]


def random_memory(name: str) -> np.ndarray:
    return np.frombuffer(hashlib.shake_128(name.encode()).digest(SRAM_BYTES), np.uint8).copy()


def put(sram: np.ndarray, address: int, content: bytes) -> None:
    sram[address : address + len(content)] = np.frombuffer(content, np.uint8)


def crc_of_command(sram: np.ndarray) -> int:
    return zlib.crc32(sram[FIRST_FREE:FIRST_STACK].tobytes())


def crc_of_copy(sram: np.ndarray) -> int:
    return zlib.crc32(sram[slice(*COPIED)].tobytes())


# --- generation


def in_csharp(devices: Devices, vector: CommandVector) -> CommandVector:
    """The vector with the results of the C# devices."""
    before = devices.array(0, _BUSY_CYCLES)
    devices.write(0, 0, vector.memory().tobytes())
    devices.set_array(0, _ARRAY_DOORBELL, COMMAND)
    devices.let_time_pass()
    error = devices.array(0, _ARRAY_ERROR)
    devices.set_array(0, _ARRAY_ERROR, 0)
    cycles = devices.array(0, _BUSY_CYCLES) - before
    return replace(vector, error=error, cycles=cycles, crc=crc_of_command(np.frombuffer(devices.read(0), np.uint8)))


def copied_in_csharp(devices: Devices, vector: CopyVector) -> CopyVector:
    for pe, memory in vector.memories().items():
        devices.write(pe, 0, memory.tobytes())
    devices.set_noc(0, _DMA_DOORBELL, DESCRIPTOR)
    devices.let_time_pass()
    error = devices.noc(0, _DMA_ERROR)
    devices.set_noc(0, _DMA_ERROR, 0)
    crcs = {pe: crc_of_copy(np.frombuffer(devices.read(int(pe)), np.uint8)) for pe in vector.crcs}
    return replace(vector, error=error, crcs=crcs)


def _commands() -> Iterator[CommandVector]:
    random = np.random.default_rng(2048)
    for number in range(_COMMANDS):
        plain = random_memory(f"command {number}")
        sram = plain.copy()
        command = random_command(random, sram)
        command = spoilt(random, command) if random.random() < 0.2 else command
        yield CommandVector(number, command.pack().hex(), tuple(_patches(plain, sram)), 0, 0, 0)


def _patches(plain: np.ndarray, sram: np.ndarray) -> Iterator[tuple[int, str]]:
    """Differing stretches. Stretches with few equal bytes between them are merged."""
    places = np.flatnonzero(plain != sram)
    for part in np.split(places, np.flatnonzero(np.diff(places) > 16) + 1) if places.size else []:
        first, end = int(part[0]), int(part[-1]) + 1
        yield first, sram[first:end].tobytes().hex()


def _copies() -> Iterator[CopyVector]:
    random = np.random.default_rng(2025)
    for number in range(_COPIES):
        row_bytes, rows = (int(value) for value in random.integers(1, 70, 2))
        source_pe, destination_pe = (int(pe) for pe in random.integers(0, 16, 2))
        descriptor = Descriptor(
            source_pe=source_pe,
            source=0x1_4000 + int(random.integers(0, 64)),
            destination_pe=destination_pe if number % 8 else 16 + number,
            destination=0x1_8000 + int(random.integers(0, 64)) if number % 8 != 4 else SRAM_BYTES - 3,
            row_bytes=row_bytes + 3,
            rows=rows,
            source_stride=int(random.integers(-90, 90)),
            destination_stride=int(random.integers(-90, 90)),
            source_flag=1 if source_pe == 0 or number % 8 == 6 else NO_FLAG,
            destination_flag=2 if number % 8 != 2 else 64,
        )
        pes = sorted({0, source_pe, destination_pe})
        yield CopyVector(number, descriptor.pack().hex(), 0, {str(pe): 0 for pe in pes})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = compile_devices(Path(folder))
        with Devices(program, load_board("pe-mesh")) as devices:
            commands = [asdict(in_csharp(devices, vector)) for vector in _commands()]
            copies = [asdict(copied_in_csharp(devices, vector)) for vector in _copies()]
    lines = (",\n".join(map(json.dumps, vectors)) for vectors in (commands, copies))
    FILE.write_text('{{"commands": [\n{}\n],\n"copies": [\n{}\n]}}\n'.format(*lines))


def descriptor_of(vector: CopyVector) -> Descriptor:
    words = struct.unpack("<6I 2H 2i 2BH 2I", bytes.fromhex(vector.descriptor))
    return Descriptor(*words[:12])


if __name__ == "__main__":
    main()
