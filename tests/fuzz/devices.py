"""Verbs on a device with false replies: PYTHONPATH=kit:tests python -m fuzz.devices --minutes 10

The board is the built-in emulator. On the way to the host, replies are replaced by zeros, ones, noise or odd numbers,
cut short, doubled, delayed, or refused. A verb must end with possible figures or report an error. Any other end is
printed with the number that repeats it; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import FAULT, LOG, REPLY_HEADER_BYTES
from npukit.link.transport import Transport
from npukit.measure import target

DIGITS = CHECKOUT / "examples" / "digits" / "digits_int8.tflite"
OWN_FAULT = "npukit itself failed"
STATUSES = (0, 1, 3)
"""Exit statuses: figures, an error, differing outputs."""
ODD = (0, 1, 2, 0x7F, 0xFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF)
COUNTS = ("busy", "cycles", "instructions", "asleep", "frames", "interval", "wait", "send")
LARGEST = 1 << 62
SECONDS = 0.5

Damage = Callable[[bytes, random.Random], bytes]


def _odd_word(payload: bytes, dice: random.Random) -> bytes:
    words = bytearray(payload)
    place = dice.randrange(max(len(payload) - 3, 1)) & ~3
    words[place : place + 4] = struct.pack("<I", dice.choice(ODD))
    return bytes(words)


def filled(dice: random.Random) -> Damage:
    """Set some words of all replies to the same number, like stopped or saturated counters."""
    return words_of(dice.choice(ODD), 4 * dice.randrange(12), 4 * dice.randrange(1, 20))


def words_of(word: int, first: int, count: int) -> Damage:
    """Repeat one word over `count` bytes of a payload, from byte `first`."""

    def damage(payload: bytes, _: random.Random) -> bytes:
        part = payload[first : first + count]
        return payload[:first] + (struct.pack("<I", word) * count)[: len(part)] + payload[first + count :]

    return damage


DAMAGES: Sequence[Damage] = (
    lambda payload, _: bytes(len(payload)),
    lambda payload, _: b"\xff" * len(payload),
    lambda payload, dice: dice.randbytes(len(payload)),
    lambda payload, dice: payload[: dice.randrange(len(payload) + 1)],
    lambda payload, dice: payload + dice.randbytes(dice.randint(1, 40)),
    *(_odd_word,) * 4,
)


@dataclass
class Liar:
    """A transport with damaged replies to requests of `kinds`, after the first `honest` replies."""

    board: Transport
    kinds: Collection[int]
    how: str
    damage: Damage
    honest: int = 0
    dice: random.Random = field(default_factory=random.Random)
    decoder: FrameDecoder = field(default_factory=FrameDecoder)
    held: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, board: Transport, dice: random.Random) -> Liar:
        kinds = [dice.randint(1, 17) for _ in range(dice.randint(1, 3))] if dice.random() < 0.9 else range(32)
        how = dice.choice(("payload",) * 5 + ("twice", "late", "status", "fault", "log"))
        damage = filled(dice) if dice.random() < 0.5 else dice.choice(DAMAGES)
        return cls(board, kinds, how, damage, dice.choice((0, 0, 1, 2, 5, 20)), dice)

    def write(self, data: bytes) -> None:
        self.board.write(data)

    def read(self, timeout: float) -> bytes:
        return b"".join(
            encode_frame(told) for packet in self.decoder.feed(self.board.read(timeout)) for told in self._told(packet)
        )

    def close(self) -> None:
        self.board.close()

    def _told(self, packet: bytes) -> list[bytes]:
        if len(packet) < REPLY_HEADER_BYTES or packet[1] & 0x7F not in self.kinds:
            return [packet]
        self.honest -= 1
        if self.honest >= 0:
            return [packet]
        head, payload = packet[:REPLY_HEADER_BYTES], packet[REPLY_HEADER_BYTES:]
        if self.how == "payload":
            return [head + self.damage(payload, self.dice)]
        if self.how == "late":
            self.held, late = [packet], self.held
            return late
        status = struct.pack("<I", self.dice.choice(ODD))
        others = {
            "twice": [packet, packet],
            "status": [head[:8] + status + head[12:] + payload],
            "fault": [head[:1] + bytes([FAULT]) + packet[2:], packet],
            "log": [head[:1] + bytes([LOG]) + head[2:] + self.dice.randbytes(30), packet],
        }
        return others[self.how]


def verbs(build: Path, folder: Path) -> list[list[str]]:
    """Command lines with a device as target."""
    on = ["--on", "liar"]
    return [
        ["validate", str(build), "--cases", "2", *on],
        ["bench", str(build), "--frames", "2", *on],
        ["bench", str(build), "--frames", "1", *on],
        ["run", str(build), "--inputs", str(build / "golden.npz"), "-o", str(folder / "answers.npz"), *on],
        ["trace", str(build), "-o", str(folder / "trace.json"), *on],
        ["monitor", str(build), "--every", "0", "--times", "2", *on],
        ["monitor", str(build), "--every", "0", "--times", "2", "--start", "3", *on],
        ["monitor", str(build), "--every", "0", "--times", "1", "--reset", "--self-test", *on],
    ]


@contextmanager
def lying(liar: Callable[[Transport], Liar]) -> Iterator[None]:
    """Replace every device by a `Liar`, and shorten all time-outs."""
    honest = target.start

    def start(build: Any, name: str, emulation: Any, progress: Any) -> Liar:
        return liar(honest(build, "emulator", emulation, progress))

    with ExitStack() as patches:
        for patched in (
            patch.object(target, "start", start),
            patch.object(target, "ANSWER_SECONDS", SECONDS),
            patch("npukit.link.session._RUN_SECONDS", SECONDS),
            patch("npukit.link.session._SETTLE_SECONDS", SECONDS),
        ):
            patches.enter_context(patched)
        yield


def outcome(build: Path, folder: Path, number: int) -> tuple[str, str]:
    """The command line of case `number`, and the fault in its end; empty without a fault."""
    dice = random.Random(number)
    command = [*dice.choice(verbs(build, folder)), *dice.choice(([], ["--json"]))]
    with lying(partial(Liar.of, dice=dice)):
        done = CliRunner().invoke(app, command)
    return " ".join(command), fault_in(done)


def fault_in(done: Any) -> str:
    """The fault in a command's end; empty without a fault."""
    if OWN_FAULT in done.output:
        return next(line for line in done.output.splitlines() if OWN_FAULT in line)
    if done.exit_code not in STATUSES or not isinstance(done.exception, SystemExit | None):
        return f"status {done.exit_code}: {done.exception!r}"
    if done.exit_code == 0 and done.stdout.startswith(("{", "[")):
        return next(_impossible(json.loads(done.stdout)), "")
    return ""


