"""A Relax module as a model, from TVM's own frontends or from the user's script."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from tvm.ir import IRModule
from tvm.relax.frontend.onnx import from_onnx

from helpers import CHECKOUT
from npukit import api
from npukit.errors import NpukitError
from npukit.frontend.models import import_model, load_net_from_model, model_file
from npukit.net.text import print_net
from npukit.options import Options

QDQ = CHECKOUT / "examples/digits/digits_qdq.onnx"


@pytest.fixture(scope="module")
def module() -> IRModule:
    return from_onnx(onnx.load(QDQ))  # pyright: ignore[reportArgumentType]


@pytest.mark.exhaustive
def test_a_module_builds_as_the_file_it_came_from(module: IRModule, tmp_path: Path) -> None:
    build = api.build(module, output=tmp_path / "out", options=Options(pes=1, io="int8"))
    told = api.fit(QDQ, options=Options(pes=1, io="int8"))
    assert build.manifest.model == "module"
    made = [{key: value for key, value in op.items() if key != "sources"} for op in build.manifest.summary["ops"]]
    assert made == [{**op, "title": ""} for op in told["ops"]]
    assert api.validate(build).passed


def test_the_net_of_a_module_is_that_of_its_file(module: IRModule) -> None:
    with model_file(module) as path:
        _, *of_module = print_net(load_net_from_model(path)).splitlines()
    _, *of_file = re.sub(' for "[^"]*"', "", print_net(load_net_from_model(QDQ))).splitlines()
    assert of_module == of_file


def test_a_file_of_a_module_is_not_read(module: IRModule, tmp_path: Path) -> None:
    with model_file(module) as path:
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
    with pytest.raises(NpukitError, match="not a model npukit knows"):
        import_model(copy)
