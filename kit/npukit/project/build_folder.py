"""The build folder: what `npukit build` leaves, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from npukit import __version__
from npukit.board.board import Board
from npukit.display import table
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.store import load_net
from npukit.plan.plan import Plan
from npukit.plan.store import load_plan
from npukit.project.compile import BuiltImage
from npukit.project.image import Image, Overlay

MANIFEST = "npukit.json"
PLAN = "plan.json"
DRAM_IMAGE = "images/dram.bin"
GOLDEN = "golden.npz"
REPORT = "report.html"


class OwnRecord(BaseModel):
    """The data by which the PEs of an image differ: `bytes` for each in turn, for `address` in its memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    address: int
    bytes: int


class ImageRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    elf: str
    pes: tuple[int, ...]
    own: OwnRecord | None = None

    def image(self, folder: Path) -> Image:
        """The image in a build folder."""
        return Image(folder / self.elf, self.pes, tuple(self._overlays(folder)))

    def _overlays(self, folder: Path) -> Iterator[Overlay]:
        if self.own:
            size, data = self.own.bytes, (folder / self.own.file).read_bytes()
            for index, pe in enumerate(self.pes):
                yield Overlay(pe, self.own.address, data[index * size : (index + 1) * size])


def image_record(built: BuiltImage, folder: Path) -> ImageRecord:
    """What the manifest says of an image in the build folder."""
    place = built.layout.own
    own = built.own and OwnRecord(file=built.own.relative_to(folder).as_posix(), address=place.start, bytes=place.size)
    return ImageRecord(elf=built.elf.relative_to(folder).as_posix(), pes=built.pes, own=own)


class AcceleratorRecord(BaseModel):
    """The plug-in that a build was made with; `model`, for the emulator, is in the build folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    name: str
    version: str
    model: str | None


class Manifest(BaseModel):
    """`npukit.json`. `summary` is what `npukit build --json` printed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    npukit: str = __version__
    model: str
    model_sha256: str
    build_id: str
    board: Board
    accelerators: tuple[AcceleratorRecord, ...] = ()
    toolchain: str
    options: dict[str, Any] = {}
    """What the build was asked for: `Options.to_json()`."""
    images: tuple[ImageRecord, ...]
    dram: str | None = None
    """What must be in the first chip's DRAM before the first frame, if anything is kept there."""
    summary: dict[str, Any]
    sha256: dict[str, str]


@dataclass(frozen=True)
class Build:
    """A build folder, read back."""

    folder: Path
    manifest: Manifest

    @property
    def board(self) -> Board:
        return self.manifest.board

    @property
    def build_id(self) -> bytes:
        return bytes.fromhex(self.manifest.build_id)

    def _repr_html_(self) -> str:
        told = self.manifest.summary
        rows = [(op["name"], op["op"], op["engine"], len(op["pes"]), op["predicted_cycles"]) for op in told["ops"]]
        title = f"{told['model']} on {told['board']}: {told['pes_used']} PEs, in {self.folder}"
        return table(title, ("layer", "op", "engine", "PEs", "cycles, predicted"), rows)

    def net(self) -> Net:
        return load_net(self.folder)

    def plan(self) -> Plan:
        return load_plan(self.folder / PLAN)

    def golden(self) -> dict[str, np.ndarray]:
        with np.load(self.folder / GOLDEN, allow_pickle=False) as arrays:
            return dict(arrays)

    def images(self) -> tuple[Image, ...]:
        return tuple(image.image(self.folder) for image in self.manifest.images)

    def dram(self) -> bytes | None:
        """What the first chip's DRAM must hold from address 0 on; None if the network does without."""
        return (self.folder / self.manifest.dram).read_bytes() if self.manifest.dram else None

    def models(self) -> dict[str, Path]:
        """The emulator's models of accelerators that it does not have itself."""
        records = self.manifest.accelerators
        return {record.name: self.folder / record.model for record in records if record.model}


def load_build(folder: Path) -> Build:
    """The build in `folder`; its files must be those the manifest lists."""
    path = folder / MANIFEST
    if not path.is_file():
        raise NpukitError(
            f"{folder} is not a build folder: it has no {MANIFEST}", tries=["npukit build MODEL -o FOLDER"]
        )
    try:
        manifest = Manifest.model_validate_json(path.read_text())
    except (ValidationError, UnicodeDecodeError) as error:
        raise NpukitError(f"{path} cannot be read: {error}", tries=["build again"]) from error
    for name, digest in manifest.sha256.items():
        if not (folder / name).is_file() or file_digest(folder / name) != digest:
            raise NpukitError(f"{folder / name} is not what the build left there", tries=["build again"])
    return Build(folder, manifest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `npukit.json` with the digest of every other file in the folder."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (MANIFEST, REPORT))
    digests = {p.relative_to(folder).as_posix(): file_digest(p) for p in files}
    whole = manifest.model_copy(update={"sha256": digests})
    (folder / MANIFEST).write_text(json.dumps(whole.model_dump(mode="json"), indent=1) + "\n")


def file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def new_build_folder(output: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `output` when the block ends well and vanishes when it does not."""
    _check_replaceable(output)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent.resolve()))
    except OSError as error:
        raise _not_writable(output, error) from error
    try:
        yield scratch
        scratch.chmod(0o755)
        if output.exists():
            shutil.rmtree(output)
        scratch.rename(output)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_replaceable(output: Path) -> None:
    if output.is_dir() and ((output / MANIFEST).is_file() or not any(output.iterdir())):
        return
    if output.exists():
        raise NpukitError(
            f"{output} exists and is not a build folder", tries=["another folder with -o", f"remove {output}"]
        )


def _not_writable(output: Path, error: OSError) -> NpukitError:
    return NpukitError(f"cannot write to {output}: {error.strerror}", tries=["another folder with -o"])
