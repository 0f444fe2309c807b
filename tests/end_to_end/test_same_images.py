"""The same images on the built-in emulator and in Renode: the same outputs and the same digest of every tile."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.renode.real import program, renode_test
from end_to_end.builds import DIGITS, build
from helpers import models
from npukit.measure.cases import rounds
from npukit.measure.golden import golden
from npukit.measure.target import open_target
from npukit.measure.tiles import recorded_tiles
from npukit.measure.validate import run_round
from npukit.project.build_folder import Build

NETWORKS = {
    "digits_int8": (4, "latency"),
    "kws_ref_model": (1, "latency"),
    "pretrainedResnet_quant": (16, "latency"),
    "ad01_int8": (1, "latency"),
    "kws_ref_model in rounds": (16, "throughput"),
}
"""Number of PEs and objective of each network: image classification on 4 x 4; anomaly detection streams from DRAM."""

STREAMED = ("ad01_int8", "kws_ref_model in rounds")

Frames = tuple[list[list[bytes]], dict[tuple[int, str, int], int]]


def built(name: str, folder: Path) -> Build:
    pes, objective = NETWORKS[name]
    model = name.split()[0]
    return build(
        (DIGITS if model.startswith("digits") else models()) / f"{model}.tflite", folder, pes=pes, objective=objective
    )


def a_round(build: Build, on: str) -> Frames:
    """Outputs of the first golden frames, and the digest of each computed tile by PE, layer and place in the order."""
    net, plan = build.net(), build.plan()
    (chosen, *_) = rounds(golden(net).cases.count, plan.frames_of_all)
    with open_target(build, on) as target:
        outputs = run_round(target.session, net, golden(net).cases, chosen, observe=True)
        tiles = recorded_tiles(target.session, net, target.board, plan)
    return [[array.tobytes() for array in frame] for frame in outputs], {
        (tile.pe, tile.step.op, order): tile.record.digest for order, tile in enumerate(tiles)
    }


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_and_layers_are_the_same(name: str, tmp_path: Path) -> None:
    program("renode")
    made = built(name, tmp_path / "build")
    assert (made.dram() is not None) == (name in STREAMED)
    ours, theirs = a_round(made, "emulator"), a_round(made, "renode")
    assert ours == theirs
    assert len(set(ours[1].values())) > NETWORKS[name][0]
    assert {pe for pe, _, _ in ours[1]} == {pe.pe for pe in made.plan().pes if list(pe.computes())}


@pytest.mark.parametrize("name", STREAMED)
def test_the_suite_of_a_streamed_build_passes(name: str, tmp_path: Path) -> None:
    """Renode loads the DRAM with the images, and again when the board restarts."""
    program("renode-test")
    made = built(name, tmp_path / "build")
    status, text = renode_test(made.folder / "project/renode/firmware.robot", tmp_path)
    assert status == 0, text
    assert text.count("Finished test") == 3
