"""A board of 2 x 2 chips of 2 x 2 PEs: every chip computes frames of its own, with the same plan and images."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from boot.test_mesh import flash_with
from end_to_end.builds import DIGITS, build
from npukit import api
from npukit.boot.loader import loader_area
from npukit.boot.mesh_image import mesh_image
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version, sign_image
from npukit.data import data_folder
from npukit.emulator.flashed import FlashedBoard
from npukit.link.session import Session
from npukit.measure.cases import rounds
from npukit.measure.device_trace import record_on_device
from npukit.measure.golden import golden
from npukit.measure.target import open_target
from npukit.measure.validate import run_round
from npukit.project.build_folder import Build

PES, CHIPS = 4, 4


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return on_small_chips(tmp_path_factory.mktemp("chips"))


def on_small_chips(folder: Path, **options: object) -> Build:
    text = (data_folder("boards") / "pe-mesh.toml").read_text()
    for grid in ("columns = 1, rows = 1", "columns = 4, rows = 4"):
        assert grid in text
        text = text.replace(grid, "columns = 2, rows = 2")
    (folder / "small.toml").write_text(text)
    model = DIGITS / "digits_int8.tflite"
    return build(model, folder / "out", board=str(folder / "small.toml"), objective="throughput", **options)


@pytest.mark.exhaustive
def test_programs_and_tables_are_those_of_one_chip(built: Build) -> None:
    """Separate programs for the root, the leaders of the other chips, and the workers."""
    plan = built.plan()
    assert plan.pes_used == PES * CHIPS
    assert {pe.pe for pe in plan.pes} == set(range(PES))
    images = built.images()
    assert sorted(pe for image in images for pe in image.pes) == list(range(PES * CHIPS))
    assert {image.pes for image in images} >= {(0,), (4, 8, 12)}
    (workers,) = (image for image in images if len(image.pes) == (PES - 1) * CHIPS)
    own = {overlay.pe: overlay.data for overlay in workers.overlays}
    assert all(own[pe] == own[pe % PES] for pe in workers.pes)


@pytest.mark.exhaustive
def test_every_frame_on_every_chip_is_exact(built: Build) -> None:
    """More cases than all chips take together; all tiles of all PEs."""
    plan = built.plan()
    with np.load(DIGITS / "digits.npz") as file:
        images = file["in0"][: plan.frames_of_all + 3]
    path = built.folder.parent / "images.npz"
    np.savez(path, in0=images)
    found = api.validate(built.folder, inputs=path)
    assert found.passed, found.mismatches
    tiles = sum(len(pe.tiles) for pe in plan.pes)
    assert found.tiles_checked == 2 * CHIPS * tiles


@pytest.mark.exhaustive
def test_all_chips_together_take_hardly_longer_than_one(built: Build) -> None:
    measured, predicted = api.bench(built.folder, frames=1), built.plan().predicted
    assert measured.latency_cycles is not None
    assert abs(measured.latency_cycles - predicted.latency_cycles) < 0.05 * measured.latency_cycles
    assert {pe.pe for pe in measured.pes} == set(range(PES * CHIPS))
    assert all(pe.instructions for pe in measured.pes)


@pytest.mark.exhaustive
def test_a_trace_shows_the_root_s_chip(built: Build, tmp_path: Path) -> None:
    traced = api.trace(built.folder, tmp_path / "trace.json")
    assert traced.pes == tuple(range(PES))
    names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {op.name for op in built.net().ops if op.engine == "mac_array"} <= names


@pytest.mark.exhaustive
def test_the_firmware_notes_the_steps_of_the_root_s_chip(tmp_path: Path) -> None:
    """The root's round begins with its signal to the other chips and ends with their signals."""
    built = on_small_chips(tmp_path, trace=True)
    with open_target(built) as target:
        traced = record_on_device(built, target.session, golden(built.net()).cases, 2)
    assert traced.pes == tuple(range(PES))
    assert len(traced.frames) == 2
    computing = {piece.pe for piece in traced.slices if piece.step is not None}
    assert computing == {pe.pe for pe in built.plan().pes if any(pe.computes())}


@pytest.mark.exhaustive
def test_long_programs_start_and_end_with_the_words_of_the_chips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program is a table in this test, as on full chips, where 152 PEs signal the root."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", 1)
    built = on_small_chips(tmp_path, trace=True)
    plan = built.plan()
    found = api.validate(built.folder, inputs=DIGITS / "digits.npz", cases=plan.frames_of_all)
    assert found.passed, found.mismatches
    assert found.tiles_checked == CHIPS * sum(len(pe.tiles) for pe in plan.pes)
    measured = api.bench(built.folder, frames=1)
    assert all(pe.instructions for pe in measured.pes)
    with open_target(built) as target:
        traced = record_on_device(built, target.session, golden(built.net()).cases, 2)
    assert {piece.pe for piece in traced.slices if piece.step is not None} == set(range(PES))


@pytest.mark.exhaustive
def test_chips_are_loaded_together_from_flash(built: Build, tmp_path: Path) -> None:
    """Flash holds the own data of PEs once for all chips."""
    own = sum(len({overlay.data for overlay in image.overlays}) for image in built.images())
    payload = mesh_image(built.board, built.images(), built.build_id)
    overlays = [overlay for image in built.images() for overlay in image.overlays]
    assert len(overlays) == CHIPS * own
    assert all(payload.count(overlay.data) == 1 for overlay in overlays)
    image = sign_image(payload, Version(1), None).data
    file = flash_with(loader_area(built.board, takes_of(None).record()), image, tmp_path / "flash")
    net, cases = built.net(), golden(built.net()).cases
    with closing(FlashedBoard(built.board, file)) as board, Session(board, built.build_id) as session:
        chosen = rounds(cases.count, built.plan().frames_of_all)[0]
        for case, (got,) in zip(chosen, run_round(session, net, cases, chosen, observe=False), strict=True):
            assert np.array_equal(got, cases.expected[0][case])
