"""Outgoing messages of a PE as slices of a single track."""

from __future__ import annotations

from npukit.measure.perfetto import perfetto
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.timeline import Movement, Timeline


def slices(*movements: Movement) -> list[tuple[int, int]]:
    """Start and end of the drawn messages from PE 0."""
    timeline = Timeline("net", "board", 300_000_000, ((0, 100),), (), movements=movements)
    events = perfetto(timeline, Plan("net", "board", "latency", ()), [0])["traceEvents"]
    drawn = [e["args"] for e in events if e["ph"] == "X" and e["name"].startswith("to PE")]
    return [(each["cycle"], each["cycle"] + each["cycles"]) for each in drawn]


def test_a_multicast_ends_where_the_next_message_leaves() -> None:
    multicast = Movement(0, 1, 16, 10, 30, 0, 10), Movement(0, 2, 16, 10, 38, 0, 10)
    assert slices(*multicast, Movement(0, 3, 16, 36, 50, 0, 36)) == [(10, 30), (10, 36), (36, 50)]
    assert slices(*reversed(multicast), Movement(0, 3, 16, 20, 50, 0, 20)) == [(10, 20), (10, 20), (20, 50)]


def test_other_places_do_not_matter() -> None:
    assert slices(Movement(0, 1, 16, 10, 30, 0, 10), Movement(4, 1, 16, 12, 40, 4, 12)) == [(10, 30)]
