"""Work whose objects live to its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Runs a block without searches for garbage in cycles.

    A large plan is millions of objects, and to go through all of them again and again takes as long as to make them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
