"""Kernels with one wrong value in a thousand: the golden cases of the build find the error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from end_to_end.builds import DIGITS
from helpers import first_of
from npukit import api, pipeline
from npukit.measure.cases import load_cases, noise
from npukit.measure.target import open_target
from npukit.measure.validate import validate
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN
from npukit.project.files import Project

ROUNDED_TWICE = (r"\bsmmla\b", "smmlar")


def changed(routine: str, mistake: tuple[str, str]) -> Callable[..., Project]:
    """Render the project with `mistake` wherever possible in the first routine whose name begins with `routine`."""
    render = pipeline.render_project

    def rendered(*arguments: object, **options: object) -> Project:
        project = render(*arguments, **options)  # pyright: ignore[reportArgumentType]
        (file,) = project.folder.rglob("routines.S")
        before, name, rest = re.split(rf"(\.global {routine}\w*\n)", file.read_text(), maxsplit=1)
        body, end, after = rest.partition(".global")
        wrong = re.sub(*mistake, body)
        assert wrong != body
        file.write_text(before + name + wrong + end + after)
        return project

    return rendered


@pytest.mark.exhaustive
@pytest.mark.parametrize("routine", first_of(["depthwise_planes16_to_pixels", "gemm16_to_pixels_bytes"]))
def test_a_rounding_done_twice_that_three_cases_of_noise_do_not_show(routine: str, tmp_path: Path) -> None:
    with mock.patch.object(pipeline, "render_project", changed(routine, ROUNDED_TWICE)):
        options = api.Options(pes=1, engine="cpu")
        built = api.build(DIGITS / "digits_int8.tflite", output=tmp_path / "out", options=options, check=False)
    net = built.net()
    three = load_cases(noise(net, net.inputs[0], 3), net, None)
    with open_target(built) as target:
        assert validate(target, net, built.plan(), three, Silent()).passed
        assert not validate(target, net, built.plan(), load_cases(built.folder / GOLDEN, net, None), Silent()).passed
    assert not api.validate(built, inputs=three.inputs[0]).passed, "the layer alone shows it"
