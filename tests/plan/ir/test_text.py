"""The text of a plan: it reads back to an equal plan, prints repeated parts once, and errors name the fault."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.arrangement import Arrangement
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Plan, Send
from npukit.plan.ir.store import check_plan, load_plan
from npukit.plan.ir.text import print_plan
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import emitted_frame, on_one_pe
from plan.batch.test_batch_emitter import on_groups, on_rows
from plan.emit.test_allocate import assignments, small_nets
from plan.emit.test_replicas import rows_net
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def batch(micro_batches: int, groups: int = 3) -> Plan:
    """A plan with predictions: groups of two PEs; the root fetches the constants."""
    net = rows_net()
    wanted = Batch(
        on_groups(on_rows(net, (0, 1)), groups, first=1),
        micro_batches=micro_batches,
        prefetchers=(0,),
    )
    streamed = replace(wanted, stream=StreamWeights(frozenset(op.name for op in net.ops[:2]), 1024))
    return with_predictions(net, BOARD, emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), streamed))


@pytest.mark.exhaustive
@settings(max_examples=20)
@given(data=st.data())
def test_any_batch_reads_back(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    prefetchers = data.draw(st.sampled_from([(), (15,), (0,)]))
    groups = on_groups(data.draw(assignments(net)), data.draw(st.integers(1, 3)), first=1 if prefetchers == (0,) else 0)
    filtered = [op.name for op in net.ops if op.engine == "mac_array" and len(op.inputs) == 3]
    streamed = frozenset(data.draw(st.sets(st.sampled_from(filtered))))
    interleaved, micro_batches = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 3))
    wanted = Batch(groups, interleaved, micro_batches, StreamWeights(streamed), prefetchers=prefetchers)
    plan = with_predictions(net, BOARD, emit_batch(Problem(Graph(net), BOARD, engines(BOARD)), wanted))
    assert parse_plan(print_plan(plan)) == plan


@settings(max_examples=20)
@given(data=st.data())
def test_any_frame_reads_back(data: st.DataObject) -> None:
    net = data.draw(small_nets())
    plan = emitted_frame(Problem(Graph(net), BOARD, engines(BOARD)), data.draw(assignments(net)))
    assert parse_plan(print_plan(plan)) == plan


def test_a_group_more_is_a_line_more_for_each_pe() -> None:
    assert len(pe_lines(batch(2, groups=3))) == len(pe_lines(batch(2, groups=2))) + 2


def pe_lines(plan: Plan) -> list[str]:
    """Lines of all PEs except the root, without predictions."""
    text = re.sub(r"\n  stolen .*", "", print_plan(plan))
    return text[text.index("\npe 1 ") :].splitlines()


def test_replicas_of_a_pe_that_comes_behind_them_read_back() -> None:
    plan = batch(2)
    moved = replace(plan, pes=(plan.pes[0], *plan.pes[:0:-1]))
    assert print_plan(moved).index("\npe 6 as 1\n") < print_plan(moved).index("\npe 1 role")
    assert parse_plan(print_plan(moved)) == moved


def test_a_replica_that_differs_is_printed_in_full() -> None:
    plan = batch(2)
    changed = replace(plan, pes=tuple(replace(pe, role=9) if pe.pe == 6 else pe for pe in plan.pes))
    assert "\npe 6 as 1\n" in print_plan(plan)
    assert "\npe 6 role 9" in print_plan(changed)
    assert parse_plan(print_plan(changed)) == changed


def test_names_that_look_like_those_of_frames_read_back() -> None:
    b = Builder('a "net"')
    net = b.net(b.dense(b.dense(b.input(1, 32), 16), 8))
    names = {name: f'{name} of "frame 3" of frame 3 (2)' for name in net.tensors if name not in net.constants}
    ops = tuple(
        replace(
            op,
            inputs=tuple(names.get(name, name) for name in op.inputs),
            outputs=tuple(names[name] for name in op.outputs),
        )
        for op in net.ops
    )
    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name)) for name, tensor in net.tensors.items()
    }
    ends = {key: tuple(names[name] for name in getattr(net, key)) for key in ("inputs", "outputs")}
    strange = replace(net, ops=ops, tensors=tensors, **ends)
    plan = emitted_frame(Problem(Graph(strange), BOARD, engines(BOARD)), on_one_pe(Graph(strange), 0))
    assert parse_plan(print_plan(plan)) == plan


def test_an_arrangement_reads_back() -> None:
    plan = batch(1)
    form = Arrangement(640, 16, (1, 2, 3), (-24, 12, 4), "int16", -3)
    pe = plan.pes[1]
    strange = replace(pe, buffers=(replace(pe.buffers[0], arrangement=form), *pe.buffers[1:]))
    changed = replace(plan, pes=(plan.pes[0], strange, *plan.pes[2:]))
    assert parse_plan(print_plan(changed)) == changed


WRONG = {
    "plan": ("plan rows on", "plan rows off", "line 1 is not understood"),
    "no model": ("plan rows", "rows", "line 1"),
    "a buffer that is not there": ("= input0@0", "= nothing@0", "is not understood: '.*nothing"),
    "a step out of turn": ("\n  3 ", "\n  4 ", "is not understood"),
    "a PE twice": ("\npe 2 ", "\npe 1 ", "is not understood: 'pe 1"),
    "a replica of nothing": ("pe 6 as 1", "pe 6 as 2", "PE 6 is not as PE 2"),
    "a message that is missing": ("send 0 ", "send 99999 ", "numbers of its messages"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, what: str) -> None:
    before, after, told = WRONG[what]
    text = print_plan(batch(4))
    assert before in text
    (tmp_path / "plan.txt").write_text(text.replace(before, after, 1))
    with pytest.raises(NpukitError, match=rf"plan .*plan.txt is wrong: .*{told}"):
        load_plan(tmp_path / "plan.txt")


def test_a_message_is_sent_once() -> None:
    plan = check_plan(batch(3), rows_net(), BOARD)
    sender = next(pe for pe in plan.pes if any(isinstance(step, Send) for step in pe.steps))
    send = next(step for step in sender.steps if isinstance(step, Send))
    twice = replace(sender, steps=(*sender.steps, send))
    wrong = replace(plan, pes=tuple(twice if pe is sender else pe for pe in plan.pes))
    with pytest.raises(NpukitError, match=rf"message {send.message} is sent 2 times"):
        check_plan(wrong, rows_net(), BOARD)


def test_a_landing_on_pes_without_a_flag_is_told_with_its_line() -> None:
    text = print_plan(batch(3))
    wrong = re.sub(r"( to \d+) flag \d+", r"\1", text, count=1)
    assert wrong != text
    with pytest.raises(NpukitError, match="is not understood"):
        parse_plan(wrong)


def test_steps_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.plan.ir.parse.MOST_STEPS", 100)
    with pytest.raises(NpukitError, match="more than 100 steps"):
        parse_plan(print_plan(batch(4)))
