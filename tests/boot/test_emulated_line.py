"""flash, validate, bench and monitor as a user runs them, on an emulated board behind a port of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import shared_build
from helpers import CHECKOUT, models, needs
from npukit import api
from npukit.board.board import Uart
from npukit.cli.main import app
from npukit.errors import NpukitError
from npukit.link.emulated_line import EmulatedLine, open_port
from npukit.link.session import Session
from npukit.link.transports import open_serial
from npukit.project.build_folder import Build

DIGITS = CHECKOUT / "examples" / "digits"


NETWORKS = {"digits": 4, "kws_ref_model": 1, "pretrainedResnet_quant": 16}
"""PEs by network: the example on 4 PEs, with a mesh to load and messages; keyword spotting on one; image classification
on all."""


FEW = [name if name == "digits" else pytest.param(name, marks=pytest.mark.exhaustive) for name in NETWORKS]


@pytest.fixture(scope="module", params=FEW)
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    name = request.param
    model = DIGITS / "digits_int8.tflite" if name == "digits" else models() / f"{name}.tflite"
    return shared_build(model, tmp_path_factory.mktemp(name) / name, pes=NETWORKS[name])


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    assert CliRunner().invoke(app, ["new", "key", "-o", str(path)]).exit_code == 0
    return path


@pytest.fixture(scope="module")
def port(build: Build) -> Iterator[str]:
    with api.emulate(build, new=True) as line:
        yield line.port


def said(*words: str) -> dict:
    """Output of a verb with --json."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.exhaustive
def test_a_board_is_flashed_validated_measured_and_watched_over_a_serial_port(
    build: Build, key_file: Path, port: str
) -> None:
    folder = str(build.folder)
    flashed = said("flash", folder, "--port", port, "--key", str(key_file), "--version", "1.2.3", "--provision")
    assert flashed["takes"]["policy"] == "key"
    assert (flashed["version"], flashed["pages_written"]) == ("1.2.3+0", flashed["pages_in_image"])
    assert said("validate", folder, "--on", port, "--cases", "1")["outputs_equal"]
    measured = said("bench", folder, "--on", port, "--frames", "1")
    # On a busy machine the host repeats the request, which takes a little of the root PE's time.
    emulated = said("bench", folder, "--frames", "1")["latency_cycles"]
    assert measured["latency_cycles"] == pytest.approx(emulated, rel=0.005)
    looks = said("monitor", folder, "--on", port, "--times", "2", "--every", "0")["looks"]
    assert looks[1]["cycles"] > looks[0]["cycles"]
    began = said("monitor", folder, "--on", port, "--reset", "--start", "5", "--times", "1", "--every", "0.2")
    assert began["looks"][0]["pes"][0]["frames"] <= 5  # since the reset
    assert 1 <= began["run"]["frames"] <= began["run"]["asked"] == 5
    again = said("flash", folder, "--port", port, "--key", str(key_file), "--version", "1.2.3")
    assert again["pages_written"] == 0


@pytest.mark.exhaustive
def test_the_build_is_there_from_the_start_and_again_from_its_flash(build: Build, tmp_path: Path) -> None:
    """Over TCP, one host after the other."""
    validate = ("validate", str(build.folder), "--cases", "1", "--on")
    with api.emulate(build, port=0, flash=tmp_path / "flash") as line:
        assert line.port.startswith("rfc2217://127.0.0.1:")
        assert said(*validate, line.port)["outputs_equal"]
        assert said("flash", str(build.folder), "--port", line.port, "--version", "2.0")["replaced"] == "0.0.0+0"
        assert said(*validate, line.port)["outputs_equal"]
    with api.emulate(build, port=0, flash=tmp_path / "flash") as line:
        assert said("flash", str(build.folder), "--port", line.port, "--version", "2.0")["pages_written"] == 0


def test_a_tcp_port_that_is_taken_is_named() -> None:
    with closing(open_port(0)) as port:
        number = int(port.name.rpartition(":")[2])
        with pytest.raises(NpukitError, match=f"TCP port {number} cannot be opened"):
            open_port(number)


def test_a_system_without_pseudo_terminals_has_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.openpty")
    with pytest.raises(NpukitError, match="no pseudo-terminals") as error:
        open_port()
    assert error.value.tries == ("--port NUMBER, for TCP",)


@pytest.mark.exhaustive
def test_a_board_that_fails_is_told() -> None:
    class Broken:
        def read(self, timeout: float) -> bytes:
            raise NpukitError("PE 0 faults")

        def write(self, data: bytes) -> None: ...

        def close(self) -> None: ...

    with closing(EmulatedLine(Broken(), open_port())) as line, pytest.raises(NpukitError, match="PE 0 faults"):
        line.wait()


@needs("qemu-system-arm")
@pytest.mark.exhaustive
def test_a_board_of_qemu_s_is_one_too(tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", "mps2-an386")
    with api.emulate(built) as line:
        assert said("validate", str(built.folder), "--cases", "1", "--on", line.port)["outputs_equal"]


@pytest.mark.exhaustive
def test_the_verb_says_where_the_board_is_until_it_is_stopped(build: Build) -> None:
    """A third-party host program, which opens the port and reads nothing but frames."""
    command = [sys.executable, "-c", "from npukit.cli.main import run; run()", "emulate", str(build.folder), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "kit")}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores SIGINT
    with subprocess.Popen(command, stdout=-1, stderr=-3, text=True, env=environment, preexec_fn=heard) as process:
        assert process.stdout is not None
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        assert (told["board"], told["build_id"]) == ("pe-mesh", build.manifest.build_id)
        with closing(open_serial(told["port"], Uart(base=0, baud=115_200))) as line, Session(line) as session:
            assert session.device.model == build.manifest.model
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
