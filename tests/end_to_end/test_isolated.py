"""Every verb in a stranger's build folder full of modules and programs with known names: none of these runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path
from threading import Timer

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import CHECKOUT, first_of
from npukit.tools import PROGRAMS

MODEL = str(DIGITS / "digits_int8.tflite")
NAMES = sorted(
    {"npukit_emulator", "npukit", "sitecustomize", "usercustomize", "conftest", "pyocd_user"}
    | {name for name in packages_distributions() if name.isidentifier()}
    | {name for name in sys.stdlib_module_names if name not in sys.builtin_module_names}
)
TOOLS = (
    *("zig", "cc", "gcc", "clang", "ld", "as", "make", "cmake", "git", "node", "sh", "env", "python3", "ldconfig"),
    *(each.name for each in PROGRAMS),
)
VERBS: dict[str, Sequence[str]] = {
    "validate": ("validate", ".", "--cases", "1"),
    "doctor": ("doctor",),
    "build": ("build", MODEL, "-o", "../again", "--pes", "1"),
    "flash": ("flash", ".", "--port", "emulator:../flash", "--dry-run"),
    "bench": ("bench", ".", "--frames", "1"),
    "run": ("run", ".", "--inputs", "golden.npz", "-o", "../answers.npz"),
    "trace": ("trace", ".", "-o", "../trace.json"),
    "emulate": ("emulate", ".", "--port", "0"),
    "serve": ("serve", ".", "--port", "9377"),
    "monitor": ("monitor", ".", "--on", "emulator", "--times", "1"),
    "tune": ("tune", ".", "--budget", "0"),
    "fit": ("fit", MODEL),
    "report": ("report", "."),
    "export": ("export", ".", "--portable", "-o", "../exported"),
    "boards": ("boards", str(CHECKOUT / "boards" / "pe-mesh.toml")),
    "ops": ("ops", "--board", "pe-mesh"),
    "new key": ("new", "key", "-o", "../key.pem"),
    "new accelerator": ("new", "accelerator", "my_npu", "-o", "../my_npu"),
    "new board": ("new", "board", "mine", "-o", "../mine"),
}
UNTIL_STOPPED = ("emulate", "serve")
SECONDS = 4.0
"""Seconds after which `emulate` and `serve` are stopped, because neither ends by itself."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("good") / "out", pes=4).folder


def fill(folder: Path, marks: Path, *, as_packages: bool) -> None:
    """Write modules and programs that leave a mark when run."""
    for name in NAMES:
        text = f"open({str(marks)!r}, 'a').write('module {name} ')\n"
        if as_packages:
            (folder / name).mkdir(exist_ok=True)
        ((folder / name / "__init__.py") if as_packages else folder / f"{name}.py").write_text(text)
    for name in TOOLS:
        (folder / name).write_text(f"#!/bin/sh\nprintf 'program {name} ' >> {marks}\nexit 1\n")
        (folder / name).chmod(0o755)
    (folder / "pyvenv.cfg").write_text(f"home = {folder}\n")
    (folder / "evil.pth").write_text(f"import sys; open({str(marks)!r}, 'a').write('pth ')\n")
    (folder / "Makefile").write_text(f"$(shell printf make >> {marks})\nall:\n")


def left_marks(build: Path, verb: str, tmp_path: Path, *, as_packages: bool) -> str:
    folder, marks = Path(shutil.copytree(build, tmp_path / "out")), tmp_path / "marks"
    fill(folder, marks, as_packages=as_packages)
    searched = os.pathsep.join(["", ".", os.environ["PATH"]])
    given = {**os.environ, "PATH": searched, "PYTHONPATH": str(CHECKOUT / "kit"), "NPUKIT_TUNED": str(tmp_path / "t")}
    # As in the installed program, Python does not search the current folder.
    command = [sys.executable, "-P", "-c", "from npukit.cli.main import run; run()", *VERBS[verb]]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores SIGINT
    with subprocess.Popen(command, cwd=folder, env=given, stdout=-1, stderr=-2, text=True, preexec_fn=heard) as process:
        stop = Timer(SECONDS if verb in UNTIL_STOPPED else 120, process.send_signal, [signal.SIGINT])
        stop.start()
        said = process.communicate()[0]
        stop.cancel()
    assert process.returncode in ((0, 130) if verb in UNTIL_STOPPED else (0,)), said
    return marks.read_text() if marks.exists() else ""


@pytest.mark.parametrize("verb", first_of(list(VERBS), 2))
def test_nothing_of_the_current_folder_runs(good: Path, tmp_path: Path, verb: str) -> None:
    assert left_marks(good, verb, tmp_path, as_packages=False) == ""


@pytest.mark.parametrize("verb", first_of(["validate", "doctor"]))
def test_no_package_of_the_current_folder_runs(good: Path, tmp_path: Path, verb: str) -> None:
    assert left_marks(good, verb, tmp_path, as_packages=True) == ""
