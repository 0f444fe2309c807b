"""Finding Renode."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from npukit.errors import NpukitError

VARIABLE = "RENODE_PATH"


def find_renode(name: str = "renode") -> Path:
    """Renode's program of that name (`renode`, `renode-test`): in RENODE_PATH, a folder or the program, or on PATH."""
    given = os.environ.get(VARIABLE)
    found = shutil.which(name, path=_folder(given)) if given else shutil.which(name)
    if found is None:
        raise NpukitError(
            f"{VARIABLE} is {given}, and there is no {name}" if given else f"{name} is not on PATH",
            tries=[
                "install Renode 1.15 or 1.16: https://github.com/renode/renode/releases",
                f"{VARIABLE}=FOLDER, if it is installed elsewhere",
            ],
        )
    return Path(found)


def _folder(given: str) -> str:
    return given if Path(given).is_dir() else str(Path(given).parent)
