"""Tuning: a result is faster and equal, builds use it, files of records merge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.errors import NpukitError
from npukit.farm.trial import Trial
from npukit.farm.trials import Measurer
from npukit.net.importer.loops import AS_WRITTEN, Blocking, load_kernels
from npukit.net.net import Net
from npukit.options import OWN_PLAN
from npukit.plan.layout.tuned_choices import MEMORY_RELAXED, worth_of
from npukit.project.build_folder import GOLDEN, Build
from npukit.tuner import search_space, session
from npukit.tuning import TUNED_VARIABLE, Database, TuningRecord, default_path, load_database

FLOAT = CHECKOUT / "examples/digits/digits_float.onnx"
INT8 = CHECKOUT / "examples/digits/digits_int8.tflite"
SLOW = TuningRecord("conv", "code 0.25", 70, 100, ("code 0.25",))
FAST = TuningRecord("conv", "code 0", 50, 100, ("code 0",))


def test_of_two_findings_the_faster_stays_and_nothing_is_tried_twice() -> None:
    merged = Database({"a": SLOW}).merged(Database({"a": FAST, "b": SLOW}))
    assert merged.records["a"] == replace(FAST, tried=("code 0.25", "code 0"))
    assert merged.records["b"] == SLOW
    again = Database({"a": FAST}).merged(Database({"a": SLOW}))
    assert again.choice("a") == FAST.choice


def test_findings_are_read_back(tmp_path: Path) -> None:
    Database({"a": SLOW, "b": FAST}).save(tmp_path / "new/tuned.json")
    assert load_database(tmp_path / "new/tuned.json").records == {"a": SLOW, "b": FAST}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tuned.json"]
    assert load_database(tmp_path / "nothing.json").records == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"format": 2, "records": {}}',
        '{"format": 3, "records": {"a": 3}}',
        '{"format": 3, "records": {"a": {"what": "c", "choice": 3, "cost": 1, "before": 1, "tried": []}}}',
        '{"format": 3, "records": {"a": {"what": "c", "choice": "code 0", "cost": "x", "before": 1, "tried": []}}}',
    ],
)
def test_a_file_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_text(text)
    with pytest.raises(NpukitError, match=r"is not a file of tuning results"):
        load_database(tmp_path / "tuned.json")


def test_choices_are_texts_that_read_back() -> None:
    assert worth_of("code 0.25") == 0.25
    for text in ("code -1", "x 1"):
        with pytest.raises(NpukitError, match="is no tuning record"):
            worth_of(text)


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of tuning records."""
    monkeypatch.setenv(TUNED_VARIABLE, str(tmp_path / "tuned.json"))
    return default_path()


ON_CORE = api.Options(pes=1, engine="cpu")


