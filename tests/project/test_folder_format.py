"""Build folders of other formats, written by an older or a newer npukit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit.errors import NpukitError
from npukit.project.build_folder import MANIFEST, load_build
from npukit.project.manifest import FORMAT


@pytest.mark.parametrize(
    ("told", "whose"), [({}, "an older npukit: its folder has format 1"), ({"format": FORMAT + 1}, "a newer")]
)
def test_it_is_told_by_its_format(told: dict[str, int], whose: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"npukit": "0.1.0", "summary": {"ops": [{"name": "a"}]}, **told}))
    with pytest.raises(NpukitError, match=f"was built by {whose}") as error:
        load_build(tmp_path)
    assert error.value.tries[0] == f"build again: npukit build MODEL -o {tmp_path}"


SUMMARY = {
    8: """model board fits pes_used pes_allowed input_bytes kernel_constants pes_of_board undivided inputs outputs
    states ops memory regions clock_hz predicted frame floors frames chips dram_bytes frames_per_second energy tried
    dead_channels no_renode golden checked"""
}
"""Keys of a build's summary, by format."""


@pytest.mark.exhaustive
def test_what_a_folder_says_belongs_to_its_format(tmp_path: Path) -> None:
    """Another key requires another format: otherwise a verb that reads the key fails on older folders."""
    summary = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out").manifest.summary
    assert " ".join(summary).split() == SUMMARY[FORMAT].split()
