"""flash, validate, bench and monitor as a user runs them, over a real pseudo-terminal with pyserial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from typer.testing import CliRunner

from boot.terminal import PseudoTerminal
from end_to_end.builds import shared_build
from helpers import CHECKOUT, models
from npukit.board.board import load_board
from npukit.boot.keys import load_key, public_bytes
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.cli.main import app
from npukit.emulator.flashed import FlashedBoard
from npukit.project.build_folder import Build
from npukit.project.toolchain import find_toolchain

DIGITS = CHECKOUT / "examples" / "digits"


NETWORKS = {"digits": 4, "kws_ref_model": 1, "pretrainedResnet_quant": 16}
"""The example over 4 PEs: a mesh to load, messages to send; keyword spotting on one PE; image classification on all."""


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


@cache
def factory_loader(key: bytes) -> bytes:
    return loader_area(load_board("pe-mesh"), takes_of(key).record(), find_toolchain("zig"))


@pytest.fixture(scope="module")
def port(build: Build, key_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    key: Ed25519PrivateKey = load_key(key_file)
    loader = factory_loader(public_bytes(key))
    file = tmp_path_factory.mktemp("board") / "flash"
    with closing(FlashedBoard(build.board, file, loader)) as board, closing(PseudoTerminal(board)) as terminal:
        yield terminal.port


def said(*words: str) -> dict:
    """What the verb prints with --json."""
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_board_is_flashed_validated_measured_and_watched_over_a_serial_port(
    build: Build, key_file: Path, port: str
) -> None:
    folder = str(build.folder)
    flashed = said("flash", folder, "--port", port, "--key", str(key_file), "--version", "1.2.3")
    assert (flashed["version"], flashed["pages_written"]) == ("1.2.3+0", flashed["pages_in_image"])
    assert said("validate", folder, "--on", port, "--cases", "1")["outputs_equal"]
    measured = said("bench", folder, "--on", port, "--frames", "1")
    # On a machine so busy that the host asks for the run again, what it says takes a little of the root PE's time.
    emulated = said("bench", folder, "--frames", "1")["latency_cycles"]
    assert measured["latency_cycles"] == pytest.approx(emulated, rel=0.005)
    looks = said("monitor", folder, "--on", port, "--times", "2", "--every", "0")["looks"]
    assert looks[1]["cycles"] > looks[0]["cycles"]
    began = said("monitor", folder, "--on", port, "--reset", "--start", "5", "--times", "1", "--every", "0.2")
    assert began["looks"][0]["pes"][0]["frames"] <= 5  # since the reset
    assert 1 <= began["run"]["frames"] <= began["run"]["asked"] == 5
    again = said("flash", folder, "--port", port, "--key", str(key_file), "--version", "1.2.3")
    assert again["pages_written"] == 0
