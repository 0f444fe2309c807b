"""Build folders of other formats, which an older or a newer npukit has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
