"""Build folders of an attacker: one clear error in seconds, and none of the attacker's code runs on the host.

Each is a good build changed with knowledge of the format: all digests are right again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api
from npukit.errors import NpukitError

SECONDS = 60
"""Upper bound in seconds for every attack beside other tests; five alone."""

LARGE = 1 << 30

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build for one PE, with C from TVM."""
    folder = tmp_path_factory.mktemp("good") / "out"
    return shared_build(DIGITS / "digits_float.onnx", folder, in_float=True, pes=1).folder


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mesh") / "out"
    return shared_build(DIGITS / "digits_int8.tflite", folder, pes=4, objective="throughput").folder


def changed(build: Path, folder: Path, change: Change) -> Path:
    """A copy of the build with the change and matching digests."""
    copy = Path(shutil.copytree(build, folder / "out"))
    change(copy)
    if any(file.is_fifo() or file.stat().st_size > LARGE for file in copy.rglob("*") if file.exists()):
        return copy  # npukit computes no digest of a file like this either
    path = copy / "npukit.json"
    try:
        manifest = json.loads(path.read_text())
        digests = {name: sha256(copy / name) for name in manifest["sha256"]}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return copy  # the changed manifest has no digests, or digests of absent files
    path.write_text(json.dumps({**manifest, "sha256": digests}))
    return copy


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def every_verb(folder: Path) -> None:
    """Every use of a build."""
    built = api.load(folder)
    api.validate(folder, cases=1)
    api.run(folder)
    api.bench(folder, frames=1)
    api.trace(folder, folder.parent / "trace.json")
    assert built.golden()
    assert built.plan().pes
    api.export(folder, folder.parent / "exported", portable=True)
    api.flash(folder, port=f"emulator:{folder.parent / 'flash'}", dry_run=True)
    api.tune(folder, budget_seconds=0, database=folder.parent / "tuned.json")


def refused(folder: Path) -> str:
    """The error's text; the error must come within `SECONDS`."""
    started = monotonic()
    with pytest.raises(NpukitError) as raised:
        every_verb(folder)
    assert monotonic() - started < SECONDS
    return str(raised.value)


def in_manifest(*place: str | int, value: object) -> Change:
    def change(folder: Path) -> None:
        path = folder / "npukit.json"
        manifest = json.loads(path.read_text())
        told: Any = manifest
        for key in place[:-1]:
            told = told[key]
        told[place[-1]] = value
        path.write_text(json.dumps(manifest))

    return change


def in_file(name: str, data: bytes) -> Change:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


@pytest.mark.exhaustive
def test_a_good_build_passes(good: Path, tmp_path: Path):
    """The unchanged build passes, so each error below comes from an attack."""
    every_verb(changed(good, tmp_path, lambda folder: None))


# Code for the host

CANARY = """
#include <stdio.h>
__attribute__((constructor)) static void run(void) {{ FILE *file = fopen("{0}", "w"); if (file) fclose(file); }}
struct device_model {{ int nothing; }};
const struct device_model vendor_device = {{ 0 }};
"""
PLUG_IN = "from pathlib import Path\nPath({0!r}).write_text('run')\ndef accelerator(slot): raise RuntimeError\n"


@pytest.mark.parametrize("name", ["vendor", "mac_array"])
@pytest.mark.parametrize("where", ["models/evil.c", "ABSOLUTE/models/evil.c", "../out/models/evil.c"])
def test_no_model_of_a_device_is_loaded_from_it(mesh: Path, tmp_path: Path, name: str, where: str):
    canary = tmp_path / "canary"

    def change(folder: Path) -> None:
        (folder / "models").mkdir()
        (folder / "models/evil.c").write_text(CANARY.format(canary))
        model = where.replace("ABSOLUTE", str(folder))
        in_manifest("accelerators", value=[{"name": name, "version": "1", "model": model}])(folder)
        in_manifest("board", "accelerator", 0, "name", value=name)(folder)

    assert "accelerators.0.model" in refused(changed(mesh, tmp_path, change))
    assert not canary.exists()


