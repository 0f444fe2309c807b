"""Validation and bench find frames that are wrong only when repeated in a batch or timed in a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api, pipeline
from npukit.errors import Differs, NpukitError
from npukit.link.session import Session
from npukit.net.reference import evaluate
from npukit.project.files import Project

MODEL = DIGITS / "digits_int8.tflite"


@pytest.mark.exhaustive
def test_a_frame_of_a_batch_that_takes_the_inputs_of_another_is_found(tmp_path: Path) -> None:
    """The build has three golden cases: filling up a batch repeats each case several times."""
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


@pytest.mark.exhaustive
@pytest.mark.parametrize("stays", [True, False])
def test_a_wrong_frame_among_those_that_are_timed_in_a_row_is_found(
    stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where frames overwrite their inputs, and the reference cannot compute the last frame."""
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
            pytest.raises(Differs, match="in a row"),
        ):
            api.bench(tmp_path / "out", frames=2)


DEPTHWISE = "status = mac_array_run_one(&net_constants.depthwise_conv2d_0_command);"


def without(statement: str) -> Callable[..., Project]:
    """Render the project without `statement` in the program of the PEs beside the root."""
    render = pipeline.render_project

    def rendered(*arguments: object, **options: object) -> Project:
        project = render(*arguments, **options)  # pyright: ignore[reportArgumentType]
        file = project.folder / "roles/1/net/net.c"
        assert statement in file.read_text()
        file.write_text(file.read_text().replace(statement, "status = 0;", 1))
        return project

    return rendered


@pytest.mark.exhaustive
def test_a_layer_that_an_observed_frame_leaves_out_is_named_with_the_elements_that_differ(tmp_path: Path) -> None:
    """The layer's tile shares no memory with another buffer: a deployed frame of the same case would have left the
    right tile."""
    with mock.patch.object(pipeline, "render_project", without(DEPTHWISE)):
        built = api.build(MODEL, output=tmp_path / "out", options=api.Options(pes=4), check=False)
    found = api.validate(built, cases=1)
    first, net = found.mismatches[0], built.net()
    assert (first.case, first.tensor, first.pe) == (0, "depthwise_conv2d_0", 1)
    golden = built.golden()["in0"]
    right, left = (evaluate(net, [image])["depthwise_conv2d_0"] for image in (golden[0], np.zeros_like(golden[0])))
    differing = np.argwhere(right[:, 2:4] != left[:, 2:4]) + np.array([0, 2, 0, 0])
    assert first.index == tuple(differing[0])
    assert (first.got, first.want) == (left[first.index], right[first.index])
    assert first.differing == len(differing)
    assert first.largest == np.abs(right.astype(int) - left)[:, 2:4].max()
    assert f"depthwise_conv2d_0[{', '.join(map(str, first.index))}] is {first.got}" in str(first)
    assert f"; {first.differing} differ in [0:1, 2:4, 0:8, 0:16], by {first.largest} at most" in str(first)


def test_any_tensor_of_any_frame_can_be_fetched(tmp_path: Path) -> None:
    built = shared_build(MODEL, tmp_path / "out", pes=4)
    net, images = built.net(), built.golden()["in0"][:2]
    made = api.dump_tensors(built, ["stem_out", "add_0", "dense_0"], inputs=images)
    values = evaluate(net, [images])
    assert np.array_equal(made["stem_out"], values["conv2d_0"])
    assert np.array_equal(made["add_0"], values["add_0"])
    assert np.array_equal(made["dense_0"], values["dense_0"])
    with pytest.raises(NpukitError, match="is no tensor of its own: it lies on average_pool_0"):
        api.dump_tensors(built, ["flat"])
    with pytest.raises(NpukitError, match="no layer of digits_int8 is called stem"):
        api.dump_tensors(built, ["stem"])
