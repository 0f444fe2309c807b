"""A tuning session of a build: measure proposals within a time budget, then combine the best of each parameter."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from npukit.accel.core_kernels import CostPreference
from npukit.errors import Differs, NpukitError
from npukit.farm.trial import NOT_EXACT, Trial
from npukit.farm.trials import Measurer
from npukit.host.budget import MODEL
from npukit.host.parallel import apart
from npukit.measure.cases import load_cases
from npukit.net.importer.loops import TILES, LoopKernel, arrangement_of, load_kernels
from npukit.net.net import Net
from npukit.progress import Progress, Silent
from npukit.project.build_folder import GOLDEN, Build, replace_build
from npukit.tuner.search_space import Parameter, Recipe, search_space
from npukit.tuning import Database, TuningRecord, load_database

if TYPE_CHECKING:
    from npukit.tuner.meta_schedule import LoopSearch


BuildAgain = Callable[[Build, Net, CostPreference, Path, Progress], Build]
Choices = Mapping[str, str]
"""The choice for each parameter, by key."""


@dataclass(frozen=True)
class BestChoice:
    """The best choice of a parameter."""

    name: str
    layers: tuple[str, ...]
    choice: str
    before: int
    after: int


@dataclass(frozen=True)
class Tuned:
    """The result of tuning. `unit`: cycles, or instructions where the target counts no cycles."""

    unit: str
    before: int
    after: int
    trials: int
    seconds: float
    kernels: tuple[BestChoice, ...]
    database: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Tuner:
    """A session for a network on a board. `build_again` builds trials. `measurer` runs trials."""

    def __init__(
        self, build: Build, database: Path, measurer: Measurer, build_again: BuildAgain, progress: Progress
    ) -> None:
        if build.manifest.options.get("plan"):
            raise NpukitError(f"{build.folder} has a mapping of your own", tries=["a build without --plan"])
        if build.manifest.coresident:
            raise NpukitError(f"{build.folder} shares its board with others", tries=["tune a build of it alone"])
        if kernels := load_kernels(build.folder):
            apart(partial(_check, kernels, build), str(build.folder), MODEL)
        self._build, self._net, self._loops = build, build.net(), kernels
        self._parameters = {parameter.key: parameter for parameter in search_space(build, self._loops)}
        if not self._parameters:
            raise NpukitError(
                f"nothing to tune in {build.folder}: no kernels of the core, no loops of TVM's, no choices of an "
                "accelerator's",
                tries=["npukit build --engine cpu"],
            )
        self._path, self._database = database, load_database(database)
        self._measurer, self._build_again, self._progress = measurer, build_again, progress
        self._deadline = self._seconds = 0.0
        """The time after which no trial begins, and the seconds of a measurement."""
        self._trials: dict[bytes, Trial] = {}
        self._searches: LoopSearches | None = None

    def run(self, budget_seconds: float) -> Tuned:
        """Try new choices until the time is over. Leaves the build with the best known choices."""
        started = monotonic()
        self._deadline = started + budget_seconds
        self._progress.stage("measure the build as it is, which tells how long each trial takes")
        (baseline,) = self._measured([self._build])
        self._seconds = monotonic() - started
        if not baseline.exact:
            raise Differs(f"{self._build.folder} does not compute what it should", tries=["npukit validate BUILD"])
        trials, best = 0, baseline.cost
        proposals = self._proposals(self._deadline, baseline)
        while monotonic() < self._deadline:
            batch = list(islice(proposals, self._measurer.boards))
            if not batch:
                break
            trials += len(batch)
            for choices, trial in self._tried(batch, trials, best, baseline.unit):
                self._learn(baseline, choices, trial)
                best = min(best, trial.cost) if trial.exact else best
        after = self._finish(baseline)
        chosen = tuple(self._chosen(parameter, baseline) for parameter in self._parameters.values())
        seconds = round(monotonic() - started, 1)
        return Tuned(baseline.unit, baseline.cost, after, trials, seconds, chosen, str(self._path))

    def _proposals(self, deadline: float, baseline: Trial) -> Iterator[Choices]:
        """New proposals: first together for all parameters measured by layers, then choices of the frame."""
        yield from self._together([parameter for parameter in self._parameters.values() if parameter.layers])
        if self._loops:
            self._searches = LoopSearches(
                self._loops, lambda key: self._record(self._parameters[key], baseline), baseline.cost
            )
            yield from self._searches.proposals(deadline)
        for parameter in (each for each in self._parameters.values() if not each.layers):
            yield from self._together([parameter])

    def _together(self, parameters: Sequence[Parameter]) -> Iterator[Choices]:
        for place in range(max((len(parameter.choices) for parameter in parameters), default=0)):
            fresh: dict[str, str] = {}
            for parameter in (each for each in parameters if place < len(each.choices)):
                known = self._database.records.get(parameter.key)
                if known is None or parameter.choices[place] not in known.tried:
                    fresh[parameter.key] = parameter.choices[place]
            if fresh:
                yield fresh

    def _tried(self, batch: list[Choices], number: int, best: int, unit: str) -> Iterator[tuple[Choices, Trial]]:
        """The proposals and trials. Choices without a joint build are tried separately."""
        what = ", ".join(dict.fromkeys(choice.split()[0] for choices in batch for choice in choices.values()))
        ends = f"the last begins in {max(self._deadline - monotonic(), 0):.0f} s and takes about {self._seconds:.0f}"
        self._progress.stage(f"trial {number}: {what}; so far {best:,} {unit}; {ends}")
        with tempfile.TemporaryDirectory(prefix="npukit-tune-") as scratch:
            places = (Path(scratch) / str(index) for index in count())
            tried = [each for choices in batch for each in self._builds(choices, places)]
            trials = iter(self._measured([build for _, build in tried if build]))
            yield from ((choices, next(trials) if build else NOT_EXACT) for choices, build in tried)

    def _builds(self, choices: Choices, places: Iterator[Path]) -> Iterator[tuple[Choices, Build | None]]:
        try:
            yield choices, self._built(choices, next(places))
        except NpukitError:
            if len(choices) <= 1:
                yield choices, None
                return
            for key, choice in choices.items():
                yield from self._builds({key: choice}, places)

    def _measured(self, builds: Sequence[Build]) -> list[Trial]:
        """The trials of builds. Builds with the same bytes are measured once."""
        new = list({build.manifest.build_id: build for build in builds if build.build_id not in self._trials}.values())
        for build, trial in zip(new, self._measurer.measure(new) if new else [], strict=True):
            self._trials[build.build_id] = replace(trial, exact=trial.exact and self._is_same(build))
        return [self._trials[build.build_id] for build in builds]

    def _is_same(self, build: Build) -> bool:
        """True if the trial's reference, computed with the trial's loops, equals the original build's."""
        ours, theirs = (load_cases(each.folder / GOLDEN, self._net, None).expected for each in (self._build, build))
        return all(ours[index].tobytes() == theirs[index].tobytes() for index in ours)

    def _built(self, choices: Choices, folder: Path) -> Build:
        """The build with these choices, and the best known choices for all other parameters."""
        recipe = Recipe(
            {
                key: choices.get(key) or (self._database.choice(parameter.key) or parameter.usual)
                for key, parameter in self._parameters.items()
            }
        )
        net = recipe.net(self._net, self._loops, self._build.board)
        return self._build_again(self._build, net, recipe.preference(self._parameters.values()), folder, Silent())

    def _learn(self, baseline: Trial, choices: Choices, trial: Trial) -> None:
        """Record a trial's cost for each parameter. Saves at once: an aborted session loses nothing."""
        learnt = {}
        for key, choice in choices.items():
            parameter = self._parameters[key]
            known, cost = self._record(parameter, baseline), _cost(parameter, trial)
            best = replace(known, choice=choice, cost=cost) if trial.exact and cost < known.cost else known
            learnt[key] = replace(best, tried=(*known.tried, choice))
            if self._searches and trial.exact:
                self._searches.tell(key, choice, cost)
        self._keep(Database({**load_database(self._path).records, **self._database.records, **learnt}))

    def _keep(self, database: Database) -> None:
        self._database = database
        self._database.save(self._path)

    def _record(self, parameter: Parameter, baseline: Trial) -> TuningRecord:
        cost = _cost(parameter, baseline)
        return self._database.records.get(parameter.key) or TuningRecord(parameter.what, parameter.usual, cost, cost)

    def _finish(self, baseline: Trial) -> int:
        """Combine the best choices. Discards a slower or inexact result, or a result without room."""
        self._progress.stage("the best of all together")
        with tempfile.TemporaryDirectory(prefix="npukit-tune-") as scratch:
            ((_, built),) = self._builds({}, iter([Path(scratch) / "best"]))
            trial = self._measured([built])[0] if built else NOT_EXACT
            if built and trial.exact and trial.cost <= baseline.cost:
                replace_build(built.folder, self._build.folder)
                return trial.cost
        # Reset the choices to the usual ones. Tried choices remain recorded.
        kept = dict(self._database.records)
        for key in kept.keys() & self._parameters.keys():
            kept[key] = replace(kept[key], choice=self._parameters[key].usual, cost=kept[key].before)
        self._keep(Database(kept))
        return baseline.cost

    def _chosen(self, parameter: Parameter, baseline: Trial) -> BestChoice:
        found = self._record(parameter, baseline)
        return BestChoice(parameter.what, parameter.layers, found.choice, _cost(parameter, baseline), found.cost)


