"""Work in separate processes: results in order, the same results on a single core, no processes left behind."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
import time

import pytest

from npukit.errors import DoesNotFit, NpukitError
from npukit.host import parallel
from npukit.host.budget import Budget
from npukit.host.parallel import apart, in_order, tell

SMALL = Budget(1 << 26, 1)


@pytest.fixture(params=[1, 3])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(parallel, "cores", lambda: request.param)
    return request.param


def test_results_come_in_the_order_of_the_items_whatever_is_done_first(cores: int) -> None:
    def work(item: int) -> tuple[int, bool]:
        time.sleep(0.02 * (5 - item))
        return item, os.getpid() == here

    here = os.getpid()
    assert list(in_order(work, range(5))) == [(item, cores == 1) for item in range(5)]


def test_a_single_item_is_not_worth_a_copy_of_this_process() -> None:
    assert list(in_order(lambda item: (item, os.getpid()), [7])) == [(7, os.getpid())]


def test_an_item_sees_what_this_process_knows_when_it_comes(cores: int) -> None:
    known: list[int] = []
    for each in in_order(lambda item: (item, len(known)), iter(range(6))):
        known.append(each[1])
    assert cores > 1 or known == list(range(6))
    assert known == sorted(known)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="warns of no threads")
@pytest.mark.filterwarnings("error")
def test_copies_beside_threads_are_made_without_a_warning() -> None:
    stop = threading.Event()
    beside = threading.Thread(target=stop.wait)
    beside.start()
    try:
        assert apart(lambda: 7, "seven", SMALL) == 7
    finally:
        stop.set()
        beside.join()


def test_a_fault_is_that_of_the_work_with_all_it_says(cores: int) -> None:
    def work(item: int) -> int:
        raise DoesNotFit(f"item {item} on {cores}", facts=["a fact"], tries=["less"])

    with pytest.raises(DoesNotFit, match="item 0") as fault:
        list(in_order(work, range(3)))
    assert (fault.value.facts, fault.value.tries) == (("a fact",), ("less",))


def test_who_takes_no_more_leaves_nothing_running(cores: int) -> None:
    def work(item: int) -> int:
        time.sleep(60 if item else 0)
        return item

    taken = in_order(work, iter([0, *([1] * (cores - 1))]))
    begun = time.monotonic()
    assert next(taken) == 0
    taken.close()
    assert not multiprocessing.active_children()
    assert time.monotonic() - begun < 50


def test_a_process_that_is_killed_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    with pytest.raises(NpukitError, match="before it was done"):
        list(in_order(lambda item: os.kill(os.getpid(), 9), range(2)))


def _dies() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_work_apart_tells_of_its_progress() -> None:
    def work() -> int:
        tell("half")
        tell("nearly")
        return 7

    heard = list[str]()
    assert apart(work, "model", SMALL, told=heard.append) == 7
    assert heard == ["half", "nearly"]
    assert apart(work, "model", SMALL) == 7


def test_work_apart_may_die_or_take_too_much_memory() -> None:
    assert apart(lambda: 7, "model", SMALL) == 7
    with pytest.raises(NpukitError, match=r"model: the process that reads it ended .* \(status -11\)"):
        apart(_dies, "model", SMALL)
    with pytest.raises(NpukitError, match="model takes more than 67,108,864 bytes of memory"):
        apart(lambda: len(bytearray(1 << 28)), "model", SMALL)
    assert apart(lambda: len(bytearray(1 << 28)), "model", SMALL, size=1 << 23) == 1 << 28


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_work_apart_may_take_too_long() -> None:
    """The time limit also ends a long call of C, while Python handles no signals."""
    used = time.process_time()
    with pytest.raises(NpukitError, match="model takes more than 1 seconds of the processor") as fault:
        apart(lambda: re.match(r"(a|a)*b", "a" * 60), "model", SMALL)
    assert fault.value.tries
    assert time.process_time() - used < 1