@pytest.fixture(scope="module")
def on_core(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return untuned(INT8, tmp_path_factory, ON_CORE)


def untuned(model: Path, tmp_path_factory: pytest.TempPathFactory, options: api.Options) -> Build:
    """A build without tuning records, whatever the user of this machine has tuned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TUNED_VARIABLE, str(tmp_path_factory.mktemp("none") / "tuned.json"))
        return api.build(model, output=tmp_path_factory.mktemp("built") / "out", options=options)


def copied(built: Build, folder: Path) -> Build:
    return api.load(shutil.copytree(built.folder, folder))


@pytest.mark.exhaustive
def test_what_cannot_be_tuned_is_named(
    on_core: Build, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.Options(plan="plan.toml").to_json()["plan"] == OWN_PLAN, "the manifest says that there was one"
    told = json.loads((on_core.folder / "npukit.json").read_text())
    told["options"]["plan"] = OWN_PLAN
    own = copied(on_core, tmp_path / "own")
    (own.folder / "npukit.json").write_text(json.dumps(told))
    with pytest.raises(NpukitError, match="a mapping of your own"):
        api.tune(own.folder)
    monkeypatch.setattr("npukit.tuner.session.search_space", lambda build, kernels: [])
    with pytest.raises(NpukitError, match="nothing to tune"):
        api.tune(on_core.folder)
    assert not found.exists()


IN_FLOAT = api.Options(pes=1, in_float=True)


@pytest.fixture(scope="module")
def in_float(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return untuned(FLOAT, tmp_path_factory, IN_FLOAT)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("whole", "exact"), [(90, True), (110, True), (90, False)])
def test_what_is_no_gain_or_not_exact_does_not_stay(
    whole: int, exact: bool, in_float: Build, found: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kernel alone may be faster while the whole network is slower."""
    monkeypatch.setattr(search_space, "BLOCKINGS", (Blocking(0, 4),))
    monkeypatch.setattr(session, "TRIALS", 0)
    monkeypatch.setattr(search_space, "WORTHS", ())
    layers = [
        name for each in search_space.search_space(in_float, load_kernels(in_float.folder)) for name in each.layers
    ]
    baseline = Trial("cycles", 100, dict.fromkeys(layers, 100), True)
    better = Trial("cycles", 100, dict.fromkeys(layers, 50), exact)
    trials = iter((baseline, better, replace(better, cost=whole)))
    numbers = iter(range(9))

    @contextmanager
    def measurer(on: str | None) -> Iterator[Measurer]:
        del on
        yield Measurer(1, lambda builds: [next(trials) for _ in builds])

    def build_again(build: Build, *_: object) -> Build:
        return replace(build, manifest=build.manifest.model_copy(update={"build_id": f"{next(numbers):032x}"}))

    replaced: list[Path] = []
    monkeypatch.setattr("npukit.farm.trials.local", measurer)
    monkeypatch.setattr("npukit.pipeline.build_again", build_again)
    monkeypatch.setattr("npukit.tuner.session.replace_build", lambda source, output: replaced.append(output))
    tuned = api.tune(in_float.folder)
    kept = {record.choice for record in load_database(found).records.values()}
    gain = whole < 100 and exact
    assert tuned.after == (whole if gain else 100)
    assert kept == ({str(Blocking(0, 4))} if gain else {str(AS_WRITTEN)})
    assert replaced == ([in_float.folder] if gain else [])


@pytest.mark.exhaustive
def test_what_fits_only_apart_is_tried_apart_and_what_computes_otherwise_is_not_taken(
    in_float: Build, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One changed kernel fits only if no other kernel is changed, and its build computes other outputs than the untuned
    build."""
    monkeypatch.setattr(search_space, "BLOCKINGS", (Blocking(0, 4),))
    monkeypatch.setattr(session, "TRIALS", 0)
    others = search_space.search_space(in_float, load_kernels(in_float.folder))
    odd = others.pop(next(place for place, each in enumerate(others) if "conv2d" in each.what))
    layers = [name for each in (odd, *others) for name in each.layers]
    wrong = copied(in_float, tmp_path / "wrong")
    arrays = dict(np.load(wrong.folder / GOLDEN))
    np.savez(wrong.folder / GOLDEN, **{**arrays, "out0": np.nextafter(arrays["out0"], np.float32(9))})
    usual, numbers = {op.name: op for op in in_float.net().ops}, iter(range(1, 99))

    def build_again(build: Build, net: Net, *_: object) -> Build:
        changed = {op.name for op in net.ops if op != usual[op.name]}
        if changed > set(odd.layers):
            raise NpukitError("it does not fit")
        made = wrong if changed == set(odd.layers) else build
        return replace(made, manifest=build.manifest.model_copy(update={"build_id": f"{next(numbers):032x}"}))

    def measure(builds: Sequence[Build]) -> list[Trial]:
        costs = [100 if build.build_id == in_float.build_id else 50 for build in builds]
        return [Trial("cycles", cost, dict.fromkeys(layers, cost), True) for cost in costs]

    @contextmanager
    def measurer(on: str | None) -> Iterator[Measurer]:
        del on
        yield Measurer(1, measure)

    monkeypatch.setattr("npukit.farm.trials.local", measurer)
    monkeypatch.setattr("npukit.pipeline.build_again", build_again)
    monkeypatch.setattr("npukit.tuner.session.replace_build", lambda source, output: None)
    assert api.tune(in_float.folder).after == 50
    records = load_database(found).records
    assert records[odd.key].choice == odd.usual
    assert {records[each.key].choice for each in others} == {str(Blocking(0, 4))}
    assert all(str(Blocking(0, 4)) in record.tried for record in records.values())


@pytest.mark.exhaustive
def test_a_float_network_gets_faster_stays_equal_and_the_next_build_knows(
    in_float: Build, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tuning needs only the build folder, not the model."""
    monkeypatch.setattr(search_space, "BLOCKINGS", (Blocking(0, 4, 1, 1, 2),))
    monkeypatch.setattr(session, "TRIALS", 0)
    before = api.run(in_float.folder, inputs=in_float.folder / GOLDEN)

    tuned = api.tune(in_float.folder)
    assert tuned.trials == 1
    assert tuned.unit == "cycles"
    assert tuned.after < 0.8 * tuned.before
    after = api.run(in_float.folder, inputs=in_float.folder / GOLDEN)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))

    following = api.build(FLOAT, output=tmp_path / "next", options=IN_FLOAT)
    assert following.manifest.build_id == api.load(in_float.folder).manifest.build_id
    assert found.is_file()
    assert api.tune(in_float.folder).trials == 0, "nothing is tried twice"


