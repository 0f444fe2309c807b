"""Small files whose contents take much memory or time: each ends in a single-line error, within a budget of the
kernel's.

The kernel also measures the memory and time of the reading process and its children.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of
from npukit.errors import NpukitError
from npukit.host.budget import LIMITS_VARIABLE
from npukit.link.conversation import Conversation
from npukit.link.frames import encode_frame
from npukit.link.messages import Hello

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's budgets are Linux's")

SECONDS, MEGABYTES = 25, 400
"""Upper bounds for every file here. Python with npukit alone takes 1.5 s and 70 MB; without budgets every file exceeds
the bounds."""
LIMITS = "0.25"
"""A quarter of every budget: 128 MB and 8 seconds for a part of a build folder."""
MEGA = 1 << 20

BUILD = "from npukit import api; build = api.load({0!r}); build.net(), build.plan(), build.golden()"
UNPACK = "from npukit.farm.trials import unpacked; unpacked(open({0!r}, 'rb').read()).__enter__()"
SANDBOX = "from npukit.net.reference.tvm_code import Sandbox; Sandbox([open({0!r}).read()], math=False)"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "out"
    return shared_build(DIGITS / "digits_float.onnx", folder, in_float=True, pes=1).folder


METER = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=-1, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss, done.stdout, end="")"""
"""A small process that starts the work: Linux counts the parent's memory as the child's own."""


def ended(code: str, given: Path) -> str:
    """The error that `code` prints for the file `given`, within bounds of time and memory."""
    told = "import sys; from npukit.errors import NpukitError\ntry:\n    {}\nexcept NpukitError as e: print(e.message)"
    command = [sys.executable, "-c", METER, sys.executable, "-c", told.format(code.format(str(given)))]
    measured = subprocess.run(
        command, stdout=-1, text=True, check=True, env={**os.environ, LIMITS_VARIABLE: LIMITS}
    ).stdout
    status, seconds, kilobytes, said = measured.split(" ", 3)
    assert status == "0"
    assert float(seconds) < SECONDS
    assert int(kilobytes) < MEGABYTES << 10
    return said


def changed(build: Path, folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """A copy of the build with file `name` changed and the digest corrected."""
    copy = Path(shutil.copytree(build, folder / "out"))
    (copy / name).write_bytes(change((copy / name).read_bytes()))
    manifest = json.loads((copy / "npukit.json").read_text())
    manifest["sha256"][name] = hashlib.sha256((copy / name).read_bytes()).hexdigest()
    (copy / "npukit.json").write_text(json.dumps(manifest))
    return copy


@pytest.mark.exhaustive
def test_an_archive_with_a_long_gnu_header(tmp_path: Path) -> None:
    head = tarfile.TarInfo("././@LongLink")
    head.type, head.size = tarfile.GNUTYPE_LONGNAME, 1 << 29
    archive = tmp_path / "archive.tgz"
    with gzip.open(archive, "wb", compresslevel=1) as stream:
        stream.write(head.tobuf(tarfile.GNU_FORMAT))
        for _ in range(head.size // MEGA):
            stream.write(b"a" * MEGA)
    assert archive.stat().st_size < 14 * MEGA
    assert "the archive of a client takes more than 67,108,864 bytes of memory" in ended(UNPACK, archive)


LINES = {
    "a long list": lambda text: text + b"input x: int8 [" + b"1," * (MEGA // 2) + b"\n",
    "a long code": lambda text: text.replace(b'code="', b'code="' + b"!" * MEGA, 1),
    "no op": lambda text: b"!" * MEGA,
    "deep lists": lambda text: text + b"input x: int8 " + b"[" * MEGA + b"\n",
    "blanks": lambda text: text + b"op " + b" " * MEGA + b"!",
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("what", first_of(list(LINES), 2))
def test_a_net_of_a_megabyte(good: Path, tmp_path: Path, what: str) -> None:
    said = ended(BUILD, changed(good, tmp_path, "net.txt", LINES[what]))
    assert ("line" in said) == (what != "a long code")


def bombs_in_a_plan(text: bytes) -> bytes:
    """The plan with a PE whose every line repeats all lines before."""
    again = (f"  {n} again 0-{n - 1}, frames 0, micro-batches 0, messages 0" for n in (1 << k for k in range(30)))
    return text + b"\n  0 wait 0 x 0\n" + "\n".join(again).encode()


@pytest.mark.exhaustive
def test_a_plan_of_repetitions_is_refused(good: Path, tmp_path: Path) -> None:
    assert "plan" in ended(BUILD, changed(good, tmp_path, "plan.txt", bombs_in_a_plan))


def many_members(_: bytes) -> bytes:
    """An npz file whose table of contents names one array 400,000 times."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("in0.npy", b"")
    whole = stream.getvalue()
    at = whole.index(b"PK\1\2")
    end = whole.index(b"PK\5\6")
    table = whole[at:end] * 400_000
    return whole[:at] + table + whole[end : end + 12] + struct.pack("<IIH", len(table), at, 0)


@pytest.mark.exhaustive
def test_arrays_of_many_names(good: Path, tmp_path: Path) -> None:
    assert "golden.npz" in ended(BUILD, changed(good, tmp_path, "golden.npz", many_members))


def test_a_zip_in_a_zip(good: Path, tmp_path: Path) -> None:
    def nested(data: bytes) -> bytes:
        for _ in range(100):
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("in0.npy", data)
            data = stream.getvalue()
        return data

    assert "golden.npz" in ended(BUILD, changed(good, tmp_path, "golden.npz", nested))


@pytest.mark.parametrize("text", first_of(["[" * MEGA, '{"format":' * 100_000, "9" * MEGA]))
def test_a_manifest_that_is_deep(good: Path, tmp_path: Path, text: str) -> None:
    copy = Path(shutil.copytree(good, tmp_path / "out"))
    (copy / "npukit.json").write_text(text)
    assert "npukit.json" in ended(BUILD, copy)


@pytest.mark.parametrize("text", first_of(["!" * 200_000 + "1", "(" * 200_000 + "1" + ")" * 200_000]))
def test_c_that_is_deep(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.c").write_text(f"(int32_t *output) {{ output[0] = {text}; }}")
    assert "cannot be compiled" in ended(SANDBOX, tmp_path / "deep.c")


class Endless:
    """A device that sends without end, in frames or not."""

    def __init__(self, says: bytes) -> None:
        self._says = says

    def write(self, data: bytes) -> None:
        """Ignore the data."""

    def read(self, timeout: float) -> bytes:
        return self._says

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("says", [encode_frame(bytes(64)) * 16, b"\1" * 4096, b"\0" * 4096])
def test_a_device_that_answers_without_end(says: bytes) -> None:
    begun = monotonic()
    with pytest.raises(NpukitError, match="did not answer"):
        Conversation(Endless(says), 0.5).ask(Hello())
    assert monotonic() - begun < 10
