"""A project changed by hand and built with its own `make`: accepted only with `--modified`, then validated as usual."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, make_by_hand
from npukit import api
from npukit.board.cores import CORTEX_M
from npukit.cli.main import app
from npukit.errors import Differs, NpukitError

WAITS = "status = mac_array_run(&net_constants."
DOES_NOT_WAIT = "mac_array_submit(&net_constants."
NET = "project/net/net.c"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose unchanged project was built by hand."""
    folder = tmp_path_factory.mktemp("by hand") / "out"
    shared_build(DIGITS / "digits_int8.tflite", folder, pes=1)
    make_by_hand(folder / "project")
    return folder


@pytest.fixture
def changed(made: Path, tmp_path: Path) -> Path:
    """A copy whose deployed frame no longer waits for the chain; observed frames still wait for each layer."""
    folder = shutil.copytree(made, tmp_path / "out")
    change(folder / NET, WAITS, DOES_NOT_WAIT)
    return folder


def change(file: Path, old: str, new: str) -> None:
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def npukit(*arguments: str | Path):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.mark.exhaustive
def test_what_nobody_changed_is_said_to_be_so(made: Path) -> None:
    built = api.load(made, modified=True)
    assert built.modified == ()
    assert [image.elf.parent for image in built.images()] == [made / "project/build"]
    assert api.load(made).images()[0].elf.parent == made / "images"


@pytest.mark.parametrize(("installed", "command"), [(True, f"{CORTEX_M.gcc} "), (False, "python3 -m ziglang cc ")])
def test_make_takes_gcc_if_installed_else_zig(made: Path, tmp_path: Path, installed: bool, command: str) -> None:
    folders = [name for name in os.get_exec_path() if not (Path(name) / CORTEX_M.gcc).exists()]
    if installed:
        (tmp_path / CORTEX_M.gcc).touch(0o755)
        folders.append(str(tmp_path))
    make = [shutil.which("make") or "make", "-n", "-B", "-C", made / "project"]
    environment = {"PATH": os.pathsep.join(folders)}
    printed = subprocess.run(make, env=environment, capture_output=True, text=True, check=True).stdout
    compiled = [line for line in printed.splitlines() if " -c " in line]
    assert compiled
    assert all(line.startswith(command) for line in compiled)


def test_a_change_is_refused_without_the_flag_which_is_named(changed: Path) -> None:
    with pytest.raises(NpukitError, match=r"net\.c is not what the build left there") as refused:
        api.load(changed)
    assert any("--modified" in way for way in refused.value.tries)


def test_what_is_no_part_of_the_project_may_not_be_changed(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "out")
    change(folder / "net.txt", "conv2d", "conv3d")
    with pytest.raises(NpukitError, match=r"net\.txt is not what the build left there") as refused:
        api.load(folder, modified=True)
    assert refused.value.tries == ("build again",)


@pytest.mark.parametrize("file", first_of([NET, "project/firmware/mac_array/mac_array.h", "project/board/new.h"]))
def test_images_older_than_a_change_are_refused(made: Path, tmp_path: Path, file: str) -> None:
    folder = shutil.copytree(made, tmp_path / "out")
    with (folder / file).open("a") as text:
        text.write("/* changed */\n")
    with pytest.raises(NpukitError, match="was changed, and no images were made of that") as refused:
        api.load(folder, modified=True)
    assert refused.value.tries == (f"make -C {folder / 'project'}",)
    make_by_hand(folder / "project")
    assert api.load(folder, modified=True).modified == (file,)


@pytest.mark.exhaustive
def test_a_deployed_path_that_does_not_wait_is_found(changed: Path, tmp_path: Path) -> None:
    make_by_hand(changed / "project")
    built = api.load(changed, modified=True)
    with pytest.raises(NpukitError, match=r"a race on .* softmax_by_table\w+.*, then mac_array of PE 0 stores it"):
        api.validate(built)
    with pytest.raises(Differs, match="deployed frame: probabilities"):
        api.bench(built)
    told = npukit("validate", changed, "--modified", "--json")
    assert told.exit_code == 1
    assert "and nothing orders the two" in told.stderr
    ran = npukit("run", changed, "--modified", "--inputs", changed / "golden.npz", "-o", tmp_path / "got.npz")
    assert f"modified by hand: {NET}" in ran.stdout


@pytest.mark.exhaustive
def test_a_change_that_is_right_is_validated_measured_traced_and_flashed(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "out")
    change(folder / NET, "int32_t status = 0;", "int32_t status = 0; for (volatile int32_t i = 0; i < 1000; i++) { }")
    make_by_hand(folder / "project")
    as_built, built = api.load(made), api.load(folder, modified=True)
    report = (folder / "report.html").read_bytes()
    assert api.validate(built).passed
    slower = json.loads(npukit("bench", folder, "--modified", "--json").stdout)
    assert slower["modified"] == [NET]
    assert slower["latency_cycles"] > (api.bench(as_built).latency_cycles or 0) + 1000
    traced = json.loads(npukit("trace", folder, "-o", tmp_path / "trace.json", "--modified", "--json").stdout)
    assert traced["cycles"] > 1000
    assert traced["modified"] == [NET]
    assert (folder / "report.html").read_bytes() == report
    flashed = [api.flash(each, port="emulator", dry_run=True).to_json() for each in (as_built, built)]
    assert flashed[0]["sha256"] != flashed[1]["sha256"]
