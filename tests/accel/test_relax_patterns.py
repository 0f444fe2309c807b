"""Patterns of a plug-in over the Relax module, in the form for `FuseOpsByPattern`."""

from __future__ import annotations

from pathlib import Path

from end_to_end.builds import DIGITS
from helpers import CHECKOUT
from npukit import api

SYSTOLIC = CHECKOUT / "examples/accelerators/systolic8x8/systolic8x8"
PLUGIN = f"""
import importlib.util
import sys

from tvm.relax.dpl import is_op, wildcard

from npukit.accel.interface import Abilities, Call, Cost, Lowered
from npukit.net.net import Fused

folder = {str(SYSTOLIC)!r}
spec = importlib.util.spec_from_file_location("plain", folder + "/__init__.py", submodule_search_locations=[folder])
plain = importlib.util.module_from_spec(spec)
sys.modules["plain"] = plain
spec.loader.exec_module(plain)


def dequantized(inside):
    quantized = is_op("relax.quantize")(inside, wildcard(), wildcard())
    return is_op("relax.dequantize")(quantized, wildcard(), wildcard())


def with_residual():
    convolution = is_op("relax.nn.conv2d")(wildcard(), wildcard())
    biased = is_op("relax.add")(convolution, wildcard())
    activated = is_op("relax.clip")(biased, wildcard(), wildcard()) | is_op("relax.nn.relu")(biased) | biased
    return is_op("relax.add")(dequantized(activated), wildcard())


def check(context):
    return context.matched_expr.ty.shape[-1] == CHANNELS


class Own(plain.accelerator):
    abilities = Abilities(patterns=(("residual", with_residual(), {{}}, check),))

    def refusal(self, net, op):
        return None if isinstance(op.attributes, Fused) else super().refusal(net, op)

    def cost(self, net, op, output):
        return Cost(1, 0) if isinstance(op.attributes, Fused) else super().cost(net, op, output)

    def lower(self, tile):
        return Lowered((), Call("systolic8x8_layer", ())) if tile.op.parts[1:] else super().lower(tile)


accelerator = Own
"""


def board(tmp_path: Path, channels: int) -> str:
    (tmp_path / "own.py").write_text(PLUGIN.replace("CHANNELS", str(channels)))
    toml = (SYSTOLIC.parent / "systolic8x8.toml").read_text().replace('plugin = "systolic8x8"', 'plugin = "own.py"')
    (tmp_path / "board.toml").write_text(toml)
    return str(tmp_path / "board.toml")


def titles(tmp_path: Path, channels: int) -> list[str]:
    options = api.Options(pes=1)
    found = api.fit(DIGITS / "digits_int8.tflite", board=board(tmp_path, channels), options=options)
    return [op["op"] for op in found["ops"]]


def test_what_it_matches_is_offered_as_one(tmp_path: Path) -> None:
    assert "conv2d + add" in titles(tmp_path, 16)


def test_the_check_is_asked(tmp_path: Path) -> None:
    assert "conv2d + add" not in titles(tmp_path, 17)
