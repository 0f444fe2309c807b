"""Programs started by npukit: environment, search path, and limits."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from time import monotonic

import pytest

from helpers import CHECKOUT
from npukit.host import programs
from npukit.host.programs import environment, find_program, find_zig, run, start

ANYWHERE = {"LD_PRELOAD", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "COMPILER_PATH", "LIBRARY_PATH", "ZIG_LIB_DIR"}
"""Variables that change the files used by compilers and loaders."""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def program(path: Path, text: str = "") -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


STARTS = re.compile(
    r"\b(subprocess\.(Popen\S*|run|call|check_\w+|get\w+)|os\.(system|popen|exec\w+|spawn\w+|posix_\w+))\("
)


def test_one_module_starts_programs() -> None:
    """Only `programs.py` starts programs, and `compiler.py` in the separate package of the emulator's worker."""
    texts = {path: path.read_text(encoding="utf-8") for path in (CHECKOUT / "kit").rglob("*.py")}
    assert {path.name for path, text in texts.items() if STARTS.search(text)} == {"programs.py", "compiler.py"}


def test_the_environment_is_the_same_whatever_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ANYWHERE:
        monkeypatch.setenv(name, "/somewhere")
    for name in programs.FOLDERS:
        monkeypatch.setenv(name, "here")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin", "/usr/bin", ""]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", str(tmp_path)]))
    assert environment() == {
        "TMPDIR": str(tmp_path),
        "PATH": "/usr/bin",
        "PYTHONPATH": str(tmp_path),
        **programs.FIXED_ENVIRONMENT,
    }


@pytest.mark.parametrize("entry", ["", ".", "bin"])
def test_no_program_is_found_in_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry: str) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "tool")
    program(tmp_path / "tool")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", entry)
    assert find_program("tool") is None
    with pytest.raises(FileNotFoundError, match="tool"):
        start(["tool"])
    monkeypatch.setenv("PATH", os.pathsep.join([entry, str(tmp_path / "bin")]))
    assert find_program("tool") == str(tmp_path / "bin" / "tool")


def test_zig_is_that_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "zig").parent))
    zig = find_zig()
    assert zig is not None
    assert "ziglang" in zig


def test_a_program_is_given_nothing_of_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('evil')")
    monkeypatch.chdir(tmp_path)
    told = run(python("import json, os, sys; print(json.dumps([os.getcwd(), sys.path, dict(os.environ)]))"), seconds=60)
    folder, path, given = json.loads(told.stdout)
    assert folder == str(Path(sys.executable).parent)
    assert "" not in path
    assert str(tmp_path) not in path
    assert given.items() >= programs.FIXED_ENVIRONMENT.items()


def test_what_a_program_says_and_how_it_ends_is_told(tmp_path: Path) -> None:
    done = run([program(tmp_path / "tool", "cat; pwd; echo wrong >&2; exit 3")], tmp_path, seconds=60)
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (3, str(tmp_path), "wrong")


@pytest.mark.parametrize("memory", [None, 1 << 30])
def test_a_relative_path_is_one_from_the_program_s_folder(tmp_path: Path, memory: int | None) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "tool", "exit 3")
    with start(["bin/tool"], tmp_path, memory=memory) as process:
        assert process.wait(60) == 3
    with pytest.raises(FileNotFoundError, match="bin/other"):
        start(["bin/other"], tmp_path, memory=memory)


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """Child processes are ended, too, because these hold the program's output open."""
    begun = monotonic()
    with pytest.raises(TimeoutError, match=r"not ended after 0\.5 seconds"):
        run([program(tmp_path / "tool", "sleep 20 & sleep 20")], seconds=0.5)
    assert monotonic() - begun < 10


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds other processes on Linux")
def test_the_kernel_bounds_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "MOST_PROGRAM_FILE", 1000)
    monkeypatch.setattr(programs, "MOST_MEMORY", 1 << 28)
    wait = "import time; time.sleep(0.3); "
    assert "MemoryError" in run(python(f"{wait}bytearray(1 << 29)"), seconds=60).stderr
    large = run(python(f"{wait}open({str(tmp_path / 'large')!r}, 'wb', 0).writelines([bytes(900)] * 3)"), seconds=60)
    assert "File too large" in large.stderr, large
    assert (tmp_path / "large").stat().st_size <= 1000
