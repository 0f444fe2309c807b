"""Networks with states: exact over sequences of frames, deployed and observed, on one PE, on several, under QEMU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, build
from frontend.tflite_models import ring
from fuzz.splits import Example, outcome
from helpers import first_of, need
from npukit import api
from npukit.cli.main import app
from npukit.errors import Differs, NpukitError
from npukit.link.session import Session
from npukit.measure.golden import GOLDEN_CASES, GOLDEN_FRAMES, LEAST_CASES
from npukit.measure.target import open_target
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.assignments import emitted_frame
from plan.emit.test_kept_states import BOARD, ENGINES, NET, drawn

FRAMES = np.random.default_rng(4).integers(-128, 128, (2, 5, 1, 1, 3), np.int8)
"""Two streams of five frames."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A streaming layer that keeps the last two frames in a TFLite variable."""
    path = tmp_path_factory.mktemp("model") / "ring.tflite"
    path.write_bytes(ring(begins=5).bytes(["all"]))
    return path


def expected() -> np.ndarray:
    """Each frame after the two before, in each stream."""
    begins = np.full((2, 2, 3), 5, np.int8)
    stream = np.concatenate([begins, FRAMES.reshape(2, 5, 3)], axis=1)
    return np.stack([stream[:, at : at + 3] for at in range(5)], axis=1)[:, :, np.newaxis]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("board", "on"), [("pe-mesh", "emulator"), ("mps2-an386", "qemu")])
def test_every_verb_runs_sequences(board: str, on: str, model: Path, tmp_path: Path) -> None:
    if on == "qemu":
        need("qemu-system-arm")
    built = build(model, tmp_path / "out", board)
    np.savez(tmp_path / "streams.npz", in0=FRAMES, out0=expected())
    np.savez(tmp_path / "stream.npz", in0=FRAMES[0], out0=expected()[0])
    assert api.validate(built, on=on).cases == LEAST_CASES * GOLDEN_FRAMES
    assert api.validate(built, on=on, inputs=tmp_path / "streams.npz").passed
    assert not api.validate(built, on=on, inputs=tmp_path / "stream.npz").passed, "each case begins anew"
    words = ["validate", str(built.folder), "--on", on, "--inputs", str(tmp_path / "stream.npz"), "--stream"]
    assert CliRunner().invoke(app, words).exit_code == 0
    (got,) = api.run(built, on=on, inputs=tmp_path / "streams.npz")
    assert np.array_equal(got, expected())
    (got,) = api.run(built, on=on, inputs=tmp_path / "stream.npz", stream=True)
    assert np.array_equal(got, expected()[0])
    assert api.bench(built, on=on, frames=6).instructions
    np.savez(tmp_path / "frames.npz", in0=FRAMES[0])
    words = ["bench", str(built.folder), "--on", on, "--inputs", str(tmp_path / "frames.npz"), "--stream"]
    assert CliRunner().invoke(app, [*words, "--frames", "5"]).exit_code == 0
    wrong = {"in0": FRAMES[0], "out0": expected()[0] + np.int8(1)}
    with pytest.raises(Differs, match="bench on"):
        api.bench(built, on=on, inputs=wrong, stream=True)
    with open_target(built, on) as target:
        first, second, anew = (_answer(target.session, FRAMES[0, 0], reset=each) for each in (True, False, True))
    assert first == anew != second


def _answer(session: Session, frame: np.ndarray, *, reset: bool) -> bytes:
    if reset:
        session.reset_states()
    session.write_input(0, frame.tobytes())
    session.run()
    return session.read_output(0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "long_program"), first_of([(1, 400), (6, 1), (3, 400)], 2))
def test_a_mesh_remembers_whatever_the_split(
    seed: int, long_program: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a `long_program` of 1 the program is a table of steps."""
    monkeypatch.setattr("npukit.plan.predict.memory.LONG_PROGRAM", long_program)
    graph = Graph(NET)
    plan = emitted_frame(Problem(graph, BOARD, ENGINES), drawn(graph, seed))
    found = outcome(Example(NET, BOARD, plan, ENGINES), tmp_path)
    assert found.passed, found.mismatches
    assert found.cases == GOLDEN_CASES * GOLDEN_FRAMES


def test_a_network_without_states_takes_no_stream(tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", engine="cpu", pes=1)
    with pytest.raises(NpukitError, match="keeps nothing from frame to frame"):
        api.run(built, stream=True)
    with open_target(built, None) as target:
        target.session.reset_states()
