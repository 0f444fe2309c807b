"""The search for a quantisation whose outputs are close enough to the float model's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from math import floor, prod
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.host.parallel import tell
from npukit.net.importer.expressions import shape_of
from npukit.net.net import Net
from npukit.quantize.attempt import Attempt, FloatModel
from npukit.quantize.function import outputs
from npukit.quantize.report import Reached, Report
from npukit.quantize.target.shares import counted, least_errors
from npukit.quantize.target.simulate import Noise, Rounded, Simulation
from npukit.quantize.target.treatment import KeptLayers, Treatment

WORST_LAYERS = 3
"""Number of layers named with the largest errors."""
POWERS = (0.0, 0.5, 0.75, 1.0)
"""Powers of the channels' factors to try."""
OF_ERRORS = (2.0, 3.0)
"""Powers of the errors, for the choice of ranges."""
SHARES_TRIED = (0.85, 0.7, 0.55, 0.45, 0.35, 0.25, 0.17, 0.1)
"""Shares of a range to try, one after the other while the noise of the outputs falls."""
GAIN_DB = 0.3
"""Least gain of a treatment."""
MARGIN_DB = 0.5
"""Excess over the target for steps chosen by simulation."""
MOST_TREATED, STEPS_TRIED = 3, 8
"""Most networks made with treatments of the whole, and then with steps for single results."""
KEPT_BY_TWICE = 0.25
"""The share of a result's noise left by twice the steps."""
PRODUCTS_A_FLOAT = 20_000
"""Products on the arrays of several PEs, in the time of a function of a float."""


@dataclass(frozen=True)
class Settled:
    """An integer network and the errors."""

    net: Net
    report: Report


@dataclass(frozen=True)
class Remedy:
    """A change of a treatment. `noise`: the removed error of the outputs, relative to the signal's power. `cost`:
    further products."""

    noise: float
    cost: float
    change: Callable[[Treatment], Treatment]


def quantise(model: FloatModel, keep: KeptLayers, target_db: float) -> Settled:
    """The first network, in the order of costs, whose outputs reach the target on the cases held back. Without a
    target, plain int8. Plain int8 has the ranges of all cases, but must reach the target without cases held back."""
    plain = Treatment(keep)
    if not target_db:
        made = model.attempt(replace(plain, narrow=frozenset(_bearing(model))))
        return Settled(made.net, made.report())
    made = model.attempt(plain)
    judged = min(model.reached(each.net) for each in (made, model.attempt(plain, part=True)))
    found = _Found(model, target_db, made, judged)
    if not found.enough:
        _search(found)
    if found.enough and model.narrow:
        _narrowed(found)
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
        """Keeps a better treatment, or a later treatment that is enough. True if the treatment is enough."""
        attempt = self.model.attempt(treatment, part=True)
        db = self.model.reached(attempt.net)
        if db >= self.target_db or db > self.db + GAIN_DB:
            self.attempt, self.db = attempt, db
        tell(f"quantise: {db:.1f} dB, {self.target_db:g} dB necessary")
        return db >= self.target_db

    def reached(self) -> Reached:
        model, steps = self.model, self.attempt.treatment.told()
        db = model.reached(self.attempt.net) if self.enough else self.db
        return Reached(db, self.target_db, tuple(model.held_back), model.data.count == 1, steps)

    def shortest(self, treatments: Sequence[Treatment], first: int) -> None:
        """Finds the first treatment of a row that is enough, beginning near a guess."""
        low, high, at = -1, len(treatments), min(first, len(treatments) - 1)
        for _ in range(STEPS_TRIED):
            if high - low < 2:
                return
            low, high = (low, at) if self.tried(treatments[at]) else (at, high)
            at = (low + high) // 2 if high < len(treatments) else min(2 * at + 1, len(treatments) - 1)


def _search(found: _Found) -> None:
    """Tries treatments in the order of their costs: other constants and ranges, then steps for single results."""
    simulation, treatments = Simulation(found.model), _treatments(found.model, found.attempt.treatment)
    noises = [(simulation.noise(_rounded(simulation, each)), each) for each in treatments]
    noises.sort(key=lambda pair: pair[0].scores)
    if simulation.runs(len(simulation.scales)):
        treatment = _with_shares(simulation, noises[0][1])
        noises = sorted(
            [(simulation.noise(_rounded(simulation, treatment)), treatment), *noises], key=lambda pair: pair[0].scores
        )
    results = len(found.model.points.quantised)
    if any(found.tried(each) for _, each in noises[:MOST_TREATED]) or not simulation.runs(results):
        return
    noise, treatment = noises[0]
    steps = sorted(_steps(simulation, treatment, noise), key=lambda step: -step.noise / step.cost)
    rows = list(accumulate(steps, lambda made, step: step.change(made), initial=treatment))[1:]
    if rows:
        left = noise.outputs - np.cumsum([step.noise for step in steps])
        found.shortest(rows, int(np.argmax(left <= max(10 ** (-(found.target_db + MARGIN_DB) / 10), left.min()))))


