"""Fault plans: valid files, and errors in invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from npukit.board.board import load_board
from npukit.emulator.fault_plan import FaultPlan, load_fault_plan
from npukit.errors import NpukitError


def plan(folder: Path, text: str, name: str = "faults.toml") -> FaultPlan:
    (folder / name).write_text(text)
    return load_fault_plan(folder / name)


def injections(*faults: dict[str, object]) -> list[dict[str, int]]:
    return FaultPlan.model_validate({"fault": faults}).for_worker(load_board("pe-mesh"))["injections"]


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = plan(tmp_path, 'seed = 7\n[[fault]]\nkind = "drop"\nfrom = 2\nto = 5\npacket = 3\n')
    fault = {"kind": "drop", "from": 2, "to": 5, "packet": 3}
    assert plan(tmp_path, json.dumps({"seed": 7, "fault": [fault]}), "faults.json") == toml
    assert toml.for_worker(load_board("pe-mesh"))["seed"] == 7


def test_a_message_alone_means_its_first_packet() -> None:
    (first,) = injections({"kind": "flip", "message": 4})
    (third,) = injections({"kind": "flip", "message": 4, "packet": 2})
    assert (first["tag"], first["packet"], third["packet"]) == (4, 0, 2)
    (random,) = injections({"kind": "flip", "message": 4, "chance": 0.5})
    assert "packet" not in random
    assert 0.49 < random["chance"] / 2**32 < 0.51


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ('kind = "melt"\nat = 1', "fault.0.kind: Input should be"),
        ('kind = "drop"', "say when: one of at, packet, chance"),
        ('kind = "drop"\nat = 5', "drop happens to a packet"),
        ('kind = "drop"\npacket = 1\nchance = 0.5', "say when: one of at, packet, chance"),
        ('kind = "delay"\npacket = 1', "delay needs cycles"),
        ('kind = "flip sram"\nat = 1\npe = 0\naddress = 4', "flip sram needs bit"),
        ('kind = "kill pe"\nat = 1', "kill pe needs pe"),
        ('kind = "kill pe"\nat = 1\npe = 1\nhop = 0', "kill pe happens on no link"),
        ('kind = "delay"\ncycles = 9\npacket = 1\npart = 0', "delay happens on no link: it has no part"),
        ('kind = "kill link"\nat = 1', "kill link needs between"),
        ('kind = "cut power"\nat = 1\nwhen = 2', "fault.0.when: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_fault_is_named(fault: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=r"plan of faults .*faults\.toml is wrong") as raised:
        plan(tmp_path, f"[[fault]]\n{fault}\n")
    assert says in raised.value.message
    assert raised.value.tries == ("docs/emulators.md",)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ({"kind": "kill pe", "pe": 16, "at": 0}, "names PE 16, and pe-mesh has 16 PEs"),
        ({"kind": "kill link", "between": [0, 5], "at": 0}, "PE 0 and PE 5, which are no neighbours"),
        ({"kind": "flip sram", "pe": 0, "address": 0x20000, "bit": 0, "at": 0}, "the SRAM has 131072 bytes"),
        ({"kind": "flip sram", "pe": 0, "address": 0, "bit": 8, "at": 0}, "a byte has bits 0 to 7"),
    ],
)
def test_what_the_board_does_not_have_is_named(fault: dict[str, object], says: str) -> None:
    with pytest.raises(NpukitError) as raised:
        injections(fault)
    assert says in raised.value.message


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match=r"absent\.toml cannot be read: No such file"):
        load_fault_plan(tmp_path / "absent.toml")
    with pytest.raises(NpukitError, match="is not TOML or JSON"):
        plan(tmp_path, "kind: drop")
    with pytest.raises(NpukitError, match="is not TOML or JSON"):
        plan(tmp_path, "{", "faults.json")
