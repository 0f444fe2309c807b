"""Wait states: memories that are slower than the built-in emulator's core."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build, shared_build
from npukit import api

WITHOUT = """like = "nucleo-l4r5zi"
name = "no-waits"
summary = "a NUCLEO-L4R5ZI whose flash answers at once"

[[memory]]
name = "Flash"
origin = 0x0800_0000
size = 0x20_0000
holds = ["code", "constants"]

[[memory]]
name = "RAM"
origin = 0x2000_0000
size = 0xA_0000
holds = ["activations", "stack"]
"""
SLOW = WITHOUT.replace("no-waits", "slow").replace('holds = ["act', 'waits = { cycles = 3 }\nholds = ["act')


def _measured(built: api.Build) -> int:
    assert api.validate(built.folder, on="emulator", cases=1).passed
    cycles = api.bench(built.folder, on="emulator", frames=1).latency_cycles
    assert cycles is not None
    return cycles


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", ["nucleo-l4r5zi", "pico"])
def test_flash_with_waits_is_as_slow_as_predicted(board: str, tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", board, toolchain="zig")
    predicted = built.plan().predicted.latency_cycles
    assert _measured(built) == pytest.approx(predicted, rel=0.02 if board == "nucleo-l4r5zi" else 0.2)


@pytest.mark.exhaustive
def test_waits_are_what_two_boards_differ_by(tmp_path: Path) -> None:
    model = DIGITS / "digits_int8.tflite"
    (tmp_path / "no-waits.toml").write_text(WITHOUT)
    (tmp_path / "slow.toml").write_text(SLOW)
    fast = _measured(build(model, tmp_path / "fast", str(tmp_path / "no-waits.toml"), toolchain="zig"))
    slow = _measured(build(model, tmp_path / "slow", str(tmp_path / "slow.toml"), toolchain="zig"))
    waiting = _measured(shared_build(model, tmp_path / "build", "nucleo-l4r5zi", toolchain="zig"))
    assert fast < waiting < slow
    assert slow > 1.5 * fast, "each load and store of activations waits three cycles"


@pytest.mark.exhaustive
def test_constants_that_are_read_most_are_copied_to_sram(tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", "nucleo-l4r5zi", toolchain="zig")
    (use,) = built.manifest.summary["memory"]
    assert use["variables"] > 10_000, "the network's constants beside the firmware's variables"
    assert "net_near" in (built.folder / "project/net/constants.c").read_text()
