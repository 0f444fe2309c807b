"""Cycles of waits count for the layer after, cycles of sends for the layer before."""

from __future__ import annotations

from npukit.measure.messages import sends, waits
from npukit.plan.predict.timeline import CORE, Timeline, TimeSlice


def timeline(*slices: TimeSlice, together: int = 1, frames: int = 1) -> Timeline:
    return Timeline("net", "board", 1, tuple((100 * n, 100 * n + 90) for n in range(frames)), slices, together)


def wait(pe: int, start: int, end: int) -> TimeSlice:
    return TimeSlice(pe, CORE, "noc_wait", start, end)


def send(pe: int, start: int, end: int) -> TimeSlice:
    return TimeSlice(pe, CORE, "noc_send", start, end)


def work(pe: int, layer: str, start: int, end: int) -> TimeSlice:
    return TimeSlice(pe, "mac_array", layer, start, end, layer, 0)


def test_a_wait_belongs_to_the_layer_that_follows_and_a_send_to_the_one_before() -> None:
    seen = timeline(
        send(0, 0, 3), work(0, "a", 3, 10), send(0, 10, 14), wait(0, 14, 20), wait(0, 20, 21), work(0, "b", 21, 30)
    )
    assert waits(seen) == {"a": 0, "b": 7}
    assert sends(seen) == {"a": 4, "b": 0}, "what is sent before any layer are the inputs"


def test_the_pe_that_takes_longest_stands_for_all() -> None:
    seen = timeline(wait(0, 0, 5), work(0, "a", 5, 9), wait(1, 0, 8), work(1, "a", 8, 12))
    assert waits(seen) == {"a": 8}


def test_of_several_frames_it_is_the_mean_of_one() -> None:
    twice = (wait(0, 0, 6), work(0, "a", 6, 9), wait(0, 100, 106), work(0, "a", 106, 109))
    assert waits(timeline(*twice, frames=2)) == {"a": 6}
    assert waits(timeline(*twice, together=2)) == {"a": 6}
