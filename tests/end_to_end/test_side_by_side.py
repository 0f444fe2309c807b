"""Several networks side by side on one board: each bit for bit while all run, and addressed by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import DIGITS
from frontend.onnx_models import Graph, saved
from helpers import models
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.companions import CompanionSession, SharedLink, run_together
from npukit.link.conversation import Refused
from npukit.link.messages import Status
from npukit.link.runs import Stage
from npukit.measure.target import network_pe
from npukit.plan.ir.plan import Send
from npukit.project.build_folder import Build

TFLITE, ONNX = DIGITS / "digits_int8.tflite", DIGITS / "digits_qdq.onnx"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks, each over several PEs."""
    folder = tmp_path_factory.mktemp("networks") / "build"
    networks = [api.Network("left", TFLITE, 3), api.Network("right", ONNX, 4)]
    api.build_networks(networks, output=folder, options=api.Options(io="int8"))
    return folder


def pes(build: Build) -> set[int]:
    return {pe.pe for pe in build.plan().pes}


@pytest.mark.exhaustive
def test_each_is_exact_while_the_others_run(folder: Path) -> None:
    builds = api.load_networks(folder)
    assert [len(pes(build)) for build in builds.values()] == [3, 4]
    assert pes(builds["left"]).isdisjoint(pes(builds["right"]))
    for found in api.validate_networks(folder, cases=1).values():
        assert found.passed, found.mismatches
        assert found.tiles_checked > found.layers_checked > 0
        assert found.schedules == (1,)


@pytest.mark.exhaustive
def test_a_schedule_is_repeated_alone_while_the_others_run(folder: Path) -> None:
    for found in api.validate_networks(folder, cases=1, schedule=3).values():
        assert found.passed, found.mismatches
        assert (found.schedules, found.tiles_checked) == ((3,), 0)


@pytest.mark.exhaustive
def test_each_is_run_and_timed_by_its_name(folder: Path, tmp_path: Path) -> None:
    cases = np.load(DIGITS / "digits.npz")
    np.savez(tmp_path / "few.npz", in0=cases["in0"][:10])
    for name in ("left", "right"):
        (scores,) = api.run(folder / name, inputs=tmp_path / "few.npz")
        assert (scores.reshape(10, -1).argmax(1) == cases["labels"][:10]).all()
    for measured in api.bench_networks(folder, frames=1).values():
        alone, together = measured.alone.interval_cycles, measured.coresident_interval_cycles
        assert alone
        assert together
        assert 0.99 * alone < together < 1.2 * alone


@pytest.mark.exhaustive
def test_they_run_at_the_same_time(folder: Path) -> None:
    """Both networks together take as long per frame as the slower alone, to a few per cent."""
    builds = list(api.load_networks(folder).values())
    emulator = Emulator(builds[0].board, builds[0].images())
    link = SharedLink(emulator)
    sessions = [CompanionSession(link.line(), build.build_id, pe=network_pe(build)) for build in builds]
    for session in sessions:
        session.open()
    begun = emulator.time()
    results = run_together([(session, False, 2000) for session in sessions])
    spent = emulator.time() - begun
    emulator.close()
    longest = max(result.cycles for result in results)
    assert spent < 1.15 * longest < 0.7 * sum(result.cycles for result in results)


@pytest.fixture
def sessions(folder: Path) -> Iterator[tuple[CompanionSession, CompanionSession]]:
    """Sessions with the network on the link, and with the other network."""
    builds = list(api.load_networks(folder).values())
    with closing(Emulator(builds[0].board, builds[0].images())) as emulator:
        link = SharedLink(emulator)
        linked, beside = (CompanionSession(link.line(), b.build_id, pe=network_pe(b)) for b in builds)
        linked.open()
        beside.open()
        yield linked, beside


@pytest.mark.exhaustive
def test_each_is_started_looked_at_stopped_and_resumed_while_the_other_runs(
    sessions: tuple[CompanionSession, CompanionSession],
) -> None:
    linked, beside = sessions
    runs = [session.start(1_000_000) for session in (linked, beside)]
    first = [run.state() for run in runs]
    later = [run.state() for run in runs]
    assert all(b.stage is Stage.UNDER_WAY and b.ran > a.ran for a, b in zip(first, later, strict=True))
    stopped, going = runs[1].stop(), runs[0].state()
    assert runs[1].state() == stopped
    assert runs[0].state().ran > going.ran
    assert runs[1].resume().ran >= stopped.ran
    assert runs[1].state().ran > stopped.ran
    assert runs[0].stop().stage is runs[1].stop().stage is Stage.STOPPED


