"""Sends numbers to a worker, and detects a silent or dead worker."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from fuzz.models.budget import CPU_SECONDS
from helpers import CHECKOUT

START_SECONDS, SECONDS = 240, 120
"""Time limits on a busy machine: the start of a worker, and a file with its oracle."""

SOUND = ("net", "equal", "refused")
NOT_JUDGED = "not judged"
"""Beginning of an answer, followed by the reason."""

DEATHS = {-signal.SIGPROF: f"slow: more than {CPU_SECONDS} seconds of the processor", -signal.SIGKILL: "killed"}


@dataclass(frozen=True)
class Fault:
    """File `number` was neither read nor refused."""

    number: int
    what: str

    def keep(self, parser: str, folder: Path | None) -> None:
        if folder:
            from fuzz.models.worker import damaged_file

            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self.number}.{parser}").write_bytes(damaged_file(parser, self.number))


def run(parser: str, first: int, more: Callable[[], bool]) -> Iterator[str | Fault]:
    """The outcome of each file. A lost worker is replaced."""
    worker = Worker(parser)
    for number in count(first):
        if not more():
            break
        said = worker.ask(number)
        yield said if said in SOUND or said.startswith(NOT_JUDGED) else Fault(number, said)
        if worker.lost:
            worker.stop()
            worker = Worker(parser)
    worker.stop()


class Worker:
    def __init__(self, parser: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT / 'kit'}{os.pathsep}{CHECKOUT / 'tests'}"}
        command = [sys.executable, "-m", "fuzz.models.worker", parser]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert self._process.stdout is not None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self.lost = False
        ready = self._line(START_SECONDS)
        assert ready == "ready", f"the worker did not start: {ready}"

    def ask(self, number: int) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        return self._line(SECONDS).encode().decode("unicode_escape")

    def _line(self, seconds: float) -> str:
        assert self._process.stdout is not None
        if not self._selector.select(seconds):
            self.lost = True
            return f"nothing for {seconds} seconds"
        line = self._process.stdout.readline()
        if not line:
            self.lost = True
            status = self._process.wait()
            return DEATHS.get(status, f"the process died with status {status}")
        return line.rstrip("\n")

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()
