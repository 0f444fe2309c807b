"""Faults of a board are noticed: a fault plan injects each kind into a build on four PEs."""

from __future__ import annotations

import json

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api
from npukit.errors import Differs, NpukitError
from npukit.measure.validate import Validation
from npukit.plan.ir.plan import Plan, Send, Wait
from npukit.project.build_folder import Build
from npukit.project.images.elf import Elf


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("faults") / "build", pes=4)


def validate(built: Build, *faults: dict[str, object]) -> Validation:
    plan = built.folder.parent / "faults.json"
    plan.write_text(json.dumps({"seed": 5, "fault": faults}))
    return api.validate(built.folder, faults=plan)


def outcome(built: Build, fault: dict[str, object]) -> str:
    """The printed validation or the error."""
    try:
        return str(validate(built, fault))
    except NpukitError as error:
        return f"{error.message} {error.facts}"


def a_message(plan: Plan) -> int:
    """A message with payload from the root to another PE."""
    root = plan.pes[0]
    sent = [step.message for step in root.steps if isinstance(step, Send)]
    return next(m for m in sent if plan.messages[m].tensor and plan.messages[m].landings[0].pe != root.pe)


@pytest.mark.exhaustive
def test_a_lost_message_shows_with_the_next_one(built: Build) -> None:
    plan = built.plan()
    number = a_message(plan)
    reader = plan.messages[number].landings[0].pe
    with pytest.raises(
        NpukitError, match=rf"failed to run on pe-mesh: .*PE {reader} stopped with error code 8"
    ) as raised:
        validate(built, {"kind": "drop", "message": number, "to": reader})
    facts = "\n".join(raised.value.facts)
    assert f"message {number}," in facts
    assert "was lost" in facts


@pytest.mark.exhaustive
@pytest.mark.parametrize("bit", [0, 77, None])
def test_a_flipped_bit_is_a_wrong_crc(built: Build, bit: int | None) -> None:
    number = a_message(built.plan())
    reader = built.plan().messages[number].landings[0].pe
    which = {} if bit is None else {"bit": bit}
    with pytest.raises(NpukitError, match=rf"PE {reader} stopped with error code 7"):
        validate(built, {"kind": "flip", "message": number, "to": reader, **which})


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fault",
    [{"kind": "drop"}, {"kind": "duplicate"}, {"kind": "flip", "bit": 200}, {"kind": "flip", "bit": 17, "part": 0}],
    ids=str,
)
def test_a_fault_on_any_link_has_words_and_a_way_out(built: Build, fault: dict[str, object]) -> None:
    words = "a message with a wrong CRC" if fault["kind"] == "flip" else "a lost or repeated message"
    with pytest.raises(NpukitError, match=rf"PE \d stopped with error code [78]: {words}") as raised:
        validate(built, {"message": a_message(built.plan()), "hop": 0, **fault})
    assert "dead_links" in raised.value.tries[1]


@pytest.mark.exhaustive
def test_a_message_that_comes_twice_is_noticed(built: Build) -> None:
    fault = {"kind": "duplicate", "message": a_message(built.plan()), "cycles": 50}
    assert outcome(built, fault) != str(validate(built))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fault",
    [{"kind": "delay", "chance": 0.3, "cycles": 900}, {"kind": "stall dma", "pe": 1, "packet": 3, "cycles": 30_000}],
)
def test_what_only_comes_late_changes_no_byte(built: Build, fault: dict[str, object]) -> None:
    assert validate(built, fault).passed


def test_a_dead_pe_is_noticed(built: Build) -> None:
    victim = built.plan().pes[-1].pe
    with pytest.raises(NpukitError, match=r"failed to run|did not answer") as raised:
        validate(built, {"kind": "kill pe", "pe": victim, "message": a_message(built.plan())})
    assert f"PE {victim} is dead" in "\n".join(raised.value.facts) or "error code 4" in raised.value.message


def test_a_dead_link_is_noticed(built: Build) -> None:
    with pytest.raises(NpukitError, match=r"PE \d stopped with error code 4|waits for flag|did not answer"):
        validate(built, {"kind": "kill link", "between": [0, 1], "message": a_message(built.plan())})


@pytest.mark.exhaustive
def test_flipped_bits_of_the_constants_are_named(built: Build) -> None:
    image = built.images()[0]
    constants = Elf(image.elf).sections[".constants"]
    middle = constants.address + constants.size // 2
    flips = [{"kind": "flip sram", "pe": 0, "address": middle + n, "bit": 6, "packet": 0} for n in range(64)]
    with pytest.raises(Differs, match="the constants of PE 0 is not what was loaded"):
        validate(built, *flips)


def test_a_power_cut_ends_the_run(built: Build) -> None:
    with pytest.raises(NpukitError, match=r"the board's power went at cycle [\d,]+, as the plan of faults says"):
        validate(built, {"kind": "cut power", "packet": 4})


@pytest.mark.exhaustive
def test_the_same_plan_gives_the_same_run(built: Build) -> None:
    fault: dict[str, object] = {"kind": "flip", "chance": 0.3}
    first = outcome(built, fault)
    assert outcome(built, fault) == first
    assert first != str(validate(built))


@pytest.mark.exhaustive
def test_without_faults_all_is_well(built: Build) -> None:
    assert validate(built).passed
    assert any(isinstance(step, Wait) for step in built.plan().pes[1].steps)
