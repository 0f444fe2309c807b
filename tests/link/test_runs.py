"""Runs are started, read, stopped and resumed, and the board is reset, once each, however often requests repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from link.device_process import Pipes
from link.test_faults import Damage, Faulty, cut_end, drop, repeat
from npukit.errors import NpukitError
from npukit.link.conversation import Refused
from npukit.link.messages import Status
from npukit.link.runs import Stage
from npukit.link.session import Session

FOR_EVER = 1 << 31
FRAME_CYCLES = 8589941520
"""Cycles of a frame of the test net."""


def test_a_run_answers_while_it_is_under_way(pipes: Pipes) -> None:
    with Session(pipes) as session:
        run = session.start(FOR_EVER)
        first, pes, second = run.state(), session.pes(), run.state()
        assert (first.stage, second.stage) == (Stage.UNDER_WAY, Stage.UNDER_WAY)
        assert first.ran <= pes[0].frames <= second.ran
        assert run.stop().stage == Stage.STOPPED


def test_a_stopped_run_says_how_much_of_it_ran_and_goes_on_from_there(pipes: Pipes) -> None:
    with Session(pipes) as session:
        run = session.start(FOR_EVER)
        stopped, again = run.stop(), run.stop()
        assert stopped == again
        assert (stopped.cycles, stopped.frames) == (stopped.ran * FRAME_CYCLES, FOR_EVER)
        assert session.pes()[0].frames == stopped.ran
        assert run.resume().stage == Stage.UNDER_WAY
        assert run.stop().ran >= stopped.ran


def test_a_run_ends_by_itself(pipes: Pipes) -> None:
    with Session(pipes) as session:
        run = session.start(7)
        over = run.wait()
        assert (over.stage, over.ran, over.cycles) == (Stage.OVER, 7, 7 * FRAME_CYCLES)
        assert run.resume() == run.stop() == over


def test_a_single_frame_leaves_outputs(pipes: Pipes) -> None:
    with Session(pipes) as session:
        session.write_input(0, bytes(900))
        session.write_input(1, b"\3\0")
        session.start(1).wait()
        assert session.read_output(0) == b"\3" * 900


def test_one_run_at_a_time(pipes: Pipes) -> None:
    with Session(pipes) as session:
        run = session.start(FOR_EVER)
        with pytest.raises(Refused, match="a run is under way") as refused:
            session.run()
        assert refused.value.status == Status.RUNNING
        with pytest.raises(Refused, match="a run is under way"):
            session.start(1)
        run.stop()
        session.run()
        with pytest.raises(Refused, match="no such run"):
            run.resume()


def test_a_run_that_fails_is_an_error_with_its_code(pipes: Pipes) -> None:
    with Session(pipes) as session:
        session.write_input(1, b"\0\1")
        with pytest.raises(NpukitError, match="PE 5 stopped with error code -7"):
            session.start(3).wait()


def test_another_host_ends_the_run(device_program: Path) -> None:
    pipes = Pipes(device_program)
    first, second = Session(pipes), Session(pipes)
    first.open()
    run = first.start(FOR_EVER)
    second.open()
    frames = second.pes()[0].frames
    assert second.pes()[0].frames == frames
    second.run()
    with pytest.raises(Refused, match="another host took over"):
        run.state()
    second.close()


def test_a_reset_begins_anew(pipes: Pipes) -> None:
    with Session(pipes) as session:
        session.run()
        assert session.counters().cycles > 0
        assert session.reset().model == "shifter"
        assert session.counters().cycles == 0
        session.run()


@pytest.mark.parametrize("damage", [drop, repeat, cut_end])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_lost_and_repeated_requests_change_nothing(pipes: Pipes, damage: Damage, direction: str) -> None:
    """Disturb one exchange of START, READ_RUN, STOP, READ_PES, READ_RUN, START again, RESET, in turn."""
    for disturbed in range(7):
        faulty = Faulty(pipes, {})
        with Session(faulty) as session:
            faulty.damage[direction, faulty.frames[direction] + disturbed] = damage
            run = session.start(FOR_EVER)
            run.state()
            assert run.stop().ran == session.pes()[0].frames
            run.resume()
            assert session.reset().pe_count == 2
            assert session.counters().cycles == 0, disturbed


def test_events_are_counted_and_the_oldest_go_first(pipes: Pipes) -> None:
    with Session(pipes) as session:
        assert session.events(5, 0).events == ()
        session.run(frames=3)
        events = session.events(5, 0)
        assert (events.written, events.first) == (6, 2)
        assert [event.step for event in events.events] == [0, 0xFFFF] * 2
        assert [event.cycle for event in events.events] == [n * FRAME_CYCLES for n in (1, 2, 2, 3)]
        assert session.events(5, 5).events == events.events[3:]
        assert session.events(5, 100).written == 6


def test_events_of_another_pe_over_the_end_of_its_ring(pipes: Pipes) -> None:
    with Session(pipes) as session:
        events = session.events(6, 3)
        assert (events.written, events.first) == (6, 3)
        assert [(event.cycle - (1 << 32), event.step) for event in events.events] == [
            (800, 0xFFFF),
            (900, 1),
            (950, 0xFFFF),
        ]
        with pytest.raises(Refused, match="does not run it"):
            session.events(7, 0)
