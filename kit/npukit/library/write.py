"""Writing a library: a folder, or an archive, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError
from npukit.library.archive import archive
from npukit.library.sources import library
from npukit.project.build_folder import Build
from npukit.writing import told_if_unwritable, write_file

ARCHIVE = ".tar"


@dataclass(frozen=True)
class Exported:
    """The files that were written."""

    output: str
    name: str
    kind: str
    arena_bytes: int
    constant_bytes: int
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def export(build: Build, output: Path, portable: bool) -> Exported:
    """A Model Library Format archive if `output` ends in .tar, else a folder, which must be new or empty."""
    if output.exists() and (output.suffix != ARCHIVE and (not output.is_dir() or any(output.iterdir()))):
        raise NpukitError(f"{output} is there already", tries=["another folder with -o", f"remove {output}"])
    made = library(build, portable)
    if output.suffix == ARCHIVE:
        write_file(output, archive(build, made))
    else:
        with told_if_unwritable(output):
            _write_folder(output, dict(made.files))
    return Exported(str(output), made.name, made.kind, made.arena_bytes, made.constant_bytes, tuple(sorted(made.files)))


def _write_folder(output: Path, files: dict[str, str]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent.resolve()))
    try:
        for name, text in files.items():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            (scratch / name).write_text(text)
        scratch.chmod(0o755)
        if output.exists():
            output.rmdir()
        scratch.rename(output)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
