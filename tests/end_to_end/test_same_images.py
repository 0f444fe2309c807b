"""The same images on the built-in emulator and in Renode: the same outputs and the same digest of every tile."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build
from helpers import models
from npukit.emulator.renode.program import find_renode
from npukit.errors import NpukitError
from npukit.measure.cases import golden_cases
from npukit.measure.target import open_target
from npukit.measure.tiles import recorded_tiles
from npukit.measure.validate import run_round
from npukit.project.build_folder import Build

NETWORKS = {"digits_int8": 4, "kws_ref_model": 1, "pretrainedResnet_quant": 16}
"""Models, and on how many PEs: image classification on 4 x 4."""

Frame = tuple[list[bytes], dict[tuple[int, str, int], int]]


def a_frame(build: Build, on: str) -> Frame:
    """Outputs of the golden frame; the digest of what each PE computed, by PE, layer and place in its order."""
    net, plan = build.net(), build.plan()
    with open_target(build, on) as target:
        (outputs,) = run_round(target.session, net, golden_cases(net), [0], observe=True)
        tiles = recorded_tiles(target.session, net, target.board, plan)
    return [array.tobytes() for array in outputs], {
        (tile.pe, tile.step.op, order): tile.record.digest for order, tile in enumerate(tiles)
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_and_layers_are_the_same(name: str, tmp_path: Path) -> None:
    try:
        find_renode()
    except NpukitError as error:
        pytest.skip(f"{error.message}: nothing runs on the real Renode")
    folder = DIGITS if name.startswith("digits") else models()
    built = build(folder / f"{name}.tflite", tmp_path / "build", pes=NETWORKS[name])
    ours, theirs = a_frame(built, "emulator"), a_frame(built, "renode")
    assert ours == theirs
    assert len(set(ours[1].values())) > NETWORKS[name]
    assert {pe for pe, _, _ in ours[1]} == {pe.pe for pe in built.plan().pes if list(pe.computes())}
