"""Every core that npukit knows, end to end: the same network, exact, in code that the core has instructions for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api

MODEL = DIGITS / "digits_int8.tflite"
QEMU_BOARDS = {"Cortex-M3": "mps2-an385", "Cortex-M4F": "mps2-an386"}
MESH = """like = "pe-mesh"
name = "m3-mesh"
summary = "a mesh of cores without FPU and DSP instructions"

[core]
cpu = "cortex-m3"
clock_hz = 300_000_000
"""


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
@pytest.mark.parametrize("core", QEMU_BOARDS)
def test_a_stock_board_of_each_core_on_qemu(core: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    built = shared_build(MODEL, tmp_path / "build", QEMU_BOARDS[core], toolchain=compiler)
    assert api.validate(built.folder, on="qemu").passed
    kernel = built.manifest.summary["ops"][0]["kernel"]
    assert ("DSP instructions, which a Cortex-M3 lacks" in kernel) == (core == "Cortex-M3")


def test_a_mesh_of_cores_without_fpu(tmp_path: Path) -> None:
    shutil.copy(DIGITS.parents[1] / "boards/pe-mesh.toml", tmp_path)
    (tmp_path / "m3.toml").write_text(MESH)
    built = shared_build(MODEL, tmp_path / "build", str(tmp_path / "m3.toml"), toolchain="zig", pes=4)
    assert len(built.manifest.summary["memory"]) == 4
    assert api.validate(built.folder).passed
