"""All verbs work on both QEMU boards as on the emulator, over the UART that QEMU emulates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, need
from npukit import api
from npukit.cli.main import app
from npukit.measure.target import open_target
from npukit.net.reference.interpreter import evaluate
from npukit.project.build_folder import Build

BOARDS = ["mps2-an386", "netduinoplus2"]
CASES = 3


@pytest.mark.parametrize("board", first_of(list(BOARDS)))
def test_all_verbs(board: str, tmp_path: Path) -> None:
    need("qemu-system-arm")
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", board, trace=True)
    with np.load(DIGITS / "digits.npz") as file:
        np.savez(tmp_path / "in.npz", in0=file["in0"][:CASES])
    inputs = np.load(tmp_path / "in.npz")["in0"]

    assert api.validate(built.folder, on="qemu", inputs=tmp_path / "in.npz").passed
    (outputs,) = api.run(built.folder, on="qemu", inputs=tmp_path / "in.npz")
    net = built.net()
    expected = [evaluate(net, [case])[net.outputs[0]] for case in inputs]
    assert [array.tobytes() for array in outputs] == [array.tobytes() for array in expected]

    measured = api.bench(built.folder, on="qemu", frames=1)
    assert measured.latency_cycles is None
    assert (measured.instructions or 0) > 1000
    shown = CliRunner().invoke(app, ["bench", str(built.folder), "--on", "qemu", "--frames", "1"]).stdout
    assert "cycles" not in shown.replace("counts no cycles", "")

    api.trace(built.folder, tmp_path / "trace.json", on="qemu")
    named = {event.get("name") for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {op.name for op in net.ops if op.name.startswith("conv2d")} <= named
    started_and_reset(built)


def started_and_reset(built: Build) -> None:
    with open_target(built, "qemu") as target:
        assert target.session.start(2).wait().ran == 2
        assert target.session.pes()[0].frames == 2
        target.session.reset()
        assert target.session.pes()[0].frames == 0
