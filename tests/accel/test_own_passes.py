"""A plug-in's own passes over the Relax module, the integer network and TVM's loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build
from helpers import CHECKOUT
from npukit import api
from npukit.errors import NpukitError

SYSTOLIC = CHECKOUT / "examples/accelerators/systolic8x8/systolic8x8"
PLUGIN = f"""
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from npukit.accel.interface import OwnPasses

SEEN = Path(__file__).with_name("seen")


def seen(what, given):
    with SEEN.open("a") as file:
        file.write(what + chr(10))
    return given


def relax(module):
    from tvm import relax

    return seen(f"relax {{len(module['main'].params)}}", relax.transform.DeadCodeElimination(["main"])(module))


def net(net):
    *ops, last = net.ops
    short = replace(net, ops=tuple(ops), outputs=last.inputs) if last.kind == "softmax" else net
    return seen(f"net {{net.name}}", short)


def tir(module):
    return seen(f"tir {{len(module.functions)}}", module)


folder = {str(SYSTOLIC)!r}
spec = importlib.util.spec_from_file_location("plain", folder + "/__init__.py", submodule_search_locations=[folder])
plain = importlib.util.module_from_spec(spec)
sys.modules["plain"] = plain
spec.loader.exec_module(plain)


class Own(plain.accelerator):
    passes = OwnPasses(relax=relax, net=net, tir=tir)


accelerator = Own
"""


@pytest.fixture
def board(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(PLUGIN)
    text = (SYSTOLIC.parent / "systolic8x8.toml").read_text().replace('plugin = "systolic8x8"', 'plugin = "own.py"')
    (tmp_path / "board.toml").write_text(text)
    return str(tmp_path / "board.toml")


@pytest.mark.exhaustive
def test_each_runs_at_its_place(board: str, tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", board, pes=1)
    assert "softmax" not in {op["op"] for op in built.manifest.summary["ops"]}
    assert api.validate(built.folder, cases=1).passed
    assert (tmp_path / "seen").read_text().splitlines() == ["relax 1", "net digits_int8"]
    api.fit(DIGITS / "digits_float.onnx", board=board, options=api.Options(pes=1, in_float=True))
    assert "tir 1" in (tmp_path / "seen").read_text().splitlines()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("    *ops, last = net.ops", "    return 7"), "the plug-in systolic8x8 makes int in its pass `net`"),
        (
            ("    *ops, last = net.ops", "    net.frob"),
            "the plug-in systolic8x8 fails in its pass `net`: AttributeError",
        ),
        (("passes = OwnPasses(relax=relax, net=net, tir=tir)", "passes = [net]"), "is no OwnPasses"),
    ],
)
def test_one_that_fails_is_named(change: tuple[str, str], says: str, board: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PLUGIN.replace(*change))
    with pytest.raises(NpukitError) as error:
        api.fit(DIGITS / "digits_int8.tflite", board=board, options=api.Options(pes=1))
    assert says in error.value.message