@pytest.mark.parametrize("where", ["evil.py", "ABSOLUTE/evil.py", "ABSOLUTE"])
def test_no_plug_in_is_loaded_from_it(mesh: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch):
    canary = tmp_path / "canary"

    def change(folder: Path) -> None:
        for file in ("evil.py", "__init__.py"):
            (folder / file).write_text(PLUG_IN.format(str(canary)))
        in_manifest("board", "accelerator", 0, "plugin", value=where.replace("ABSOLUTE", str(folder)))(folder)

    folder = changed(mesh, tmp_path, change)
    monkeypatch.chdir(folder)
    assert "only a board file may" in refused(folder)
    assert not canary.exists()


def test_an_accelerator_that_nobody_has_is_named(mesh: Path, tmp_path: Path):
    def change(folder: Path) -> None:
        record = {"name": "nobodys_npu", "version": "1", "model": "0" * 64}
        in_manifest("accelerators", value=[record])(folder)
        in_manifest("board", "accelerator", 0, "name", value="nobodys_npu")(folder)

    assert "accelerator nobodys_npu, which no plug-in provides" in refused(changed(mesh, tmp_path, change))


def test_another_plug_in_of_the_same_name_is_not_taken_for_it(mesh: Path, tmp_path: Path):
    record = {"name": "mac_array", "version": "1", "model": "0" * 64}
    folder = changed(mesh, tmp_path, in_manifest("accelerators", value=[record]))
    assert "the plug-in mac_array is not that of the build" in refused(folder)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("board", "hal"), "../../../hal"),
        (("board", "memory", 0, "name"), "sram : x\nINCLUDE /etc/passwd"),
        (("board", "accelerator", 0, "figures"), {'x 1\n#include "/etc/passwd"\n': 1}),
        (("board", "name"), '"\n#include "/etc/passwd'),
        (("board", "qemu"), {"machine": "virt,dumpdtb=/tmp/x", "instructions_per_tick": 1}),
        (("board", "programmer"), {"tool": "openocd", "target": "../project/evil.cfg"}),
        (("board", "programmer"), {"tool": "openocd", "target": "/tmp/evil.cfg"}),
        (("board", "renode"), {"platform": "/tmp/evil.repl", "uart": "uart"}),
        (("images", 0, "elf"), "images/a; exec sh.elf"),
        (("images", 0, "elf"), "/bin/true"),
        (("images", 0, "elf"), "../out/images/image-0.elf"),
        (("dram",), "/dev/zero"),
        (("build_id",), "not hex"),
        (("toolchain",), "gcc\n\x1b[2J"),
        (("images", 0, "pes"), [0, 0]),
        (("images", 0, "pes"), [10**9]),
        (("images", 0, "pes"), []),
        (("images",), []),
        (("chips",), [5]),
        (("board", "mesh", "pes"), {"columns": 10**9, "rows": 10**9}),
        (("sha256",), {"../../../etc/passwd": "0" * 64}),
        (("sha256",), {"/etc/passwd": "0" * 64}),
        (("options",), {"pes": "many"}),
        (("options",), {"strange": True}),
        (("summary",), {}),
    ],
)
def test_a_field_of_the_manifest_that_no_build_has(mesh: Path, tmp_path: Path, place: tuple, value: object):
    refused(changed(mesh, tmp_path, in_manifest(*place, value=value)))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"[" * 1_000_000, b'{"networks": {"..": "0"}}', b"{}", b"1" * 10**6])
def test_a_manifest_that_is_none(good: Path, tmp_path: Path, text: bytes):
    refused(changed(good, tmp_path, in_file("npukit.json", text)))


