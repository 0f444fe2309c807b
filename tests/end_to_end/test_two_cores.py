"""Two cores of a chip share a network and see each other's memories: exact, and nearly twice as fast as one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build, shared_build
from helpers import first_of, models
from mutation.workshop import load_workshop
from npukit import api
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.programmer import tool_command
from npukit.measure.target import Emulation, open_target
from npukit.measure.validate import validate
from npukit.progress import SILENT
from npukit.project.images.elf import Elf

MODEL = DIGITS / "digits_int8.tflite"


def cycles_between_frames(model: Path, board: str, folder: Path, objective: str) -> float:
    built = shared_build(model, folder / board, board, toolchain="zig", objective=objective)
    assert api.validate(built.folder, on="emulator", cases=2).passed
    interval = api.bench(built.folder, on="emulator", frames=2).interval_cycles
    assert interval is not None
    return interval


@pytest.mark.exhaustive
@pytest.mark.parametrize("one", ["pico2", "pico2-rv", "pico"])
def test_two_cores_are_exact_and_nearly_twice_as_fast_as_one(one: str, tmp_path: Path) -> None:
    alone = cycles_between_frames(MODEL, one, tmp_path, "latency")
    both = cycles_between_frames(MODEL, f"{one}-dual", tmp_path, "throughput")
    assert alone / both > 1.8


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", first_of(["pico-dual", "mps2-an521"]))
def test_a_wait_that_is_dropped_is_a_race_with_both_sides(board: str, tmp_path: Path) -> None:
    """Drops each core's first wait for data stored by the other core."""
    shared_build(MODEL, tmp_path / "build", board, toolchain="zig")
    workshop = load_workshop(tmp_path / "build", tmp_path / "scratch")
    for file in ("roles/0/net/net.c", "roles/1/net/net.c"):
        dropped = workshop.with_text(file, re.sub(r"noc_wait\(\d+, \d+\)", "0", workshop.text(file), count=1))
        with pytest.raises(NpukitError) as raised, open_target(dropped, "emulator", Emulation(strict=True)) as target:
            validate(target, workshop.net, workshop.plan, workshop.cases, SILENT)
        said = raised.value.message
        assert "nothing orders the two" in said
        assert {*re.findall(r"the core of PE (\d) (?:stores|loads) it at pc", said)} == {"0", "1"}, said


@pytest.mark.exhaustive
@pytest.mark.parametrize(("one", "objective", "times"), [("pico2", "throughput", 1.8), ("pico", "latency", 1.9)])
def test_keyword_spotting_on_both_cores_has_nearly_twice_the_frames_of_one(
    one: str, objective: str, times: float, tmp_path: Path
) -> None:
    """On the Pico both cores keep in SRAM the constants whose reads would stall."""
    model = models() / "kws_ref_model.tflite"
    alone = cycles_between_frames(model, one, tmp_path, "latency")
    both = cycles_between_frames(model, f"{one}-dual", tmp_path, objective)
    assert alone / both > times


@pytest.mark.exhaustive
def test_each_core_has_its_image_in_its_part_of_flash_and_one_file_has_both(tmp_path: Path) -> None:
    built = shared_build(MODEL, tmp_path / "build", "pico2-dual", toolchain="zig", objective="throughput")
    images = [image.elf for image in built.images()]
    assert [Elf(image).sections[".vectors"].address for image in images] == [0x1000_0000, 0x1020_0000]
    activations = [Elf(image).sections[".activations"].address for image in images]
    assert 0x2000_0000 <= activations[0] < 0x2003_C000 <= activations[1] < 0x2007_8000
    programmer = built.board.programmer
    assert programmer is not None
    command = tool_command(programmer, images)
    assert (images[0].parent / command[-1]).suffix == ".uf2"
    blocks = sum(-(-len(data) // 256) for image in images for _, data in Elf(image).stretches())
    assert (images[0].parent / command[-1]).stat().st_size == 512 * blocks


def test_frames_of_a_batch_that_the_shared_memory_has_no_room_for_are_refused(tmp_path: Path) -> None:
    text = (DIGITS.parents[1] / "boards/pico2-dual.toml").read_text()
    (tmp_path / "small.toml").write_text(text.replace("dram_bytes = 0x9000", "dram_bytes = 64"))
    with pytest.raises(DoesNotFit, match="has room for the 64 bytes of a batch's frames"):
        build(MODEL, tmp_path / "build", str(tmp_path / "small.toml"), objective="throughput")
