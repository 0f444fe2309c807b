"""Disks that are full and places that are gone: one error that says so, and nothing half-written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build
from npukit.errors import NpukitError
from npukit.writing import write_file


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
