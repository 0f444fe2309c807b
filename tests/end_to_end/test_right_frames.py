"""Frames that are right only where nobody looked: repeated in a batch, or timed in a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from end_to_end.builds import DIGITS, build, shared_build
from helpers import first_of
from npukit import api, pipeline
from npukit.errors import DoesNotFit
from npukit.link.session import Session
from npukit.project.files import Project

MODEL = DIGITS / "digits_int8.tflite"


def test_a_frame_of_a_batch_that_takes_the_inputs_of_another_is_found(tmp_path: Path) -> None:
    """The build has three golden cases: a batch filled up with them again has each case several times."""
    shared_build(MODEL, tmp_path / "out", pes=4, objective="throughput")
    write = Session.write_input

    def of_an_earlier_frame(session: Session, index: int, data: bytes) -> None:
        given[index] = data
        write(session, index, given[index - 3] if index == 3 else data)

    given = dict[int, bytes]()
    with mock.patch.object(Session, "write_input", of_an_earlier_frame):
        found = api.validate(tmp_path / "out")
    assert not found.outputs_equal
    assert {mismatch.case for mismatch in found.mismatches} == {3}


@pytest.mark.parametrize("stays", [True, False])
def test_a_wrong_frame_among_those_that_are_timed_in_a_row_is_found(
    stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where frames overwrite their inputs, and the reference knows nothing of the last one."""
    shared_build(MODEL, tmp_path / "out", pes=4)
    run, read = Session.run, Session.read_output

    def counting(session: Session, observe: bool = False, frames: int = 1) -> object:
        ran.append(frames)
        return run(session, observe, frames)

    def wrong_after_several(session: Session, index: int) -> bytes:
        told = read(session, index)
        return bytes(255 - byte for byte in told) if ran[-1] > 1 else told

    ran = list[int]()
    with (
        mock.patch.object(Session, "run", counting),
        mock.patch("npukit.measure.bench.inputs_stay", return_value=stays),
    ):
        api.bench(tmp_path / "out", frames=2)
        with (
            mock.patch.object(Session, "read_output", wrong_after_several),
            pytest.raises(DoesNotFit, match="in a row"),
        ):
            api.bench(tmp_path / "out", frames=2)


def patched(file: str, old: str, new: str) -> Callable[..., Project]:
    """Renders the project, and changes something in a file of each program."""
    render = pipeline.render_project

    def rendered(*arguments: object, **options: object) -> Project:
        project = render(*arguments, **options)  # pyright: ignore[reportArgumentType]
        (found,) = project.folder.rglob(file)
        text = found.read_text()
        assert old in text
        found.write_text(text.replace(old, new, 1))
        return project

    return rendered


@pytest.mark.parametrize(
    ("file", "old", "new", "wrong"),
    first_of(
        [
            (  # an observed frame leaves a layer out: what a deployed frame of the case left would be right
                "net.c",
                "status = mac_array_run_one(&net_constants.depthwise_conv2d_0_command);",
                "status = 0;",
                "depthwise_conv2d_0",
            ),
            ("net.c", "net_end_layer(1);", "", "depthwise_conv2d_0"),
        ],
        2,
    ),
)
def test_a_layer_that_does_not_run_or_is_not_recorded_is_not_checked(
    file: str, old: str, new: str, wrong: str, tmp_path: Path
) -> None:
    with mock.patch.object(pipeline, "render_project", patched(file, old, new)):
        built = build(MODEL, tmp_path / "out", pes=1)
    found = api.validate(built, cases=1)
    assert {mismatch.tensor for mismatch in found.mismatches if mismatch.box} >= {wrong}
    assert found.mismatches[0].tensor == wrong
