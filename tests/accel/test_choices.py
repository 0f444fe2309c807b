"""Choices of a plug-in: the pass that makes them, the accelerator's own memories, and `tune`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from end_to_end.builds import DIGITS, build
from helpers import CHECKOUT
from npukit import api
from npukit.accel.choices import with_choices
from npukit.accel.interface import Abilities, Choice, Cost
from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.parse import parse_net
from npukit.net.text import print_net

SYSTOLIC = CHECKOUT / "examples/accelerators/systolic8x8/systolic8x8"
NET = """
net chain
input x: int8[1,4] scale 0.5 zero 0
op a: int8[1,4] scale 0.5 zero 0 = softmax(x) on npu
op b: int8[1,4] scale 0.5 zero 0 = softmax(a) on npu
op c: int8[1,4] scale 0.5 zero 0 = softmax(b) on npu
output c
"""


class Npu:
    """An engine with softmax in 100 cycles, or fewer with a table in 24 bytes of the engine's own memory."""

    name = "npu"
    abilities = Abilities(memories={"tables": 64})

    def choices(self, net: Net, op: Op) -> list[Choice]:
        return [Choice("read"), Choice("read twice"), Choice("kept", {"tables": 24})]

    def cost(self, net: Net, op: Op, output: Any) -> Cost:
        saved = {"a": 10, "b": 30, "c": 20}[op.name] if op.places else 0
        return Cost(100 - saved + (op.choice == "read twice"), 0)


def made(chosen: Mapping[str, str] = {}) -> dict[str, tuple[str, tuple[tuple[str, int], ...]]]:
    net = with_choices(parse_net(NET, {}), {"npu": Npu()}, lambda net, op: chosen.get(op.name))  # pyright: ignore
    assert parse_net(print_net(net), {}).ops == net.ops
    return {op.name: (op.choice, op.places) for op in net.ops}


def test_what_saves_most_is_kept_as_long_as_there_is_room() -> None:
    assert made() == {"a": ("read", ()), "b": ("kept", (("tables", 0),)), "c": ("kept", (("tables", 32),))}


def test_what_tuning_has_chosen_comes_first() -> None:
    kept = (("tables", 0),)
    assert made({"a": "kept"}) == {"a": ("kept", kept), "b": ("kept", (("tables", 32),)), "c": ("read", ())}
    assert made({"b": "read twice"})["b"] == ("read twice", ())
    assert made({"b": "what a newer version knows"})["b"] == ("kept", kept)


OWN = f"""
import importlib.util
import sys
from dataclasses import replace

from npukit.accel.interface import Abilities, Choice

folder = {str(SYSTOLIC)!r}
spec = importlib.util.spec_from_file_location("plain", folder + "/__init__.py", submodule_search_locations=[folder])
plain = importlib.util.module_from_spec(spec)
sys.modules["plain"] = plain
spec.loader.exec_module(plain)


class Own(plain.accelerator):
    def choices(self, net, op):
        return CHOICES

    CHANGE
"""


def board(tmp_path: Path, choices: str, change: str = "") -> str:
    text = OWN.replace("CHOICES", choices).replace("CHANGE", change) + "\n\naccelerator = Own\n"
    (tmp_path / "own.py").write_text(text)
    toml = (SYSTOLIC.parent / "systolic8x8.toml").read_text().replace('plugin = "systolic8x8"', 'plugin = "own.py"')
    (tmp_path / "board.toml").write_text(toml)
    return str(tmp_path / "board.toml")


@pytest.mark.exhaustive
def test_tuning_finds_the_fastest_where_the_cost_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPUKIT_TUNED", str(tmp_path / "tuned.json"))
    blind = "def cost(self, net, op, output): return super().cost(net, replace(op, choice=''), output)"
    slow = board(tmp_path, "[Choice('1 pixels'), Choice('8 pixels'), Choice('2 pixels')]", blind)
    model = DIGITS / "digits_int8.tflite"
    built = build(model, tmp_path / "out", slow, pes=1, engine="systolic8x8")
    taken = {op["name"]: op["choice"] for op in built.manifest.summary["ops"] if op["engine"] == "systolic8x8"}
    assert set(taken.values()) == {"1 pixels"}
    tuned = api.tune(built.folder)
    assert tuned.after < 0.8 * tuned.before
    assert {each.choice for each in tuned.kernels if "systolic8x8" in each.name} >= {"8 pixels"}
    again = build(model, tmp_path / "again", slow, pes=1, engine="systolic8x8")
    assert "8 pixels" in {op["choice"] for op in again.manifest.summary["ops"]}
    assert again.manifest.build_id == api.load(built.folder).manifest.build_id


TWO_LEVELS = """
    abilities = Abilities(memories={"near": 1024, "far": 2048})

    def cost(self, net, op, output):
        plain = super().cost(net, op, output)
        saved = {"near": 9, "far": 4}[op.places[0][0]] if op.places else 0
        return replace(plain, cycles=plain.cycles - saved)

    def lower(self, tile):
        assert [name for name, _ in tile.op.places] == tile.op.choice.split()[2:]
        return super().lower(tile)
"""


@pytest.mark.exhaustive
def test_a_build_with_constants_on_two_levels_of_memory_runs(tmp_path: Path) -> None:
    """Each memory takes the most profitable constants until full; the emulated board's outputs stay the same."""
    choices = "[Choice('8 pixels'), Choice('8 pixels near', {'near': 700}), Choice('8 pixels far', {'far': 700})]"
    levels = board(tmp_path, choices, TWO_LEVELS.strip())
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", levels, pes=1, engine="systolic8x8")
    kept = {place for op in built.net().ops for place in op.places}
    assert kept == {("near", 0), ("far", 0), ("far", 704)}
    assert api.validate(built.folder, cases=2).passed


@pytest.mark.parametrize(
    ("choices", "change", "says"),
    [
        ("[Choice('')]", "", "is no Choice with a name of one line"),
        ("[Choice('a'), Choice('a')]", "", "two have one name"),
        ("[Choice('a'), Choice('b', {'sums': 8})]", "", "'b' keeps 8 bytes of 'sums'; memories: {}"),
        ("[Choice('a', {'sums': 8})]", "abilities = Abilities(memories={'sums': 8})", "the first, 'a', keeps"),
        ("[]", "abilities = Abilities(memories={'sums': 0})", "its memories are {'sums': 0}"),
    ],
)
def test_choices_that_make_no_sense(choices: str, change: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(NpukitError) as error:
        api.fit(DIGITS / "digits_int8.tflite", board=board(tmp_path, choices, change), options=api.Options(pes=1))
    assert says in error.value.message