def _check(kernels: Mapping[str, LoopKernel], build: Build) -> None:
    from npukit.net.importer.lowering import check_kernels

    check_kernels(kernels, build.net(), build.board.name)


def _cost(parameter: Parameter, trial: Trial) -> int:
    return sum(trial.layers.get(name, 0) for name in parameter.layers) if parameter.layers else trial.cost


TRIALS = 48
"""Limit on the proposals for one kernel in all sessions together."""
WORTH_IT = 0.02
"""Smallest share of a frame for a kernel to be searched."""


class LoopSearches:
    """The loop searches of kernels above `WORTH_IT`, continued from their tuning records."""

    def __init__(self, kernels: Mapping[str, LoopKernel], found: Callable[[str], TuningRecord], frame: int) -> None:
        costs = {key: found(key).cost for key in kernels}
        self._hot = [key for key in sorted(kernels, key=lambda key: -costs[key]) if costs[key] > WORTH_IT * frame]
        self._kernels, self._found = kernels, found
        self._asked: dict[tuple[str, str], LoopSearch] = {}

    def proposals(self, deadline: float) -> Iterator[dict[str, str]]:
        """A choice for each kernel with proposals left, until all are exhausted or the time is over."""
        asking = {key: self._asking(key) for key in self._hot}
        while monotonic() < deadline:
            wanted = {key: next(asking[key], None) if monotonic() < deadline else None for key in self._hot}
            found = {key: choice for key, choice in wanted.items() if choice}
            if not found:
                return
            yield found

    def tell(self, key: str, choice: str, cost: int) -> None:
        """Pass on the cost of a proposal. Choices from elsewhere are ignored."""
        search = self._asked.get((key, choice))
        if search:
            search.tell(choice, cost)

    def _asking(self, key: str) -> Iterator[str]:
        """The proposals of a kernel's searches in turn."""
        from npukit.tuner.meta_schedule import searches_for

        found = self._found(key)
        left = TRIALS - sum(choice.startswith(f"{TILES} ") for choice in found.tried)
        searches: list[LoopSearch] = []
        if left > 0:
            searches = searches_for(self._kernels[key], arrangement_of(found.choice), found.cost, found.tried)
        over: set[int] = set()
        for number, search in cycle(enumerate(searches)):
            choice = None if number in over else search.ask()
            if choice is None:
                over.add(number)
            else:
                self._asked[key, choice] = search
                left -= 1
                yield choice
            if left <= 0 or len(over) == len(searches):
                return