@pytest.mark.exhaustive
def test_openocd_and_pyocd_find_no_files_of_a_build(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both tools obey files in their working folder: `pyocd_user.py`, or a configuration of the target's name."""
    tools, seen = tmp_path / "tools", tmp_path / "seen"
    tools.mkdir()
    (tools / "pyocd").write_text(f"#!/bin/sh\nls > {seen}\n")
    (tools / "pyocd").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    def change(folder: Path) -> None:
        (folder / "images/pyocd_user.py").write_text("evil")
        in_manifest("board", "programmer", value={"tool": "pyocd", "target": "nrf52840"})(folder)

    with pytest.raises(NpukitError):
        api.flash(changed(good, tmp_path, change), port="/dev/nowhere")
    assert seen.read_text().split() == ["image.bin", "image.elf"]


# C of ops

C = [
    "system/**/(p0);",
    "(system)(p0);",
    '#include "/etc/passwd"',
    '%:include "/etc/passwd"',
    'asm(".incbin \\"/x\\"");',
]
ENDLESS = ["while (1) { output[0] += 1.0f; }", "output[900000000] = 1.0f;", "for (int32_t i = 0; 1; ++i) { }"]


@pytest.mark.parametrize("text", [*C, *ENDLESS])
def test_c_of_an_op_that_would_do_more_than_compute(good: Path, tmp_path: Path, text: str):
    def change(folder: Path) -> None:
        path = folder / "net.txt"
        before = path.read_text()
        path.write_text(before.replace('code="', f"code={json.dumps(f'  {text}' + chr(10))[:-1]}"))
        assert path.read_text() != before

    assert re.search("code|compiled", refused(changed(good, tmp_path, change)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1,16,8,8]", "[1000000,1000000,1000000]"),
        (" what=", " work_bytes=99999999999999 what="),
        ("net ", "[" * 200_000),
        ("input ", "input x\ninput "),
        (": float32", ": float64"),
        ('"nn.conv2d add nn.relu"', "4"),
    ],
)
def test_a_net_that_makes_no_sense(good: Path, tmp_path: Path, old: str, new: str):
    def change(folder: Path) -> None:
        text = (folder / "net.txt").read_text()
        (folder / "net.txt").write_text(text.replace(old, new, 1))

    folder = changed(good, tmp_path, change)
    assert sha256(folder / "net.txt") != sha256(good / "net.txt")
    refused(folder)


# Kernels that `tune` has TVM rebuild


def in_kernel(*place: str | int, value: object) -> Change:
    def change(folder: Path) -> None:
        path = folder / "loops.json"
        kernels = json.loads(path.read_text())
        told = next(each for each in kernels.values() if each["name"].startswith("conv2d"))
        for key in place[:-1]:
            told = told[key]
        told[place[-1]] = value
        path.write_text(json.dumps(kernels))

    return change


def of_another_key(folder: Path) -> None:
    """Tuning records are kept by key, for all builds to come."""
    kernels = json.loads((folder / "loops.json").read_text())
    (folder / "loops.json").write_text(json.dumps(dict(zip(kernels, reversed(kernels.values()), strict=True))))


KERNELS: dict[str, tuple[Change, str]] = {
    "TVM's own format": (
        in_file("loops.json", b'{"key": {"name": "x", "relax": "{}", "layers": []}}'),
        "cannot be read",
    ),
    "a call of whatever has a name": (in_kernel("steps", 0, "operator", value="call_pure_packed"), "no loops"),
    "an operator of another kind": (in_kernel("steps", 0, "operator", value="../tirx.call_extern"), "TVM"),
    "attributes of another": (in_kernel("steps", 0, "form", value="SoftmaxAttrs"), "TVM|ended before"),
    "other tensors": (in_kernel("parameters", 0, 1, value=[1 << 40]), "does not compute"),
    "other layers": (in_kernel("layers", value=["nothing"]), "does not compute"),
    "no layers": (in_kernel("layers", value=[]), "does not compute"),
    "another kernel": (in_kernel("steps", 0, "attributes", "dilation", value=[2, 2]), "is not the kernel|TVM"),
    "another key": (of_another_key, "is not the kernel"),
}


