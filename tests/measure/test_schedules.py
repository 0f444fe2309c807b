"""Validation under schedules: finds errors that depend on message timing, with the seed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api
from npukit.emulator.schedule import Schedule
from npukit.errors import NpukitError
from npukit.measure.cases import Cases, load_cases
from npukit.measure.schedules import compare
from npukit.measure.target import Target, open_target
from npukit.measure.validate import Validation, validate
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN, Build


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("schedules") / "build", pes=4)


def golden(built: Build) -> Cases:
    return load_cases(built.folder / GOLDEN, built.net(), None)


def cycles(built: Build, seed: int | None) -> int:
    with open_target(built) as target:
        assert target.emulator
        target.emulator.disturb(None if seed is None else Schedule(seed))
        return target.session.run().cycles


@pytest.mark.exhaustive
def test_a_seed_is_a_schedule(built: Build) -> None:
    first = cycles(built, 1)
    assert first == cycles(built, 1)
    assert len({first, cycles(built, 2), cycles(built, None)}) == 3


@pytest.mark.exhaustive
def test_a_validation_says_under_which_schedules(built: Build) -> None:
    found = api.validate(built)
    assert found.passed
    assert found.schedules == (1, 2, 3, 4)
    alone = api.validate(built, schedule=5)
    assert alone.passed
    assert (alone.schedules, alone.layers_checked) == ((5,), 0)


WAITS, WAITS_FOR_NONE = (b"\x02\x20\x03\x21", b"\x03\x21\x02\x20"), (b"\x02\x20\x00\x21", b"\x00\x21\x02\x20")
"""The arguments of `noc_wait(2, 3)`, PE 0's last wait, and of `noc_wait(2, 0)`, in either order."""


def without_its_last_wait(built: Build, folder: Path) -> Build:
    """The build with PE 0's last wait for a tensor of other PEs disabled."""
    copy = replace(built, folder=Path(shutil.copytree(built.folder, folder)))
    elf = copy.folder / built.manifest.images[0].elf
    code = elf.read_bytes()
    for waits, waits_for_none in zip(WAITS, WAITS_FOR_NONE, strict=True):
        code = code.replace(waits, waits_for_none)
    assert code != elf.read_bytes()
    elf.write_bytes(code)
    return copy


@pytest.mark.exhaustive
def test_a_wait_that_is_missing_is_found_where_a_message_is_late(built: Build, tmp_path: Path) -> None:
    assert "noc_wait(2, 3); /* conv2d_2" in (built.folder / "project/roles/0/net/net.c").read_text()
    mutant, net, plan, cases = (
        without_its_last_wait(built, tmp_path / "mutant"),
        built.net(),
        built.plan(),
        golden(built),
    )

    def under(seed: int) -> Validation:
        with open_target(mutant) as target:
            return compare(target, net, plan, cases, seed, Silent())

    with open_target(mutant) as target:
        assert validate(target, net, plan, cases, Silent()).passed, "the messages come in time"
    found = next(found for seed in range(1, 9) if not (found := under(seed)).passed)
    first = found.mismatches[0]
    assert first.schedule
    assert f"deployed frame under schedule {first.schedule}: " in str(first)
    assert first.schedule in {mismatch.schedule for mismatch in under(first.schedule).mismatches}


def test_a_fault_names_the_schedule(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    def falls_silent(*_: object, **__: object) -> None:
        raise NpukitError("PE 3 stopped", facts=["registers"])

    monkeypatch.setattr("npukit.measure.schedules.run_round", falls_silent)
    with pytest.raises(NpukitError, match="PE 3 stopped") as raised:
        api.validate(built, schedule=7)
    assert raised.value.facts == (
        "under schedule 7, which npukit validate BUILD --schedule 7 repeats alone",
        "registers",
    )


def test_only_the_built_in_emulator_has_schedules(built: Build) -> None:
    with open_target(built) as opened:
        target = Target("elsewhere", opened.session, opened.board)
        assert compare(target, built.net(), built.plan(), golden(built), None, Silent()).schedules == ()
        with pytest.raises(NpukitError, match="--schedule is for the built-in emulator, not for elsewhere"):
            compare(target, built.net(), built.plan(), golden(built), 3, Silent())
    with pytest.raises(NpukitError, match="0 is no seed"):
        Schedule(0)