def _impossible(told: Any, name: str = "") -> Iterator[str]:
    """Figures with impossible values."""
    if isinstance(told, dict):
        for key, value in told.items():
            yield from _impossible(value, key)
    elif isinstance(told, list):
        for value in told:
            yield from _impossible(value, name)
    elif isinstance(told, float) and not isfinite(told):
        yield f"{name} is {told}"
    elif isinstance(told, int | float) and any(count in name for count in COUNTS) and not 0 <= told < LARGEST:
        yield f"{name} is {told:,}"


def run(build: Path, first: int, more: Callable[[int], bool]) -> Iterator[tuple[int, str, str]]:
    """Number, command line and fault of consecutive cases."""
    with tempfile.TemporaryDirectory() as folder:
        number = first
        while more(number - first):
            yield number, *outcome(build, Path(folder), number)
            number += 1


def traced_build(folder: Path) -> Path:
    """A build of the digits on four PEs, with tracing firmware."""
    from npukit import api

    return api.build(DIGITS, output=folder, options=api.Options(pes=4, trace=True)).folder


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--count", type=int, default=1 << 30)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    end, counts = time.monotonic() + 60 * given.minutes, Counter[bool]()
    with tempfile.TemporaryDirectory() as folder:
        build = traced_build(Path(folder) / "digits")
        for number, command, fault in run(
            build, given.first, lambda done: done < given.count and time.monotonic() < end
        ):
            counts[bool(fault)] += 1
            if fault:
                print(f"{number}: npukit {command}: {fault[:300]}", flush=True)
    print(f"{counts.total():,} commands, {counts[True]:,} faults")
    return 1 if counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