@pytest.mark.parametrize("what", KERNELS)
def test_tune_is_given_kernels_that_are_none(good: Path, tmp_path: Path, what: str):
    change, says = KERNELS[what]
    folder, database = changed(good, tmp_path, change), tmp_path / "tuned.json"
    with pytest.raises(NpukitError, match=says):
        api.tune(folder, budget_seconds=0, database=database)
    assert not database.exists()


# Arrays


def npz(claimed: int | None = None, **members: bytes) -> bytes:
    """An archive of these members. Each member claims to have `claimed` bytes; without `claimed`, its real size."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
        for member in archive.infolist():
            member.file_size = claimed or member.file_size
    return stream.getvalue()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


class Evil:
    """An object that unpickles to a command."""

    def __reduce__(self):
        return os.system, ("touch evil",)


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n"


ARRAYS = {
    "objects": npz(in0=npy(np.array([Evil()], object))),
    "a bomb": npz(in0=header("(1, 16, 16, 100000)") + bytes(102_400_000)),
    "bombs": npz(400_000_000, **{f"in{i}": header("(100000000,)") for i in range(3)}),
    "more than is there": npz(in0=header("(1000000000000,)")),
    "fewer than none": npz(in0=header("(-4, -4)") + bytes(64)),
    "a header that is code": npz(in0=header("__import__('os').system('touch evil')")),
    "no header": npz(in0=b"nothing"),
    "no zip": b"nothing",
    "no arrays": npz(),
    "no cases": npz(in0=npy(np.zeros((0, 8, 8, 1), np.float32)), out0=npy(np.zeros((0, 10), np.float32))),
}


@pytest.mark.parametrize("name", ["golden.npz", "net.npz"])
@pytest.mark.parametrize("what", ARRAYS)
def test_arrays_that_are_none(good: Path, tmp_path: Path, what: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    says = refused(changed(good, tmp_path, in_file(name, ARRAYS[what])))
    assert ("its arrays have 1,200,000,000 bytes" in says) == (what == "bombs")
    assert not (tmp_path / "evil").exists()


# Plans


def in_plan(before: str, after: str) -> Change:
    """A change of the plan: the first match of `before` becomes `after`."""

    def changed_plan(folder: Path) -> None:
        plan = (folder / "plan.txt").read_text()
        other = re.sub(before, after, plan, count=1)
        assert other != plan
        (folder / "plan.txt").write_text(other)

    return changed_plan


def doubling_steps() -> bytes:
    """A plan of a few lines and 2 to the power of 60 steps."""
    head = "pe 0 role 0 code 0 constants 0 activations 0 stack 0 free 0 commands 0 descriptors 0 table 0"
    again = (f"  {1 << n} again 0-{(1 << n) - 1}, frames 0, micro-batches 0, messages 0" for n in range(60))
    return "\n".join([head, "  0 wait 0 x 0", *again]).encode()


PLANS: dict[str, Change] = {
    "a billion bytes": lambda folder: os.truncate(folder / "plan.txt", 100 << 30),
    "deep": in_file("plan.txt", b"[" * 1_000_000),
    "steps that double": in_file("plan.txt", doubling_steps()),
    "a billion frames": in_plan("frames .*", "frames 1000000000"),
    "no frames": in_plan("frames .*", "frames 0"),
    "other PEs": in_plan(r"pe 0 role", "pe 1000000000 role"),
    "no PEs": in_plan(r"(?s)\npe .*", "\n"),
    "another PE's message": in_plan(r" to \d+", " to 99999"),
    "a million chips": in_plan("chips .*", "chips 0-1000000"),
    "a billion chips": in_plan("chips .*", "chips 0-1000000000"),
    "other ops": in_plan(r"compute \w+", "compute nothing"),
    "huge boxes": in_plan(r"(compute .*: [^ ]+?)(\[.*?\])? =", r"\1[0:1000000000, 0:1000000000] ="),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_plan_that_is_none(mesh: Path, tmp_path: Path, what: str):
    refused(changed(mesh, tmp_path, PLANS[what]))


# Images

HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
SEGMENT = struct.Struct("<8I")


def elf(
    *segments: tuple[int, ...], count: int | None = None, sections: int = 0, at: int = 0, machine: int = 40
) -> bytes:
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    number = len(segments) if count is None else count
    head = HEADER.pack(ident, 2, machine, 1, 0, HEADER.size, at, 0, HEADER.size, 32, number, 40, sections, 0)
    return head + b"".join(SEGMENT.pack(*each) for each in segments)


IMAGES = {
    "nothing": b"",
    "no ELF": b"nothing" * 100,
    "no segments": elf(),
    "cut off": elf()[:30],
    "segments that are not there": elf(count=65535),
    "sections that are not there": elf(sections=65535, at=1 << 30),
    "a segment of 4 GB": elf((1, 84, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, 5, 4)),
    "a segment outside of the memory": elf((1, 52, 0xFFFF0000, 0xFFFF0000, 32, 32, 5, 4)),
    "many segments": elf(*[(1, 0, 0, 0, 0x7FFFFFFF, 0x7FFFFFFF, 5, 4)] * 60_000),
    "another processor's": elf((1, 52, 0, 0, 32, 32, 5, 4), machine=62),
}


@pytest.mark.parametrize("what", IMAGES)
def test_images_that_are_none(mesh: Path, tmp_path: Path, what: str):
    refused(changed(mesh, tmp_path, in_file("images/image-0.elf", IMAGES[what])))


@pytest.mark.parametrize("data", [b"", b"odd", bytes(1 << 24)])
def test_own_data_of_another_size(mesh: Path, tmp_path: Path, data: bytes):
    own = sorted((mesh / "images").glob("*.own"))
    assert own
    refused(changed(mesh, tmp_path, in_file(f"images/{own[0].name}", data)))


# Files


def linked(name: str) -> Change:
    def change(folder: Path) -> None:
        outside = Path(shutil.move(folder / name, folder.parent / "outside"))
        (folder / name).symlink_to(outside)

    return change


def replaced_by(name: str, make: Callable[[Path], object]) -> Change:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


FILES: dict[str, Change] = {
    "a link": linked("golden.npz"),
    "a folder that is a link": linked("images"),
    "a pipe": replaced_by("net.npz", os.mkfifo),
    "a folder": replaced_by("net.npz", Path.mkdir),
    "the manifest, a link": linked("npukit.json"),
    "nothing": lambda folder: (folder / "images/image.elf").unlink(),
    "a terabyte": lambda folder: os.truncate(folder / "golden.npz", 1 << 40),
    "a stray file": in_file("steps.json", b"{}"),
}


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_none(good: Path, tmp_path: Path, what: str):
    refused(changed(good, tmp_path, FILES[what]))


def test_dram_that_is_missing(mesh: Path, tmp_path: Path):
    def change(folder: Path) -> None:
        in_manifest("dram", value="images/dram.bin")(folder)
        (folder / "images/dram.bin").unlink(missing_ok=True)

    refused(changed(mesh, tmp_path, change))


def test_results_of_others_are_no_way_out_of_it(mesh: Path, tmp_path: Path):
    """Reports are written, but never through a link in the folder."""
    mine = tmp_path / "mine"
    mine.write_text("mine")

    def change(folder: Path) -> None:
        for name in ("report.html", "results.json"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(mine)

    from npukit.report.page import write_report

    folder = changed(mesh, tmp_path, change)
    write_report(api.load(folder), validation={})
    assert mine.read_text() == "mine"
    (folder / "results.json").write_text('{"bench": {"pes": 1}, "gantt": []}')
    write_report(api.load(folder))
