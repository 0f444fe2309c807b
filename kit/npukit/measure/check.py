"""The check at the end of a build: a round on an emulator, compared as in `npukit validate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from npukit.emulator.here import is_here
from npukit.errors import Differs, NpukitError
from npukit.measure.cases import first_cases, load_cases
from npukit.measure.coresident import validate_coresident
from npukit.measure.golden import GOLDEN_FRAMES
from npukit.measure.target import Emulation, open_target
from npukit.measure.validate import Validation, validate
from npukit.progress import Progress
from npukit.project.build_folder import GOLDEN, Build

CHECKED_SECONDS = 10.0
"""Limit on the predicted seconds of a check, unless requested explicitly."""

PE_CYCLES_PER_SECOND = 1.4e6
"""Cycles of one PE that the strict built-in emulator simulates in a second of processor time. Keyword spotting's
`npukit validate OUT --cases 3` took 0.33 s more than `--cases 1` on 16 PEs, which is 1.4 million, and on one PE with
`--engine cpu` 4.7 s, which is 2.9 million. QEMU is faster, and has the same limit."""

_PATHS = 2
_FIRST, _SEQUENCES = 1, 2
"""Golden cases of a check: the first; with states two sequences of frames, to cover a reset."""


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a build's check: the emulator and the number of comparisons, or the reason for none (`why`)."""

    on: str | None = None
    cases: int = 0
    tiles: int = 0
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def checked(builds: Mapping[str, Build], wanted: bool | None, progress: Progress) -> CheckOutcome:
    """Run a round of a board's networks. Raises an error for a difference from the reference. `wanted`: None checks
    builds that an installed emulator runs within `CHECKED_SECONDS`, True checks every build, False checks none."""
    if wanted is False:
        return CheckOutcome(why="--no-check")
    on, why = _where(builds, renode=wanted is True)
    if on is None and wanted:
        raise NpukitError(f"the build cannot be checked: {why}", tries=["--no-check"])
    if on and not wanted and (seconds := _seconds(builds)) > CHECKED_SECONDS:
        on, why = None, f"about {seconds:.0f} s"
    if on is None:
        return CheckOutcome(why=why)
    progress.stage(f"check on {on}")
    found = _compared(builds, on, progress)
    for name, each in found.items():
        _refuse_if_wrong(each, f"network {name}: " if len(found) > 1 else "")
    return CheckOutcome(
        on, sum(each.cases for each in found.values()), sum(each.tiles_checked for each in found.values())
    )


def _where(builds: Mapping[str, Build], *, renode: bool) -> tuple[str | None, str]:
    """The emulator for the check, or the reason for none. `renode`: allow Renode, whose PEs take turns."""
    build = next(iter(builds.values()))
    if build.only_on_hardware:
        return None, f"no emulator has {build.only_on_hardware}"
    usable = [name for name in build.board.runs_on if name != "renode" or renode]
    here = next((name for name in usable if is_here(name, build.board)), None)
    return here, f"no emulator of {build.board.name} is here"


def _seconds(builds: Mapping[str, Build]) -> float:
    """Predicted seconds of processor time for the check."""
    cycles = 0
    for build in builds.values():
        plan, rounds = build.plan(), _SEQUENCES * GOLDEN_FRAMES if build.manifest.summary["states"] else _FIRST
        frames = plan.predicted.latency_cycles + (plan.frames - 1) * plan.predicted.interval_cycles
        cycles += frames * plan.pes_used * rounds * _PATHS
    return cycles / PE_CYCLES_PER_SECOND


def _compared(builds: Mapping[str, Build], on: str, progress: Progress) -> dict[str, Validation]:
    most = _SEQUENCES if any(each.manifest.summary["states"] for each in builds.values()) else _FIRST
    if len(builds) > 1:
        return validate_coresident(builds, on, most, None, progress)
    ((name, build),) = builds.items()
    net = build.net()
    cases = first_cases(load_cases(build.folder / GOLDEN, net, None), most)
    with open_target(build, on, Emulation(strict=True), progress) as target:
        return {name: validate(target, net, build.plan(), cases, progress)}


def _refuse_if_wrong(found: Validation, of: str) -> None:
    """Raise an error that names the first layer and PE with a difference."""
    if not found.passed:
        first = found.mismatches[0] if found.mismatches else "deployed and observed frames differ"
        raise Differs(
            f"{of}the firmware differs from the reference: {first}",
            facts=["the build was checked on the emulator before it was left"],
            tries=["--no-check leaves the build, to look at", "--engine cpu or --pes 1, to see if it lies there"],
        )
