"""Independent work in separate processes, on all cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Generic, TypeVar

from npukit.errors import NpukitError
from npukit.host.budget import MOST_FILE, TRUSTED, Budget

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Results of `work` for each item, in the order of the items.

    Each item is done in a copy of this process, forked when the item comes; only the result comes back. Items are taken
    as cores become free. All work ends when the caller takes no more results. On one core, where processes cannot fork,
    or for a single item, `work` runs in this process, because the copy of a large process takes time.
    """
    may_fork = cores() > 1 and not multiprocessing.current_process().daemon
    if not may_fork or (isinstance(items, Sequence) and len(items) < 2):
        yield from map(work, items)
        return
    jobs: deque[_Job[Result]] = deque()
    try:
        for item in items:
            jobs.append(_Job(work, item))
            busy = [job.outcome for job in jobs if not job.is_done()]
            if len(busy) >= cores():
                wait(busy)
            while jobs and jobs[0].is_done():
                yield jobs.popleft().result()
        while jobs:
            yield jobs.popleft().result()
    finally:
        for job in jobs:
            job.end()


def apart(
    work: Callable[[], Result], subject: str, budget: Budget, size: int = 0, told: Callable[[str], None] | None = None
) -> Result:
    """The result of `work`, done in a copy of this process within the budget of `size` bytes. `subject`: of the error
    if the work exceeds the budget or dies. `told`: receives the text of each call of `tell` in the work. Where
    processes cannot fork, `work` runs in this process."""
    if sys.platform != "linux" or multiprocessing.current_process().daemon:
        return work()
    bounds = budget.of(size)
    job: _Job[Result] = _Job(partial(_within, bounds, subject), work)
    try:
        return job.result(f"{subject}: the process that reads it", told)
    except NpukitError:
        if job.status == -signal.SIGXCPU:
            raise _over(subject, f"{bounds.seconds:,} seconds of the processor") from None
        raise
    finally:
        job.end()


_waiting: list[Connection] = []
"""Connection to the waiting process, in the copy of a process."""


def tell(text: str) -> None:
    """Tells the waiting process of progress. In any other process nothing happens."""
    for each in _waiting:
        each.send(text)


def _within(bounds: Budget, subject: str, work: Callable[[], Result]) -> Result:
    import resource  # not on every system

    taken = int(Path("/proc/self/status").read_text(encoding="utf-8").partition("VmData:")[2].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (taken + bounds.memory, taken + bounds.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (bounds.seconds, bounds.seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, MOST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return work()
    except MemoryError as fault:
        raise _over(subject, f"{bounds.memory:,} bytes of memory") from fault


def _over(subject: str, most: str) -> NpukitError:
    return NpukitError(f"{subject} takes more than {most}", tries=[TRUSTED])


def shares(items: Sequence[Item]) -> list[Sequence[Item]]:
    """The items in one part per core at most, each in order. Parts have equal lengths; only the last may be shorter."""
    step = max(-(-len(items) // cores()), 1)
    return [items[start : start + step] for start in range(0, len(items), step)]


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class _Job(Generic[Result]):
    """One item in a separate process."""

    def __init__(self, work: Callable[[Item], Result], item: Item) -> None:
        context = multiprocessing.get_context("fork")
        self.outcome, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_report, args=(work, item, theirs), daemon=True)
        with warnings.catch_warnings():
            # Python 3.12 and later warn of any thread. The threads here belong to libraries, are idle, and are of no
            # use to the copy.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            self._process.start()
        theirs.close()

    @property
    def status(self) -> int | None:
        return self._process.exitcode

    def is_done(self) -> bool:
        return self.outcome.poll()

    def result(self, who: str = "a process that worked on a part", told: Callable[[str], None] | None = None) -> Result:
        try:
            while isinstance(received := self.outcome.recv(), str):
                if told:
                    told(received)
            fault, result = received
        except EOFError:
            self._process.join()
            raise NpukitError(
                f"{who} ended before it was done (status {self._process.exitcode})",
                tries=["more memory, if that ran out", "fewer PEs: --pes N"],
            ) from None
        self.end()
        if fault:
            raise fault
        return result

    def end(self) -> None:
        self._process.terminate()
        self._process.join()
        self.outcome.close()


def _report(work: Callable[[Item], Result], item: Item, outcome: Connection) -> None:
    """Do an item and send the result or the error. Ctrl-C goes to the waiting process, which then ends this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _waiting[:] = [outcome]
    try:
        outcome.send((None, work(item)))
    except Exception as fault:
        outcome.send((fault, None))
