"""A full disk or a missing folder raises a clear error and leaves no partial files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import pytest

from end_to_end.builds import DIGITS, build
from npukit.errors import NpukitError
from npukit.writing import new_folder, write_file


@pytest.mark.parametrize("writer", ["save_net", "save_plan", "render_project", "write_manifest", "write_report"])
def test_a_build_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str):
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"npukit.pipeline.{writer}", full)
    with pytest.raises(NpukitError, match="the disk is full"):
        build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=1)
    assert not list(tmp_path.iterdir())


def test_a_file_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "trace.json").write_text("before")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(NpukitError, match="the disk is full"):
        write_file(tmp_path / "trace.json", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    assert (tmp_path / "trace.json").read_text() == "before"


def test_a_folder_that_has_gone(tmp_path: Path):
    with pytest.raises(NpukitError, match="cannot write to"):
        write_file(tmp_path / "gone" / "trace.json", "text")


def test_a_link_is_replaced_and_not_followed(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    write_file(tmp_path / "link", "new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "link").read_text() == "new"


def written(output: Path, text: str) -> None:
    with new_folder(output) as folder:
        (folder / "text").write_text(text)


@pytest.mark.parametrize("in_one_step", [True, False])
def test_a_folder_is_never_absent_while_it_is_replaced(
    in_one_step: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_one_step:
        monkeypatch.setattr("npukit.writing.exchanged", lambda *_: False)
    written(tmp_path / "out", "before")
    seen, over = Counter[bool](), Event()

    def look() -> None:
        while not over.is_set():
            seen[(tmp_path / "out" / "text").exists()] += 1

    watcher = Thread(target=look)
    watcher.start()
    for number in range(200):
        written(tmp_path / "out", f"{number}")
    over.set()
    watcher.join()
    assert seen[True]
    assert not (in_one_step and seen[False])
    assert (tmp_path / "out" / "text").read_text() == "199"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_cannot_be_filled_leaves_the_one_before(tmp_path: Path) -> None:
    written(tmp_path / "out", "before")
    with pytest.raises(NpukitError, match="the disk is full"), new_folder(tmp_path / "out") as folder:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder / "text")
    assert (tmp_path / "out" / "text").read_text() == "before"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_link_to_a_folder_is_replaced_and_not_followed(tmp_path: Path) -> None:
    written(tmp_path / "mine", "mine")
    (tmp_path / "out").symlink_to(tmp_path / "mine")
    written(tmp_path / "out", "new")
    assert (tmp_path / "mine" / "text").read_text() == "mine"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "out"]


KILLED = """
import os, pathlib, signal
from npukit.writing import new_folder
with new_folder(pathlib.Path("out")) as folder:
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_killed_builds_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".out.mine").mkdir()
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False)
    assert len(list(tmp_path.iterdir())) == 2, "the second build removes what the first has left"
    with new_folder(tmp_path / "out") as folder:
        written(tmp_path / "out", "another build beside it")
        assert folder.is_dir()
    assert sorted(each.name for each in tmp_path.iterdir()) == [".out.mine", "out"]


def test_a_build_killed_between_two_steps_gives_the_earlier_one_back(tmp_path: Path) -> None:
    written(tmp_path / "out", "before")
    (tmp_path / "out").rename(tmp_path / ".out.npukit-1234.before")
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "out"):
        raise ZeroDivisionError
    assert (tmp_path / "out" / "text").read_text() == "before"
