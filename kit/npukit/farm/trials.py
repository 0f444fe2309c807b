"""Places of trials: this machine, one after the other, or all boards that a tracker has for a key, in parallel."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError
from npukit.farm.tracker import HostPort
from npukit.farm.trial import Trial, run_trial
from npukit.host.budget import ARCHIVE
from npukit.host.parallel import apart
from npukit.project.build_folder import REPORT, Build, load_build
from npukit.project.folder_files import MOST_FOLDER_BYTES


@dataclass(frozen=True)
class Measurer:
    """Measures as many builds at a time as there are boards."""

    boards: int
    measure: Callable[[Sequence[Build]], list[Trial]]


@contextmanager
def local(on: str | None) -> Iterator[Measurer]:
    """A measurer on the build's usual target, or on the target `on`."""
    yield Measurer(1, lambda builds: [run_trial(build, on) for build in builds])


@contextmanager
def on_farm(tracker: HostPort, key: str) -> Iterator[Measurer]:
    """A measurer on reserved boards of a farm, until the context ends. Each build goes to the board that measures."""
    from npukit.farm.client import all_boards

    with all_boards(tracker, key) as remotes, ThreadPoolExecutor(len(remotes)) as pool:

        def measure(builds: Sequence[Build]) -> list[Trial]:
            return list(pool.map(_remote_trial, remotes, map(packed, builds)))

        yield Measurer(len(remotes), measure)


def _remote_trial(remote: Any, archive: bytes) -> Trial:
    try:
        return Trial(**json.loads(remote.get_function("npukit.trial")(archive)))
    except AttributeError as error:
        raise NpukitError("a board of the farm takes no other builds", tries=["npukit serve --trials there"]) from error
    except RuntimeError as error:
        raise NpukitError(f"a board of the farm could not measure: {str(error).splitlines()[-1]}") from error


def packed(build: Build) -> bytes:
    """The build folder as an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(build.folder.rglob("*")):
            if path.is_file() and path.name != REPORT:
                archive.add(path, path.relative_to(build.folder).as_posix())
    return buffer.getvalue()


@contextmanager
def unpacked(archive: bytes) -> Iterator[Build]:
    """The build in an archive, unpacked while the context is open."""
    with tempfile.TemporaryDirectory(prefix="npukit-trial-") as scratch:
        apart(partial(_unpack, archive, Path(scratch)), "the archive of a client", ARCHIVE)
        yield load_build(Path(scratch))


def _unpack(archive: bytes, folder: Path) -> None:
    """Unpack plain files, never outside the folder; Python 3.11.2's tarfile has no filters. A client may pack anything:
    an archive with more bytes in all than a build folder is refused."""
    total = 0
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
        for member in opened:
            total += member.size
            if total > MOST_FOLDER_BYTES:
                raise NpukitError(f"the archive has more than the {MOST_FOLDER_BYTES:,} bytes of a build folder")
            target, data = folder / member.name, opened.extractfile(member) if member.isreg() else None
            if data is None or not target.resolve().is_relative_to(folder.resolve()):
                raise NpukitError(f"{member.name} is no file of a build folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(data, file)
