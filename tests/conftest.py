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
from npukit.tuning import TUNED_VARIABLE
from object_cache import share_objects

settings.register_profile(
    "npukit",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("npukit")
"""No deadline: the duration of an example measures the load of the machine. Function-scoped fixtures are allowed,
because these are folders and libraries, equal for all examples."""


PASSED, NOT_AGAIN, SLOW_PART = "--passed", "--not-again", "--slow-part"
SLOW = Path(__file__).with_name("slow.txt")
"""Names of the exhaustive tests that took longest in a run of `make test-all`, by its list of durations."""

PARTS = 6
"""Parts of the slow tests. CI runs the part that the commit chooses."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(PASSED, type=Path, metavar="FILE", help="write the names of the tests that passed")
    parser.addoption(NOT_AGAIN, type=Path, metavar="FILE", help="leave out the tests named in a file of --passed")
    parser.addoption(SLOW_PART, type=int, metavar="N", help="of the slow tests, run those of part N % 6 only")


class Passed:
    """Writes the names of the tests that passed, for a later run with more tools."""

    def __init__(self, file: Path) -> None:
        self._file, self._names = file, list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._names.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.write_text("\n".join(sorted(self._names)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that passed before, and the slow tests of other parts."""
    file, part = config.getoption(NOT_AGAIN), config.getoption(SLOW_PART)
    left = set(file.read_text().splitlines()) if file else set[str]()
    if part is not None:
        slow = SLOW.read_text().splitlines()
        left |= set(slow).difference(slow[part % PARTS :: PARTS])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
    items[:] = [item for item in items if item.nodeid not in left]


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder of shared builds in the first process, before its workers start, and remove the folder at the
    end.

    Tuning records of the user on this machine are ignored.
    """
    if SHARED not in os.environ:
        folder = os.environ[SHARED] = tempfile.mkdtemp(prefix="npukit-builds-")
        os.environ[TUNED_VARIABLE] = f"{folder}/tuned.json"
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    if (passed := config.getoption(PASSED)) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(passed))
    check.CHECKED_SECONDS = 0.0  # tests of a build's outputs run the validation themselves
    share_objects(Path(os.environ[SHARED]) / "objects")


def pytest_collection_finish() -> None:
    """Freeze the imported modules: otherwise each garbage collection traverses a million TVM objects."""
    gc.collect()
    gc.freeze()
