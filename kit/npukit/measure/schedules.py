"""Validation under other schedules: deployed frames again, with seeded delays of messages and PEs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

import numpy as np

from npukit.emulator.schedule import Schedule
from npukit.errors import NpukitError
from npukit.measure.alone import check_alone
from npukit.measure.cases import Cases, sequences
from npukit.measure.target import Target
from npukit.measure.validate import (
    DEPLOYED,
    LISTED_MISMATCHES,
    Mismatch,
    Validation,
    differing_outputs,
    run_round,
    run_zeros,
    validate,
)
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.plan.ir.plan import Plan
from npukit.progress import Progress

MOST_SCHEDULES = 8
MOST_ROUNDS = 2
"""Rounds under each schedule, for a network with states."""


def compare(target: Target, net: Net, plan: Plan, cases: Cases, seed: int | None, shown: Progress) -> Validation:
    """Compare every case, then some under each of the usual schedules. `seed`: only under that schedule."""
    if seed is not None:
        nothing = Validation(target.name, cases.count, outputs_equal=True, mismatches=(), layers_checked=0)
        return _rerun(target, net, plan, cases, nothing, [Schedule(seed)], shown)
    found = validate(target, net, plan, cases, shown)
    found = check_alone(target, net, plan, cases, found) if found.passed else found
    return _rerun(target, net, plan, cases, found, _usual(target, plan, cases), shown) if found.passed else found


def _usual(target: Target, plan: Plan, cases: Cases) -> list[Schedule]:
    """The schedules of a validation without a seed. Empty on other targets, or where nothing runs concurrently. At most
    one for two rounds, or for two sequences of rounds."""
    concurrent = target.board.noc or target.board.accelerator
    most = -(-len(sequences(cases, plan.frames_of_all)) // 2)
    return [Schedule(seed) for seed in range(1, 1 + min(most, MOST_SCHEDULES)) if target.emulator and concurrent]


def _rerun(
    target: Target,
    net: Net,
    plan: Plan,
    cases: Cases,
    found: Validation,
    schedules: Sequence[Schedule],
    shown: Progress,
) -> Validation:
    """`found`, extended by differences of deployed frames' outputs from the reference under each schedule.

    A schedule's seed selects one round of the cases, in turn. A frame of zeros under the predicted schedule comes
    first: memory then does not hold the results yet, and the state is the same as if the schedule ran alone.
    """
    every, differing = sequences(cases, plan.frames_of_all), list[Mismatch]()
    for schedule in shown.track(schedules, f"other schedules on {target.name}") if schedules else ():
        rounds = every[(schedule.seed - 1) % len(every)][:MOST_ROUNDS]
        run_zeros(target.session, net, cases, len(rounds[0]))
        with _disturbed(target, schedule):
            outputs = [run_round(target.session, net, cases, chosen, observe=False) for chosen in rounds]
        reference = _reference(net, cases, rounds)
        for chosen, got in zip(rounds, outputs, strict=True):
            wrong = differing_outputs(net, cases, chosen, got, DEPLOYED, reference)
            differing += [replace(mismatch, schedule=schedule.seed) for mismatch in wrong]
    return replace(
        found,
        outputs_equal=found.outputs_equal and not differing,
        mismatches=(*found.mismatches, *differing)[:LISTED_MISMATCHES],
        schedules=tuple(schedule.seed for schedule in schedules),
    )


@contextmanager
def _disturbed(target: Target, schedule: Schedule) -> Iterator[None]:
    """The target under a schedule. Errors name the schedule."""
    if target.emulator is None:
        raise NpukitError(f"--schedule is for the built-in emulator, not for {target.name}", tries=["--on emulator"])
    target.emulator.disturb(schedule)
    try:
        yield
    except NpukitError as error:
        again = f"npukit validate BUILD --schedule {schedule.seed}"
        error.facts = (f"under {schedule}, which {again} repeats alone", *error.facts)
        raise
    target.emulator.disturb(None)


def _reference(net: Net, cases: Cases, rounds: Sequence[Sequence[int]]) -> dict[int, dict[str, np.ndarray]]:
    """The reference's values of the rounds' cases. Empty if the cases expect every output."""
    if len(cases.expected) == len(net.outputs):
        return {}
    found, values = dict[int, dict[str, np.ndarray]](), None
    for case in dict.fromkeys(chain(*rounds)):
        values = evaluate(net, [array[case] for array in cases.inputs], values if cases.sequence else None)
        found[case] = values
    return found
