"""Boards behind a TVM tracker, used by TVM's own client in another process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, build, shared_build
from frontend.tflite_models import ring
from npukit import api
from npukit.cli.main import app
from npukit.cli.verbs.serve import _who
from npukit.errors import DoesNotFit, NpukitError
from npukit.farm.served import ServedBoard
from npukit.farm.server import functions_of
from npukit.farm.tracker import HostPort
from npukit.project.build_folder import GOLDEN, Build
from npukit.tuning import TUNED_VARIABLE

CLIENT = Path(__file__).parent / "stock_client.py"
KEY = "digits-board"
NPUKIT = [sys.executable, "-c", "from npukit.cli.main import run; run()"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("farm") / "digits", pes=1)


@pytest.fixture(scope="module")
def tracker() -> Iterator[str]:
    pytest.importorskip("tornado", reason="TVM's tracker needs tornado")
    from tvm.rpc.tracker import Tracker

    started = Tracker("127.0.0.1", port=9290, port_end=9390, silent=True)
    yield f"127.0.0.1:{started.port}"
    started.terminate()


@contextmanager
def served(build: Build, *words: str) -> Iterator[dict[str, Any]]:
    """Serve the build with `npukit serve`. Yields the printed JSON."""
    command = [*NPUKIT, "serve", str(build.folder), *words, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as verb:
        assert verb.stdout is not None
        yield json.loads("".join(iter(verb.stdout.readline, "}\n")) + "}")
        verb.terminate()
        assert verb.wait(60) == 0


@pytest.fixture(scope="module")
def farm(digits: Build, tracker: str) -> Iterator[str]:
    """Two boards registered at a tracker. Yields the tracker's address."""
    words = ("--tracker", tracker, "--key", KEY, "--trials")
    with served(digits, *words, "--port", "9400") as said, served(digits, *words, "--port", "9400") as other:
        assert (said["key"], said["tracker"]) == (KEY, tracker)
        assert said["port"] < other["port"]
        yield tracker


@pytest.mark.exhaustive
def test_a_stock_client_in_another_process_runs_and_times_the_network(digits: Build, farm: str, tmp_path: Path) -> None:
    golden, got = digits.folder / GOLDEN, tmp_path / "got.npz"
    port = farm.rpartition(":")[2]
    subprocess.run([sys.executable, str(CLIENT), port, KEY, str(golden), str(got)], check=True, timeout=300)
    found, wanted = np.load(got), np.load(golden)["out0"]
    assert np.array_equal(found["results"], wanted)
    assert np.array_equal(found["by_name"], wanted[0])
    assert "run takes 1 inputs, then 1 outputs, not 1 tensors" in str(found["wrong"])
    latency = api.bench(digits.folder).latency_cycles
    cycles = [*found["seconds"], *found["least"]]
    assert [round(seconds * digits.board.core.clock_hz) for seconds in cycles] == [latency] * 4


@pytest.mark.exhaustive
def test_a_board_behind_a_port_is_served(digits: Build, tracker: str, tmp_path: Path) -> None:
    """An emulated board with its flash and its link behind a port, like a board on the desk."""
    golden, got, key = digits.folder / GOLDEN, tmp_path / "got.npz", "behind-a-port"
    with (
        api.emulate(digits, port=0) as line,
        served(digits, "--on", line.port, "--tracker", tracker, "--key", key, "--port", "9400"),
    ):
        words = [tracker.rpartition(":")[2], key, str(golden), str(got)]
        subprocess.run([sys.executable, str(CLIENT), *words], check=True, timeout=300)
    assert np.array_equal(np.load(got)["results"], np.load(golden)["out0"])


@pytest.mark.exhaustive
def test_a_network_with_states_goes_on_until_a_client_resets_it(tmp_path: Path) -> None:
    (tmp_path / "ring.tflite").write_bytes(ring(begins=5).bytes(["all"]))
    board = ServedBoard(build(tmp_path / "ring.tflite", tmp_path / "out", pes=1).folder, None)
    functions, frame = functions_of(board, trials=False), np.array([[[1, 2, 3]]], np.int8)
    results = [np.zeros((1, 3, 3), np.int8) for _ in range(3)]
    functions["npukit.run"](frame, results[0])
    functions["npukit.run"](frame, results[1])
    functions["npukit.reset"]()
    functions["npukit.run"](frame, results[2])
    board.close()
    assert results[0].ravel().tolist() == [5, 5, 5, 5, 5, 5, 1, 2, 3]
    assert results[1].ravel().tolist() == [5, 5, 5, 1, 2, 3, 1, 2, 3]
    assert np.array_equal(results[0], results[2])


@pytest.mark.exhaustive
def test_bench_spreads_over_the_boards_of_a_farm(digits: Build, farm: str) -> None:
    words = ["bench", str(digits.folder), "--tracker", farm, "--key", KEY, "--frames", "5", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    found, alone = json.loads(done.stdout), api.bench(digits.folder)
    assert found["latency_cycles"] == alone.latency_cycles
    assert [board["latency_cycles"] for board in found["boards"]] == [alone.latency_cycles] * 2
    assert [board["frames"] for board in found["boards"]] == [2, 3]


def test_a_key_that_no_board_has_is_named(digits: Build, farm: str) -> None:
    with pytest.raises(NpukitError, match=f"no board of key pe-mesh .its keys: {KEY}"):
        api.farm_bench(digits.folder, tracker=farm)


def test_boards_that_serve_another_build_do_not_fit(farm: str) -> None:
    from npukit.farm.client import farm_bench

    with pytest.raises(DoesNotFit, match=f"not build {'00' * 16}"):
        farm_bench(HostPort.parse(farm), KEY, "00" * 16, 1)


def test_a_tracker_that_is_not_there_is_an_error_at_once(digits: Build) -> None:
    with (
        pytest.raises(NpukitError, match=r"no tracker answers at 127\.0\.0\.1:1:") as caught,
        api.serve(digits.folder, tracker="127.0.0.1:1"),
    ):
        pass
    assert "pip install 'npukit[farm]'" in caught.value.tries[0]
    assert caught.value.tries[0].endswith("--port 1 --port-end 2")


@pytest.mark.exhaustive
def test_it_says_who_may_do_what(digits: Build) -> None:
    with served(digits, "--port", "9450") as said:
        assert (said["host"], said["allows"]) == ("127.0.0.1", ["run, time and describe this network"])


@pytest.mark.parametrize(("host", "who"), [("127.0.0.1", "on this machine"), ("::1", "on this"), ("0.0.0.0", "EVERY")])
def test_it_says_so_loudly(host: str, who: str) -> None:
    assert who in _who(host)


@pytest.mark.parametrize("text", ["", "here", "here:", ":1", "here:70000", "here:x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(NpukitError, match="is not a host and a port"):
        HostPort.parse(text)


@pytest.mark.exhaustive
def test_trials_run_on_all_boards_side_by_side(
    digits: Build, farm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TUNED_VARIABLE, str(tmp_path / "tuned.json"))
    own = Path(shutil.copytree(digits.folder, tmp_path / "own"))
    tuned = api.tune(own, tracker=farm, key=KEY)
    assert tuned.trials == 2, "two worths of a byte of softmax's code, one on each board"
    assert tuned.unit == "cycles"
    assert tuned.after <= tuned.before == api.bench(digits.folder, frames=1).latency_cycles
    with pytest.raises(NpukitError, match="no board of key nobody"):
        api.tune(own, tracker=farm, key="nobody")