def _treatments(model: FloatModel, plain: Treatment) -> list[Treatment]:
    """Treatments of the whole network without cost in cycles."""
    found = list[Treatment]()
    for treatment in (replace(plain, compensated=True, equalised=power) for power in POWERS):
        if treatment.equalised and not model.constants(treatment):
            continue
        counts = counted(model, treatment)
        more = (replace(treatment, ranges=least_errors(counts, each)) for each in OF_ERRORS)
        found += [each for each in (treatment, *more) if each not in found]
    return found


def _with_shares(simulation: Simulation, treatment: Treatment) -> Treatment:
    """The treatment with the shares of ranges that have the least noise of the outputs, each scale alone."""
    model, shares = simulation.model, dict[int, float]()
    changed, order = model.constants(treatment), model.points.in_order()
    for places in simulation.scales:

        def noise(share: float, places: Sequence[int] = places) -> float:
            steps = model.steps(replace(treatment, ranges=dict.fromkeys(places, share)))
            results = {order[place]: steps[order[place]] for place in places}
            return simulation.noise(Rounded(results, (), changed)).scores

        least, best = noise(1), 1.0
        for share in SHARES_TRIED:
            if (found := noise(share)) >= least:
                break
            least, best = found, share
        shares |= dict.fromkeys(places, best) if best < 1 else {}
    return replace(treatment, ranges=shares)


def _rounded(simulation: Simulation, treatment: Treatment) -> Rounded:
    """The simulation of a treatment without steps for single results."""
    model, changed = simulation.model, simulation.model.constants(treatment)
    weights = model.weights(treatment, changed)
    others = [each for each in simulation.linear if each not in weights]
    return Rounded(model.steps(treatment), others, {**changed, **weights})


def _steps(simulation: Simulation, treatment: Treatment, whole: Noise) -> Iterator[Remedy]:
    """Steps for single results: twice the steps in a chain, or float. `whole`: the noise of all results."""
    model = simulation.model
    changed, steps, order = model.constants(treatment), model.steps(treatment), model.points.in_order()
    chains = {chain.first: chain for chain in model.chains}

    def noise(results: Any, weights: Any = ()) -> float:
        found = simulation.noise(Rounded({each: steps[each] for each in results}, weights, changed))
        return max(found.scores * whole.outputs / whole.scores, found.outputs if result in ends else 0)

    ends = outputs(model.points.module)
    for place, result in enumerate(order):
        chain = chains.get(result)
        if tail := model.tail(result):
            cost = PRODUCTS_A_FLOAT * sum(prod(shape_of(order[each])) for each in tail)
            yield Remedy(noise([result]), cost, partial(_in_float, tail))
        elif chain:
            less = noise(filter(steps.__contains__, chain.between), chain.readers) * (1 - KEPT_BY_TWICE)
            yield Remedy(
                less, sum(map(simulation.products, [*chain.products.values(), *chain.readers])), partial(_twice, place)
            )


def _twice(place: int, treatment: Treatment) -> Treatment:
    return replace(treatment, twice=treatment.twice | {place})


def _in_float(places: frozenset[int], treatment: Treatment) -> Treatment:
    return replace(treatment, in_float=treatment.in_float | places)


def _bearing(model: FloatModel) -> list[int]:
    """The places of layers with weights of 4 bits, if wished. The largest errors come first."""
    roundings = model.roundings if model.narrow else {}
    bearing = [at for at, each in enumerate(model.linear) if each in roundings and roundings[each].bears_four_bits]
    return sorted(bearing, key=lambda at: roundings[model.linear[at]].db_in_four_bits)


def _narrowed(found: _Found) -> None:
    """Gives 4 bits to the weights of as many layers as the target allows. The least errors come first."""
    before, bearing = found.attempt, _bearing(found.model)
    places = [frozenset(bearing[count:]) for count in range(len(bearing))]
    found.shortest([replace(before.treatment, narrow=each) for each in places], 0)


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
