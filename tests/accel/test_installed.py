"""A third party's accelerator as a package: built, installed, found, used, uninstalled without trace."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS
from helpers import CHECKOUT

EXAMPLES = CHECKOUT / "examples/accelerators"
NPUKIT = ["-c", "from npukit.cli.main import run; run()"]


def python(home: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in the new environment. It sees this environment's packages, the checkout first."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(CHECKOUT / "kit"), *sys.path))}
    program = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return subprocess.run(
        [str(program), *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


def installed(home: Path) -> set[str]:
    """Every file of the environment except byte code."""
    return {str(path.relative_to(home)) for path in home.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling, which builds the wheel, is not here"
)
@pytest.mark.parametrize("name", ["graphnpu"])
@pytest.mark.exhaustive
def test_installed_used_and_removed(name: str, tmp_path: Path) -> None:
    home, project = tmp_path / "env", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=300)
    shutil.copytree(EXAMPLES / name, project, ignore=shutil.ignore_patterns("__pycache__"))
    board = tmp_path / "board.toml"
    text = (project / f"{name}.toml").read_text()
    board.write_text("\n".join(line for line in text.splitlines() if not line.startswith("plugin")))
    before = installed(home)

    wheel = python(
        home, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), ".", cwd=project
    )
    assert wheel.returncode == 0, wheel.stderr
    shutil.rmtree(project)
    (file,) = tmp_path.glob("*.whl")
    done = python(home, "-m", "pip", "install", "--no-deps", "--no-index", str(file), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(f"{name}/plugin.py" in each for each in installed(home) - before)

    model = str(DIGITS / "digits_int8.tflite")
    build = python(
        home, *NPUKIT, "build", model, "--board", str(board), "--pes", "1", "-o", "out", "--json", cwd=tmp_path
    )
    assert build.returncode == 0, build.stderr
    assert name in {op["engine"] for op in json.loads(build.stdout)["ops"]}

    gone = python(home, "-m", "pip", "uninstall", "-y", f"npukit-{name}", cwd=tmp_path)
    assert gone.returncode == 0, gone.stderr
    assert {each for each in installed(home) - before if not each.endswith(name)} == set()
    checked = python(home, *NPUKIT, "validate", "out", cwd=tmp_path)
    assert checked.returncode == 1, "a build brings no model of its device"
    assert f"names the accelerator {name}, which no plug-in provides" in checked.stderr
    again = python(home, *NPUKIT, "build", model, "--board", str(board), "--pes", "1", "-o", "again", cwd=tmp_path)
    assert again.returncode == 1
    assert f"names the accelerator {name}, which no plug-in provides" in again.stderr
    assert not (tmp_path / "again").exists()
