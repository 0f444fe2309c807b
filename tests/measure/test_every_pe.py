"""The work of every PE is checked, and counted, over the link alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit.accel.engines import engines_of
from npukit.codegen.program import gather
from npukit.emulator.builtin import Emulator
from npukit.link.session import Session
from npukit.measure.bench import bench
from npukit.measure.cases import Cases, load_cases
from npukit.measure.target import Target
from npukit.measure.trace import timeline_of
from npukit.measure.validate import Validation, validate
from npukit.progress import Silent
from npukit.project.build_folder import GOLDEN, Build
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image, Overlay

PES = 4


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("digits") / "out"
    return shared_build(CHECKOUT / "examples/digits/digits_int8.tflite", folder, pes=PES)


@contextmanager
def running(built: Build, images: tuple[Image, ...]) -> Iterator[tuple[Target, Emulator]]:
    with Emulator(built.board, images) as emulator, Session(emulator, built.build_id) as session:
        yield Target("emulator", session, built.board), emulator


def golden(built: Build) -> Cases:
    return load_cases(built.folder / GOLDEN, built.net(), None)


def checked(built: Build, images: tuple[Image, ...]) -> Validation:
    with running(built, images) as (target, _):
        return validate(target, built.net(), built.plan(), golden(built), Silent())


def test_every_tile_on_every_pe_is_checked(built: Build) -> None:
    plan, cases = built.plan(), golden(built)
    found = checked(built, built.images())
    assert len(plan.pes) == PES
    assert found.passed
    assert found.tiles_checked == cases.count * sum(len(pe.tiles) for pe in plan.pes)
    assert found.layers_checked == cases.count * len([op for op in built.net().ops if op.kind != "reshape"])


def weights_on(built: Build, pe: int) -> tuple[str, bytes]:
    """The name of a layer with weights on a PE, and the weights' bytes."""
    plan = built.plan()
    program = gather(built.net(), plan, plan.by_pe[pe], engines_of(built.board))
    array = next(array for array in program.arrays if array.symbol.endswith("_weights"))
    return array.symbol.removesuffix("_weights"), array.values.tobytes()


def with_a_wrong_weight(built: Build, pe: int, weights: bytes) -> tuple[Image, ...]:
    """The images with the sign of one PE's largest weight changed."""
    image = next(image for image in built.images() if pe in image.pes)
    own = [(overlay.address, overlay.data) for overlay in image.overlays if overlay.pe == pe]
    ((start, data),) = [part for part in (*Elf(image.elf).segments(), *own) if weights in part[1]]
    assert data.count(weights) == 1
    largest = max(range(len(weights)), key=lambda i: min(weights[i], 256 - weights[i]))
    wrong = Overlay(pe, start + data.index(weights) + largest, bytes([-weights[largest] & 0xFF]))
    return tuple(replace(each, overlays=(*each.overlays, wrong)) if each == image else each for each in built.images())


def test_a_wrong_weight_on_a_worker_is_named_with_layer_and_pe(built: Build) -> None:
    plan = built.plan()
    worker = plan.pes[-1].pe
    name, weights = weights_on(built, worker)
    found = checked(built, with_a_wrong_weight(built, worker, weights))
    first = found.mismatches[0]
    step = next(step for step in plan.by_pe[worker].computes() if step.op == name)
    assert (first.pe, first.tensor, first.box) == (worker, name, str(step.output.box))
    assert first.got != first.want


@pytest.mark.exhaustive
def test_bench_counts_what_the_emulator_counts(built: Build) -> None:
    net, plan = built.net(), built.plan()
    with running(built, built.images()) as (target, emulator):
        seen = timeline_of(built, golden(built), 1)
        measured = bench(target, net, plan, golden(built), built.board.core.clock_hz, 2, Silent(), seen)
        before = {pe.pe: emulator.counters(pe.pe) for pe in plan.pes}
        result = target.session.run()
        after = {pe.pe: emulator.counters(pe.pe) for pe in plan.pes}
    assert measured.latency_cycles is not None
    assert measured.interval_cycles is not None
    assert abs(result.cycles - measured.latency_cycles) < 20
    assert abs(measured.interval_cycles - measured.latency_cycles) < 100
    for row in measured.pes:
        old, new = before[row.pe], after[row.pe]
        assert row.npu_busy == pytest.approx(new.npu_busy - old.npu_busy, rel=0.05)
        if row.pe != plan.pes[0].pe:
            # Workers only: the root also checks between two frames whether the run goes on.
            assert row.instructions == pytest.approx(new.instructions - old.instructions, abs=40)
    assert measured.instructions == sum(row.instructions or 0 for row in measured.pes)
    assert [layer.name for layer in measured.layers] == [op.name for op in net.ops if op.kind != "reshape"]
