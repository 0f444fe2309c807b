"""What the processes of one run of the tests share."""

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
"""How long an example takes says how busy the machine is; fixtures are folders and libraries, the same for all."""


def pytest_configure(config: pytest.Config) -> None:
    """The first process makes the folder of shared builds, before its workers start, and takes it away at the end.

    What somebody has tuned on this machine changes none of them.
    """
    if SHARED not in os.environ:
        folder = os.environ[SHARED] = tempfile.mkdtemp(prefix="npukit-builds-")
        os.environ[VARIABLE] = f"{folder}/tuned.json"
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    check.CHECKED_SECONDS = 0.0  # tests that look at what a build computes validate it
    share_objects(Path(os.environ[SHARED]) / "objects")


def pytest_collection_finish() -> None:
    """Collections of garbage pass over the modules: they would look through a million objects of TVM's each time."""
    gc.collect()
    gc.freeze()
