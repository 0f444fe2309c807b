"""What a file may take of a worker: seconds of the processor, and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CPU_SECONDS, MEMORY = 10, 1 << 30


def limit_memory() -> None:
    """No more than MEMORY beside what this process has by now. Copies of it may raise the limit."""
    taken = int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_DATA, (taken + MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


@contextmanager
def limited_time() -> Iterator[None]:
    """The process ends with SIGPROF if this takes more than CPU_SECONDS, whatever code it is in."""
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