@pytest.mark.exhaustive
def test_the_network_that_has_the_link_restarts_the_board_for_all(
    folder: Path, sessions: tuple[CompanionSession, CompanionSession]
) -> None:
    linked, beside = sessions
    _, other = api.load_networks(folder).values()
    with pytest.raises(Refused) as refused:
        beside.reset()
    assert refused.value.status == Status.OTHER_PE
    beside.run()
    linked.reset()
    with pytest.raises(Refused) as refused:
        beside.run()
    assert refused.value.status == Status.OTHER_PE
    beside.open()
    assert [state.frames for state in beside.pes()] == [0] * len(other.plan().pes)


@pytest.mark.exhaustive
def test_a_lost_message_of_one_network_names_its_pes(folder: Path, tmp_path: Path) -> None:
    build = api.load_networks(folder)["right"]
    plan = build.plan()
    sent = [step.message for step in plan.pes[0].steps if isinstance(step, Send) and plan.messages[step.message].tensor]
    number = next(n for n in sent if plan.messages[n].landings[0].pe != plan.pes[0].pe)
    reader = plan.messages[number].landings[0].pe
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({"seed": 1, "fault": [{"kind": "drop", "message": number, "to": reader}]}))
    with pytest.raises(
        NpukitError, match=rf"failed to run on pe-mesh: .*PE {reader} stopped with error code 8"
    ) as raised:
        api.validate(build.folder, faults=faults)
    assert any("was lost" in fact for fact in raised.value.facts)


def smallest(folder: Path) -> Path:
    """A network with a single pooling op."""
    graph = Graph()
    real = graph.dequantized("x", 0.05, -3)
    pooled = graph.node("MaxPool", [real], "pooled", kernel_shape=[2, 2], strides=[2, 2])
    return saved(graph.model({"x": (1, 16, 8, 8)}, graph.quantized(pooled, 0.05, -3, "y")), folder)


@pytest.mark.exhaustive
def test_rounds_have_their_own_places_in_dram(tmp_path: Path) -> None:
    model = smallest(tmp_path)
    networks = [api.Network("left", model, 2), api.Network("right", model, 2)]
    options = api.Options(objective="throughput")
    builds = api.build_networks(networks, output=tmp_path / "out", options=options)
    left, right = (build.plan().dram for build in builds.values())
    assert left
    assert max(b.offset + b.bytes for b in left) <= min(b.offset for b in right)
    assert all(found.passed for found in api.validate_networks(tmp_path / "out", cases=1).values())


@pytest.mark.exhaustive
def test_networks_of_mlperf_tiny_share_a_mesh(tmp_path: Path) -> None:
    """Each has a fair part of the PEs. Anomaly detection is faster on eight of nine."""
    names = ("kws_ref_model", "ad01_int8")
    networks = [api.Network(name, models() / f"{name}.tflite") for name in names]
    builds = api.build_networks(networks, output=tmp_path / "out")
    assert [len(pes(build)) for build in builds.values()] == [7, 8]
    assert all(found.passed for found in api.validate_networks(tmp_path / "out", cases=1).values())


def refused(networks: Sequence[api.Network], folder: Path, board: str = "pe-mesh") -> NpukitError:
    with pytest.raises(NpukitError) as raised:
        api.build_networks(networks, board=board, output=folder / "out")
    assert not (folder / "out").exists()
    return raised.value


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    error = refused([api.Network("digits", TFLITE), api.Network("digits", ONNX)], tmp_path)
    assert "2 networks would be called digits" in error.message
    assert f"first={TFLITE}" in error.tries[0]


def test_more_networks_than_pes_are_refused(tmp_path: Path) -> None:
    error = refused([api.Network(f"n{i}", TFLITE) for i in range(17)], tmp_path)
    assert isinstance(error, DoesNotFit)
    assert "17 networks want a PE each" in error.message


def test_a_network_that_does_not_fit_beside_the_others_is_named(tmp_path: Path) -> None:
    board = tmp_path / "small.toml"
    text = (DIGITS.parents[1] / "boards/pe-mesh.toml").read_text()
    small = text.replace("size = 0x2_0000", "size = 0x6000").replace("columns = 4, rows = 4", "columns = 2, rows = 1")
    board.write_text(small.replace('name = "pe-mesh"', 'name = "small"'))
    error = refused([api.Network("left", TFLITE), api.Network("right", TFLITE)], tmp_path, str(board))
    assert isinstance(error, DoesNotFit)
    assert error.message.startswith("network left does not fit beside the others")


@pytest.mark.exhaustive
def test_a_network_is_not_built_again_without_the_others(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="shares its board with other networks"):
        api.tune(folder / "left")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    shutil.copytree(copy / "left", copy / "right", dirs_exist_ok=True)
    with pytest.raises(NpukitError, match="was built again without the networks beside it"):
        api.load_networks(copy)


def test_a_verb_for_one_network_asks_which(folder: Path) -> None:
    with pytest.raises(NpukitError, match="has 2 networks: left, right") as raised:
        api.bench(folder)
    assert raised.value.tries[0] == str(folder / "left")
