"""What several tests share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]

SHARED = "NPUKIT_TEST_BUILDS"
"""The variable with the folder in which the processes of one run of the tests keep what they share."""


def models() -> Path:
    """The folder of third-party models, or skip: they are never part of the project."""
    folder = CHECKOUT.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip("the third-party models (../shared/models) are not here")
    return folder


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """One process at a time; the others find what the first has made."""
    with lock.open("w") as file:
        flock(file, LOCK_EX)
        yield


def first_of(cases: Sequence[object], count: int = 1) -> list[Any]:
    """The values of a parameter; all but the first so many only where everything is run."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in values)]


FRAMES = 400
"""Deep enough for what TVM and Python's own modules need, and for no walk along a graph."""


@contextmanager
def shallow() -> Iterator[None]:
    """So few frames of Python's that nothing can recurse over hundreds of ops."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
