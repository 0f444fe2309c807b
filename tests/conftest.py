"""State shared by the processes of one test run."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from helpers import SHARED
from npukit.measure import check
from npukit.tuning import VARIABLE
from object_cache import share_objects

settings.register_profile(
    "npukit",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("npukit")
"""No deadline: the duration of an example measures the load of the machine. Function-scoped fixtures are allowed,
because these are folders and libraries, equal for all examples."""


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder of shared builds in the first process, before its workers start, and remove the folder at the
    end.

    Tuning records of the user on this machine are ignored.
    """
    if SHARED not in os.environ:
        folder = os.environ[SHARED] = tempfile.mkdtemp(prefix="npukit-builds-")
        os.environ[VARIABLE] = f"{folder}/tuned.json"
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    check.CHECKED_SECONDS = 0.0  # tests of a build's outputs run the validation themselves
    share_objects(Path(os.environ[SHARED]) / "objects")


def pytest_collection_finish() -> None:
    """Freeze the imported modules: otherwise each garbage collection traverses a million TVM objects."""
    gc.collect()
    gc.freeze()
