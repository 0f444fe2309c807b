"""The search for a quantisation whose outputs are close enough to the float model's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import floor
from typing import Any

from npukit.errors import NpukitError
from npukit.host.parallel import tell
from npukit.net.net import Net
from npukit.quantize.attempt import Attempt, FloatModel, KeptLayers, Treatment
from npukit.quantize.report import Reached, Report
from npukit.quantize.target.simulate import Rounded, Simulation

WORST_LAYERS = 3
"""Number of layers named with the largest errors."""
POWERS = (0.0, 0.5, 0.75, 1.0)
"""Powers of the channels' factors to try."""
SHARES = (0.9, 0.8, 0.65)
"""Shares of a result's range to try."""
GAIN_DB = 0.3
"""Least gain of a step."""
MOST_CHANGES = 8
"""Most steps for single results."""

Step = Callable[[Treatment], Treatment]
"""Changes a treatment by a further step."""


@dataclass(frozen=True)
class Settled:
    """An integer network and the errors."""

    net: Net
    report: Report


def quantise(model: FloatModel, keep: KeptLayers, target_db: float) -> Settled:
    """The first network, in the order of costs, whose outputs reach the target on the cases held back. Without a
    target, plain int8. Plain int8 has the ranges of all cases, but must reach the target without cases held back."""
    plain = Treatment(keep)
    made = model.attempt(plain)
    if not target_db:
        return Settled(made.net, made.report())
    judged = min(model.reached(each.net) for each in (made, model.attempt(plain, model.calibrating)))
    found = _Found(model, target_db, made, judged)
    if not found.enough:
        _search(found)
    report = replace(found.attempt.report(), reached=found.reached())
    if not found.enough:
        raise missed(model, report)
    return Settled(found.attempt.net, report)


@dataclass
class _Found:
    """The best attempt so far."""

    model: FloatModel
    target_db: float
    attempt: Attempt
    db: float

    @property
    def enough(self) -> bool:
        return self.db >= self.target_db

    def tried(self, treatment: Treatment) -> bool:
        """Keeps a better treatment. True if it is enough."""
        attempt = self.model.attempt(treatment, self.model.calibrating)
        db = self.model.reached(attempt.net)
        if db > self.db + GAIN_DB:
            self.attempt, self.db = attempt, db
        tell(f"quantise: {self.db:.1f} dB so far, {self.target_db:g} dB necessary")
        return self.enough

    def reached(self) -> Reached:
        model, steps = self.model, self.attempt.treatment.told()
        db = model.reached(self.attempt.net) if self.enough else self.db
        return Reached(db, self.target_db, tuple(model.held_back), model.data.count == 1, steps)


def _search(found: _Found) -> None:
    """Tries treatments in the order of their costs: other constants and ranges, then steps for single results."""
    simulation, plain = Simulation(found.model), found.attempt.treatment
    powers = [replace(plain, equalised=power) for power in POWERS]
    for treatment in sorted(powers, key=lambda each: -simulation.db(_rounded(simulation, each))):
        if found.tried(treatment) or (simulation.runs and found.tried(_with_ranges(simulation, treatment))):
            return
    if not simulation.runs:
        return
    steps = _applied(found, _by_effect(simulation, found.attempt.treatment))
    if found.enough:
        _without_needless(found, steps)


def _applied(found: _Found, steps: Iterable[Step]) -> list[tuple[Treatment, Step]]:
    """The steps that bring the outputs closer, each with the treatment before."""
    kept, left = list[tuple[Treatment, Step]](), MOST_CHANGES
    for step in steps:
        before = found.attempt.treatment
        if step(before) != before and left and not found.enough:
            left -= 1
            found.tried(step(before))
            kept += [(before, step)] if found.attempt.treatment != before else []
    return kept


def _without_needless(found: _Found, kept: list[tuple[Treatment, Step]]) -> None:
    """Leaves out each step without which the outputs still reach the target."""
    steps = [step for _, step in kept]
    for step in steps[:-1]:
        fewer = [each for each in steps if each is not step]
        attempt = found.model.attempt(
            reduce(lambda treatment, each: each(treatment), fewer, kept[0][0]), found.model.calibrating
        )
        db = found.model.reached(attempt.net)
        if db >= found.target_db:
            steps, found.attempt, found.db = fewer, attempt, db


def _rounded(simulation: Simulation, treatment: Treatment) -> Rounded:
    """The simulation of a treatment without steps for single results."""
    model = simulation.model
    return Rounded(model.steps(treatment), simulation.linear, model.constants(treatment))


def _with_ranges(simulation: Simulation, treatment: Treatment) -> Treatment:
    """The treatment with the range of each result that, alone, disturbs the outputs least."""
    model, found = simulation.model, dict[int, float]()
    constants = model.constants(treatment)
    steps = {share: model.steps(treatment.with_share(share, len(model.points.quantised))) for share in (1.0, *SHARES)}
    for place, result in enumerate(model.points.in_order()):
        errors = {share: simulation.db(Rounded({result: steps[share][result]}, (), constants)) for share in steps}
        best = max(errors, key=lambda share: errors[share])
        if errors[best] > errors[1.0] + GAIN_DB:
            found[place] = best
    return replace(treatment, ranges=found)


def _by_effect(simulation: Simulation, treatment: Treatment) -> list[Step]:
    """Steps for the results that alone disturb the outputs most: twice the steps in a chain, or float."""
    model, found = simulation.model, list[tuple[float, Step]]()
    constants, steps, order = model.constants(treatment), model.steps(treatment), model.points.in_order()
    chains = {chain.first: chain for chain in model.chains if chain.divisible}

    def effect(results: Any, weights: Any = ()) -> float:
        return simulation.db(Rounded({each: steps[each] for each in results if each in steps}, weights, constants))

    for place, result in enumerate(order):
        chain = chains.get(result)
        if tail := model.tail(result):
            found.append((effect([result]), partial(_in_float, tail)))
        elif chain:
            found.append((effect(chain.between, chain.readers), partial(_twice, place)))
    return [step for _, step in sorted(found, key=lambda each: each[0])]


def _twice(place: int, treatment: Treatment) -> Treatment:
    return replace(treatment, twice=treatment.twice | {place})


def _in_float(places: frozenset[int], treatment: Treatment) -> Treatment:
    return replace(treatment, in_float=treatment.in_float | places)


def missed(model: FloatModel, report: Report) -> NpukitError:
    """The error of a network that misses its target."""
    reached = report.reached
    assert reached
    worst = report.worst(WORST_LAYERS)
    facts = [f"{each.name}: {each.alone_db:g} dB alone, {each.sqnr_db:g} dB with earlier layers" for each in worst]
    tries = [
        f"--target-db {max(floor(reached.db), 1)}, or --target-db 0 for no target",
        f"more calibration data, like the training data: {model.data.count} cases are given",
        f"--keep-float {worst[0].name if worst else 'LAYER'}",
        "--float",
    ]
    told = f"{model.name} in int8 is {reached.db:.1f} dB from the float model, not {reached.target_db:g} dB"
    return NpukitError(told, facts=facts, tries=tries)
