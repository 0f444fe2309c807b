"""`npukit ops` lists the kit's own table of ops."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from npukit.cli.main import app
from npukit.frontend.onnx.file import WITHOUT_NUMBERS, known_ops
from npukit.frontend.tflite.ops import CONVERTERS
from npukit.net.ops.table import SPECS


def test_every_kind_and_who_runs_it() -> None:
    done = CliRunner().invoke(app, ["ops", "--json"])
    assert done.exit_code == 0, done.stderr
    told = {kind["name"]: kind for kind in json.loads(done.stdout)}
    assert set(told) == set(SPECS)
    accelerated = {name for name, kind in told.items() if "mac_array" in kind["engines"]}
    assert {"conv2d", "depthwise_conv2d", "dense", "add"} <= accelerated < set(told)
    assert all("cpu" in kind["engines"] for kind in told.values())
    assert told["conv2d"]["formats"] == {"tflite": ["CONV_2D"], "onnx": ["Conv", "QLinearConv", "STFT"]}


def test_a_board_without_accelerator_runs_all_on_the_core() -> None:
    told = json.loads(CliRunner().invoke(app, ["ops", "--json", "--board", "mps2-an386"]).stdout)
    assert [kind["engines"] for kind in told] == [["cpu"]] * len(SPECS)


def test_the_names_are_those_that_are_read() -> None:
    builtin = {name for name in CONVERTERS if not name.startswith("custom op")}
    assert {name for spec in SPECS.values() for name in spec.names.tflite} == builtin
    assert {name for spec in SPECS.values() for name in spec.names.onnx} == known_ops() - WITHOUT_NUMBERS