@pytest.mark.exhaustive
def test_what_metaschedule_finds_is_equal_and_the_next_build_has_it_without_a_search(
    in_float: Build, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_space, "BLOCKINGS", ())
    monkeypatch.setattr(session, "TRIALS", 2)
    built = copied(in_float, tmp_path / "out")
    before = api.run(built.folder, inputs=built.folder / GOLDEN)
    tuned = api.tune(built.folder)
    assert tuned.trials == 2, "a trial tries a tiling of each kernel"
    assert tuned.after < 0.9 * tuned.before
    assert any(kernel.choice.startswith("tiles ") for kernel in tuned.kernels)
    after = api.run(built.folder, inputs=built.folder / GOLDEN)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert api.tune(built.folder).trials == 0, "nothing is tried twice"

    monkeypatch.setattr("npukit.tuner.session.LoopSearches.proposals", None)
    following = api.build(FLOAT, output=tmp_path / "next", options=IN_FLOAT)
    assert following.manifest.build_id == api.load(built.folder).manifest.build_id


@pytest.mark.exhaustive
def test_a_tiling_that_is_not_of_these_loops_is_refused(in_float: Build, found: Path, tmp_path: Path) -> None:
    key = next(
        each.key for each in search_space.search_space(in_float, load_kernels(in_float.folder)) if "conv2d" in each.what
    )
    Database({key: TuningRecord("conv2d", "tiles 1x3x1x1/7x1x1", 1, 2)}).save(found)
    with pytest.raises(NpukitError, match="is no arrangement of these loops") as caught:
        api.build(FLOAT, output=tmp_path / "out", options=IN_FLOAT)
    assert caught.value.tries


@pytest.mark.exhaustive
def test_an_int8_network_on_the_core_is_never_slower_and_the_next_build_is_the_same(
    on_core: Build, found: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_space, "WORTHS", ("code 0",))
    built = copied(on_core, tmp_path / "out")
    tuned = api.tune(built.folder)
    assert tuned.trials == 2, "another worth of a byte of code, and memory-relaxed layouts"
    assert tuned.after <= tuned.before
    assert MEMORY_RELAXED in load_database(found).records[tuned_whole(found)].tried
    following = api.build(INT8, output=tmp_path / "next", options=ON_CORE)
    assert following.manifest.build_id == api.load(built.folder).manifest.build_id


def tuned_whole(path: Path) -> str:
    """The key of the record for the whole network."""
    return next(key for key, each in load_database(path).records.items() if " on one PE of " in each.what)


@pytest.mark.exhaustive
def test_findings_of_others_are_merged_and_used_without_a_trial(on_core: Build, found: Path, tmp_path: Path) -> None:
    built = copied(on_core, tmp_path / "out")
    theirs = tmp_path / "theirs.json"
    keys = {each.key: each for each in search_space.search_space(built, {}) if each.layers}
    Database({key: TuningRecord(each.what, "code 0", 1, 2, ("code 0",)) for key, each in keys.items()}).save(theirs)
    tuned = api.tune(built.folder, budget_seconds=0, merge=[theirs])
    assert tuned.trials == 0
    assert load_database(found).records.keys() == keys.keys()
    assert tuned.after <= tuned.before
