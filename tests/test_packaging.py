"""The wheel is complete, holds nothing else, and works outside the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement

from end_to_end.builds import DIGITS, shared_build
from helpers import CHECKOUT
from npukit import __version__

MODEL = DIGITS / "digits_int8.tflite"
SOURCES = {"kit/npukit": "npukit"} | {
    name: f"npukit/data/{name}" for name in ("templates", "firmware", "boards", "rtl")
}

OTHERS = (
    ("npukit_emulator", (".py", ".c", ".h", "COPYING"), "licenses/COPYING"),
    ("npukit_mla", (".py", ".c", ".h", ".toml"), "entry_points.txt"),
)
"""The other packages of the sources: their files, and a file about each."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(CHECKOUT))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with only the wheel."""
    return environment(tmp_path_factory.mktemp("installed"), wheel)


def environment(folder: Path, *packages: Path) -> Path:
    """A clean environment with these packages. Dependencies come from the running environment, without its editable
    packages."""
    venv.create(folder, symlinks=os.name == "posix")
    (packages_of(folder) / "dependencies.pth").write_text(
        "\n".join(path for path in sys.path if "site-packages" in path)
    )
    pip("--python", str(folder / "bin/python"), "install", "--no-deps", "--no-build-isolation", *map(str, packages))
    return folder


def packages_of(environment: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment)}))


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *arguments], check=True, cwd=CHECKOUT.parent, timeout=120)


def npukit(installed: Path, elsewhere: Path, *arguments: str) -> str:
    done = run(installed, elsewhere, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run(installed: Path, elsewhere: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command `npukit` of an environment, in another folder."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(installed / "bin/npukit"), *arguments]
    return subprocess.run(command, cwd=elsewhere, env=own, capture_output=True, text=True, check=False, timeout=300)


def files_of_the_checkout() -> Iterator[str]:
    for source, target in SOURCES.items():
        folder = CHECKOUT / source
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(PurePosixPath(target) / path.relative_to(folder).as_posix())


def test_the_wheel_holds_the_package_its_data_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in names if name.startswith(f"npukit-{__version__}.dist-info/")}
    assert names - about == set(files_of_the_checkout())
    assert f"npukit-{__version__}.dist-info/licenses/LICENSE" in about
    metadata = zipfile.ZipFile(wheel).read(f"npukit-{__version__}.dist-info/METADATA").decode()
    assert "License-Expression: Apache-2.0\n" in metadata


@pytest.mark.parametrize(("name", "of_all", "about_it"), OTHERS)
def test_the_wheels_of_other_packages_hold_their_folders(
    name: str, of_all: tuple[str, ...], about_it: str, tmp_path: Path
) -> None:
    pytest.importorskip("hatchling", reason="hatchling builds the wheel")
    source = CHECKOUT / "kit" / name
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(source))
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    files = {path.relative_to(source.parent).as_posix() for path in source.rglob("*") if path.is_file()}
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == {each for each in files if each.endswith(of_all) and not each.endswith("pyproject.toml")}
    assert any(each.endswith(about_it) for each in about)


def test_the_command_works_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    assert npukit(installed, tmp_path, "--version") == f"npukit {__version__}\n"
    told = json.loads(npukit(installed, tmp_path, "boards", "--json"))
    assert [board["name"] for board in told] == sorted(path.stem for path in (CHECKOUT / "boards").glob("*.toml"))


def test_the_data_is_the_wheels_own(installed: Path, tmp_path: Path) -> None:
    (packages_of(installed) / "npukit/data/boards/microbit.toml").unlink()
    told = json.loads(npukit(installed, tmp_path, "boards", "--json"))
    assert "microbit" not in [board["name"] for board in told]


@pytest.mark.exhaustive
def test_without_the_emulator_s_package_the_error_names_it(installed: Path, tmp_path: Path) -> None:
    shared_build(MODEL, tmp_path / "out", pes=1)
    done = run(installed, tmp_path, "validate", "out")
    assert done.returncode == 1
    assert "error: the built-in emulator is a package of its own, and not installed" in done.stderr
    assert "pip install ./kit/npukit_emulator" in done.stderr


@pytest.mark.exhaustive
def test_what_pip_installs_of_the_sources_builds_and_emulates_in_any_folder(tmp_path: Path) -> None:
    installed = environment(tmp_path / "environment", CHECKOUT, CHECKOUT / "kit/npukit_emulator")
    npukit(installed, tmp_path, "build", str(MODEL), "-o", "out", "--pes", "1")
    assert "equal bit for bit" in npukit(installed, tmp_path, "validate", "out")


def test_a_fresh_machine_has_python_git_and_make_and_no_compiler(tmp_path: Path) -> None:
    asked = ("python3", "git", "make", "cc", "gcc", "clang", "as", "ld", "arm-none-eabi-gcc", "qemu-system-arm", "gdb")
    command = [CHECKOUT / ".ci/fresh", tmp_path, "sh", "-c", f"for p in {' '.join(asked)}; do command -v $p; done; :"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert found == [str(tmp_path / "bin" / program) for program in asked[:3]]


def test_every_dependency_stands_in_the_list_of_licences() -> None:
    listed = set(re.findall(r"^\| ([\w-]+) \|", (CHECKOUT / "DEPENDENCIES.md").read_text(), re.MULTILINE))
    assert {name_of(each) for each in requirements()} - {"npukit", "npukit-emulator"} == listed - {"package"}


def requirements() -> Iterator[str]:
    for folder in (CHECKOUT, *(CHECKOUT / "kit" / name for name, *_ in OTHERS)):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        yield from chain(project["dependencies"], *project.get("optional-dependencies", {}).values())


def name_of(requirement: str) -> str:
    return re.split(r"[=<>\[]", requirement)[0]


def test_the_page_of_platforms_has_the_versions_that_ci_tests() -> None:
    rows = re.findall(r"^\| ([\w-]+) \| (\d[\w.]+) \|", (CHECKOUT / "docs/start.md").read_text(), re.MULTILINE)
    assert len(rows) > 8
    assert {f"{name}=={version}" for name, version in rows} <= {*(CHECKOUT / ".ci/versions.txt").read_text().split()}


def test_ci_tests_versions_that_are_allowed() -> None:
    """Every dependency is locked for CI, and at a version within the bounds of pyproject.toml."""
    lines = (CHECKOUT / ".ci" / "versions.txt").read_text().splitlines()
    locked = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)
    wanted = {
        Requirement(each) for each in requirements() if name_of(each) not in ("npukit", "npukit-emulator", "torch")
    }
    for each in wanted:
        assert each.specifier.contains(locked[each.name], prereleases=True), each
