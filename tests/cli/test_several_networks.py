"""Several networks on the command line: names, numbers of PEs, results of each."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from npukit.cli.main import app
from npukit.cli.networks import networks_of, one_of
from npukit.errors import DoesNotFit, NpukitError
from npukit.measure.validate import Validation
from npukit.options import Network

BUILDS = {name: SimpleNamespace(folder=Path(name), modified=None) for name in ("left", "right")}
SEEN = {"left": Validation("emulator", 2, True, (), 4, 8), "right": Validation("emulator", 1, True, (), 3, 5)}


def test_a_model_is_named_by_its_file_or_as_it_is_told() -> None:
    found = networks_of([Path("a/kws.tflite"), Path("ad=b/x.onnx")], None)
    assert found == [Network("kws", Path("a/kws.tflite")), Network("ad", Path("b/x.onnx"))]


def test_a_file_may_have_an_equals_sign(tmp_path: Path) -> None:
    path = tmp_path / "a=b.tflite"
    path.touch()
    assert networks_of([path], [3]) == [Network("a=b", path, 3)]
    assert one_of([path])
    assert not one_of([Path("name=some.tflite")])


def test_pes_are_for_all_or_for_each() -> None:
    models = [Path("a.tflite"), Path("b.tflite")]
    assert [network.pes for network in networks_of(models, [4])] == [4, 4]
    assert [network.pes for network in networks_of(models, [4, 12])] == [4, 12]
    with pytest.raises(NpukitError, match="2 models and 3 times --pes"):
        networks_of(models, [1, 2, 3])


def test_validate_tells_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.api.load_networks", lambda folder, **options: BUILDS)
    monkeypatch.setattr("npukit.report.page.write_report", lambda build, **results: None)
    monkeypatch.setattr("npukit.api.validate_networks", lambda folder, **options: SEEN)
    told = CliRunner().invoke(app, ["validate", "out", "--json"])
    assert [network["name"] for network in json.loads(told.stdout)["networks"]] == ["left", "right"]
    text = CliRunner().invoke(app, ["validate", "out"]).stdout
    assert "network right: equal bit for bit: 1 case on emulator (3 layers in 5 tiles)" in text
    refused = CliRunner().invoke(app, ["validate", "out", "--inputs", "x.npz"])
    assert refused.exit_code == 1
    assert "--network NAME" in refused.stderr


def test_fit_says_which_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(networks: list[Network], **options: object) -> None:
        raise DoesNotFit(f"network {networks[1].name} does not fit beside the others")

    monkeypatch.setattr("npukit.api.fit_networks", refuse)
    told = CliRunner().invoke(app, ["fit", "a.tflite", "b.tflite", "--json"])
    assert told.exit_code == 3
    assert json.loads(told.stdout)["fault"] == "network b does not fit beside the others"
