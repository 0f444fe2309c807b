"""The check at the end of a build: a wrong build is refused and leaves no files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from npukit import api, pipeline
from npukit.cli.main import app
from npukit.codegen.generate import generate
from npukit.measure import check
from npukit.measure.check import checked
from npukit.net.net import Net
from npukit.progress import Silent

MODEL = DIGITS / "digits_int8.tflite"


def of_another_bias(net: Net, *others: Any, **options: Any) -> Any:
    """The firmware of a network with a changed bias in its last layer with a bias."""
    name = [name for name in net.constants if name.startswith("dense_0")][-1]
    return generate(replace(net, constants={**net.constants, name: net.constants[name] + 20_000}), *others, **options)


@pytest.mark.exhaustive
def test_a_build_that_differs_from_the_reference_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "CHECKED_SECONDS", 10.0)
    monkeypatch.setattr(pipeline, "generate", of_another_bias)
    words = ["build", str(MODEL), "--pes", "2", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 3
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert "the firmware differs from the reference: case 0, PE " in line
    assert "the CRC-32 of dense_0[" in line
    assert not list(tmp_path.iterdir())
    assert CliRunner().invoke(app, [*words, "--no-check"]).exit_code == 0
    manifest = json.loads((tmp_path / "out/npukit.json").read_text())
    assert manifest["summary"]["checked"] == {"on": None, "cases": 0, "tiles": 0, "why": "--no-check"}
    assert not api.validate(tmp_path / "out").passed


def test_what_is_predicted_to_take_long_is_not_checked_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {"": shared_build(MODEL, tmp_path / "out", pes=1)}
    seconds = built[""].plan().predicted.latency_cycles * 2 / check.PE_CYCLES_PER_SECOND
    assert checked(built, None, Silent()).why == f"about {seconds:.0f} s", "the tests' bound is none"
    assert checked(built, True, Silent()).on == "emulator"
    monkeypatch.setattr(check, "CHECKED_SECONDS", 10.0)
    assert checked(built, None, Silent()).cases == 1
    monkeypatch.setattr(check, "is_here", lambda *_: False)
    assert checked(built, None, Silent()).why == "no emulator of pe-mesh is here"
    with pytest.raises(api.NpukitError, match="cannot be checked"):
        checked(built, True, Silent())
