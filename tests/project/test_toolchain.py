from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from npukit.board.cores import CORTEX_M4F
from npukit.errors import NpukitError
from npukit.project.toolchain import Toolchain, find_toolchain


def test_zig_comes_with_the_package() -> None:
    assert find_toolchain("zig").title.startswith("zig cc 0.")


def test_without_gcc_on_the_path_zig_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_toolchain().name == "zig"
    with pytest.raises(NpukitError, match="arm-none-eabi-gcc not found"):
        find_toolchain("gcc")


def test_an_unknown_toolchain_is_refused() -> None:
    with pytest.raises(NpukitError, match="toolchain icc is not known"):
        find_toolchain("icc")


def test_the_first_use_of_zig_is_announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path))
    assert (
        find_toolchain("zig").before_linking == "; first zig compiles its runtime library, which takes a minute, once"
    )
    (tmp_path / "o").mkdir()
    assert not find_toolchain("zig").before_linking


def test_zig_gets_its_library_ready_beside_other_work_and_is_ended_with_it(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    program = f"import os, time; open({str(begun)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with Toolchain("zig", "0", (sys.executable, "-c", program)).warmed_up(CORTEX_M4F):
        while not (begun.exists() and begun.read_text()):
            time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_gcc_has_no_library_to_get_ready(tmp_path: Path) -> None:
    with Toolchain("gcc", "0", (str(tmp_path / "absent"),)).warmed_up(CORTEX_M4F):
        pass
