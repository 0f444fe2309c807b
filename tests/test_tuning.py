"""Tuning: what is found is faster and equal, builds pick it up, files of findings merge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit import api, tuner
from npukit.errors import NpukitError
from npukit.project.build_folder import Build
from npukit.tuning import AS_WRITTEN, VARIABLE, Blocking, Database, Finding, default_path, load_database

FLOAT = CHECKOUT / "examples/digits/digits_float.onnx"
INT8 = CHECKOUT / "examples/digits/digits_int8.tflite"
SLOW = Finding("conv", Blocking(0, 4), 70, 100, (Blocking(0, 4),))
FAST = Finding("conv", Blocking(0, 8), 50, 100, (Blocking(0, 8),))


def test_of_two_findings_the_faster_stays_and_nothing_is_tried_twice() -> None:
    merged = Database({"a": SLOW}).merged(Database({"a": FAST, "b": SLOW}))
    assert merged.findings["a"] == replace(FAST, tried=(Blocking(0, 4), Blocking(0, 8)))
    assert merged.findings["b"] == SLOW
    again = Database({"a": FAST}).merged(Database({"a": SLOW}))
    assert again.findings["a"].blocking == FAST.blocking


def test_findings_are_read_back(tmp_path: Path) -> None:
    Database({"a": SLOW, "b": FAST}).save(tmp_path / "new/tuned.json")
    assert load_database(tmp_path / "new/tuned.json").findings == {"a": SLOW, "b": FAST}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tuned.json"]
    assert load_database(tmp_path / "nothing.json").findings == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2, "findings": {}}',
        '{"format": 1, "findings": {"a": 3}}',
        '{"format": 1, "findings": {"a": {"kernel": "c", "blocking": {"axis": "x"}, "cost": 1, "tried": []}}}',
        '{"format": 1, "findings": {"a": {"kernel": "c", "blocking": {"axis": -4}, "cost": 1, "tried": []}}}',
    ],
)
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_text(text)
    with pytest.raises(NpukitError, match=r"is not a file of tuning results"):
        load_database(tmp_path / "tuned.json")


def test_an_int8_network_has_nothing_to_tune(tmp_path: Path) -> None:
    built = api.build(INT8, output=tmp_path / "out", options=api.Options(pes=1))
    with pytest.raises(NpukitError, match="nothing to tune"):
        api.tune(built.folder, INT8, database=tmp_path / "tuned.json")
    with pytest.raises(NpukitError, match="was not built from"):
        api.tune(built.folder, FLOAT, database=tmp_path / "tuned.json")


IN_FLOAT = api.Options(pes=1, in_float=True)


@pytest.fixture(scope="module")
def in_float(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return api.build(FLOAT, output=tmp_path_factory.mktemp("float") / "out", options=IN_FLOAT)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where findings go; one candidate to try."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuned.json"))
    monkeypatch.setattr(tuner, "CANDIDATES", (Blocking(0, 4),))
    return default_path()


@pytest.mark.parametrize("whole", [90, 110])
def test_what_is_no_gain_does_not_stay(
    whole: int, in_float: Build, found: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel alone may be faster and the whole slower."""

    def measured(self: tuner.Tuner, choices: dict, default: Blocking) -> object:
        del self
        cost, total = (50, 100) if default != AS_WRITTEN else (100, 100)
        return tuner._Measured(
            whole if choices else total, {"k": cost}, {"k": ("conv",)}, {"k": "conv"}, (np.zeros(1),)
        )

    monkeypatch.setattr(tuner.Tuner, "_measure", measured)
    monkeypatch.setattr(tuner.Tuner, "_built", lambda self, folder: None)
    tuned = api.tune(in_float.folder, FLOAT)
    assert tuned.after == min(whole, 100)
    assert load_database(found).findings["k"].blocking == (Blocking(0, 4) if whole < 100 else AS_WRITTEN)


def test_a_float_network_gets_faster_stays_equal_and_the_next_build_knows(
    in_float: Build, found: Path, tmp_path: Path
) -> None:
    built = in_float
    before = api.run(built.folder, inputs=built.folder / "golden.npz")

    tuned = api.tune(built.folder, FLOAT)
    assert tuned.trials == 1
    assert tuned.unit == "cycles"
    assert tuned.after < 0.8 * tuned.before
    assert api.validate(built.folder).passed
    after = api.run(built.folder, inputs=built.folder / "golden.npz")
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))

    api.build(FLOAT, output=tmp_path / "next", options=IN_FLOAT)
    assert api.bench(tmp_path / "next", frames=1).latency_cycles == tuned.after
    assert found.is_file()
