"""The build folder: the output of `npukit build`, written as a whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from npukit.arrays import load_arrays
from npukit.board.board import Board
from npukit.data import data_folder
from npukit.display import layers_table
from npukit.errors import NpukitError
from npukit.host.budget import BUILD
from npukit.host.parallel import apart
from npukit.net.net import Net
from npukit.net.store import TEXT, VALUES, load_net
from npukit.plan.ir.plan import Plan
from npukit.plan.ir.store import check_plan, load_plan
from npukit.project.accelerators import model_for, rtl_of, without_model
from npukit.project.by_hand import PROJECT, changed_files, in_project, is_made, made_of, making
from npukit.project.folder_files import differing_files, file_digest, read_text
from npukit.project.hal import FOLDER
from npukit.project.images.elf_file import check_elf
from npukit.project.images.image import Image
from npukit.project.manifest import FORMAT, FolderFormat, Manifest, NetworksManifest
from npukit.writing import new_folder

MANIFEST = "npukit.json"
PLAN = "plan.txt"
DRAM_IMAGE = "images/dram.bin"
GOLDEN = "golden.npz"
SPANS = "steps.json"
REPORT = "report.html"

_HAL = PROJECT / "firmware" / FOLDER
_ALWAYS = (TEXT, VALUES, PLAN, GOLDEN)
_SOMETIMES = (SPANS, "loops.json")
_SPANS = TypeAdapter(dict[int, list[int]])


@dataclass(frozen=True)
class Build:
    """A build folder, read back.

    If networks share the board, images, DRAM and models are those of all networks, as the board runs them together.
    `modified`: the project's files that were edited by hand, if edits are accepted, else None. The images are then
    those from the project's `make`, if it was run.
    """

    folder: Path
    manifest: Manifest
    modified: tuple[str, ...] | None = None

    @property
    def board(self) -> Board:
        """The board. A user's hardware abstraction layer is the copy in the project."""
        copy = self.folder / _HAL / f"{self.manifest.board.hal}.c"
        own = not (data_folder("firmware") / "hal" / copy.name).is_file()
        return self.manifest.board.model_copy(update={"hal_file": copy}) if own else self.manifest.board

    @property
    def build_id(self) -> bytes:
        return bytes.fromhex(self.manifest.build_id)

    def __repr__(self) -> str:
        summary = self.manifest.summary
        return f"<Build {self.folder}: {summary['model']} on {summary['board']}, {summary['pes_used']} PEs>"

    def _repr_html_(self) -> str:
        summary = self.manifest.summary
        return layers_table(summary, f"{summary['pes_used']} PEs, in {self.folder}")

    def unchanged(self) -> Build:
        """This build. Raises an error if the folder holds another build by now."""
        if _manifest_in(self.folder).build_id != self.manifest.build_id:
            raise NpukitError(
                f"{self.folder} has been built anew and has another build now",
                tries=[f"npukit.load({str(self.folder)!r})", "a folder for each build: output=..."],
            )
        return self

    def net(self) -> Net:
        return self._net

    @cached_property
    def _net(self) -> Net:
        size = sum(map(_size, (self.folder / TEXT, self.folder / VALUES)))
        return apart(partial(load_net, self.folder), str(self.folder / TEXT), BUILD, size)

    def plan(self) -> Plan:
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        path = self.folder / PLAN
        net, board = self.net(), self.board
        return apart(lambda: check_plan(load_plan(path), net, board), str(path), BUILD, _size(path))

    def golden(self) -> dict[str, np.ndarray]:
        return load_arrays(self.folder / GOLDEN)

    @cached_property
    def coresident(self) -> tuple[Build, ...]:
        """This build, followed by the builds of the other networks on the board."""
        modified = self.modified is not None
        networks = load_networks(self.folder.parent, modified=modified) if self.manifest.coresident else {}
        return (self, *(build for build in networks.values() if build.build_id != self.build_id))

    def images(self) -> tuple[Image, ...]:
        return tuple(image for each in self.coresident for image in each.manifest.loaded(each.folder))

    def plans(self) -> tuple[Plan, ...]:
        """The plans of all networks on the board."""
        return tuple(each.plan() for each in self.coresident)

    def dram(self) -> bytes | None:
        """The bytes of each chip's DRAM from address 0 on. None if DRAM is unused. Networks have separate places, with
        zeros in the places of others."""
        parts = [(each.folder / each.manifest.dram).read_bytes() for each in self.coresident if each.manifest.dram]
        whole = np.zeros(max(map(len, parts), default=0), np.uint8)
        for part in parts:
            whole[: len(part)] |= np.frombuffer(part, np.uint8)
        return whole.tobytes() if parts else None

    def spans(self) -> dict[int, list[int]]:
        """The number of the plan's steps in each traced step of a frame, by PE. An error for builds without tracing."""
        path = self.folder / SPANS
        if not path.is_file():
            raise NpukitError(
                f"{self.folder} is a build whose firmware writes no events",
                tries=["npukit build MODEL --trace -o FOLDER", "npukit trace --on emulator"],
            )
        try:
            return _SPANS.validate_json(read_text(path))
        except ValueError as error:
            raise NpukitError(f"{path} cannot be read: {error}", tries=["build again"]) from error

    @property
    def only_on_hardware(self) -> str | None:
        """The name of an accelerator without an emulator, which restricts this build to hardware, or None."""
        records = [record for each in self.coresident for record in each.manifest.accelerators]
        return without_model(records, self.board)

    def models(self) -> dict[str, Path]:
        """Models for accelerators that the emulator lacks, from the user's plug-ins. The folder has none."""
        records = (record for each in self.coresident for record in each.manifest.accelerators)
        found = {record.name: model_for(record, self.board) for record in records}
        return {name: model for name, model in found.items() if model}

    def rtl(self) -> dict[str, Path]:
        """Folders of accelerators in Verilog, from the user's plug-ins."""
        records = (record for each in self.coresident for record in each.manifest.accelerators)
        found = {record.name: rtl_of(record, self.board) for record in records}
        return {name: folder for name, folder in found.items() if folder}


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def load_build(folder: Path, *, modified: bool = False) -> Build:
    """Read the build in `folder`. Its files must match the manifest. `modified`: accept a project edited by hand."""
    path = folder / MANIFEST
    return apart(partial(_loaded, folder, modified=modified), str(path), BUILD, _size(path))


def _loaded(folder: Path, *, modified: bool) -> Build:
    manifest = _manifest_in(folder)
    changed = list[str]()
    for name in differing_files(folder, manifest.sha256, {*manifest.needed, *_ALWAYS}, _SOMETIMES):
        if not (modified and in_project(name)):
            by_hand = f"{making(folder)}, then --modified (validate, run, bench, trace, flash)"
            tries = [*([by_hand] if in_project(name) else []), "build again"]
            raise NpukitError(f"{folder / name} is not what the build left there", tries=tries)
        changed.append(name)
    build = _made_by_hand(folder, manifest, changed) if modified else Build(folder, manifest)
    for image in build.manifest.images:
        check_elf(folder / image.elf, manifest.board, image.pes)
    return build


def _manifest_in(folder: Path) -> Manifest:
    text = _manifest_text(folder)
    if several := _networks_in(text):
        raise NpukitError(
            f"{folder} has {len(several)} networks: {', '.join(several)}",
            tries=[way for name in several for way in (f"{folder / name}", f"--network {name}")],
        )
    try:
        found = FolderFormat.model_validate_json(text).format
        if found != FORMAT:
            whose = "an older" if found < FORMAT else "a newer"
            raise NpukitError(
                f"{folder} was built by {whose} npukit: its folder has format {found}, this npukit reads {FORMAT}",
                tries=[f"build again: npukit build MODEL -o {folder}", "the npukit that it was built with"],
            )
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise _unreadable(folder, error) from error


def _made_by_hand(folder: Path, manifest: Manifest, changed: Iterable[str]) -> Build:
    """The build with the images of the project's `make`, if it was run."""
    files = changed_files(folder, changed, manifest.sha256)
    if not is_made(folder, files, [image.elf for image in manifest.images]):
        return Build(folder, manifest, files)
    images = tuple(image.moved(made_of) for image in manifest.images)
    digests = {new.elf: manifest.sha256[old.elf] for new, old in zip(images, manifest.images, strict=True)}
    differing = tuple(name for name, digest in digests.items() if file_digest(folder / name) != digest)
    return Build(folder, manifest.model_copy(update={"images": images}), files or differing)


def load_networks(folder: Path, *, modified: bool = False) -> dict[str, Build]:
    """The builds of networks side by side in `folder`, by name. Empty for the build of a single network."""
    path = folder / MANIFEST
    return apart(partial(_loaded_networks, folder, modified=modified), str(path), BUILD, _size(path))


def _loaded_networks(folder: Path, *, modified: bool) -> dict[str, Build]:
    known = _networks_in(_manifest_text(folder))
    builds = {name: load_build(folder / name, modified=modified) for name in known}
    for name, build in builds.items():
        if build.manifest.build_id != known[name]:
            raise NpukitError(
                f"{folder / name} was built again without the networks beside it", tries=["build all of them again"]
            )
    return builds


def write_networks_manifest(folder: Path, networks: Sequence[str]) -> None:
    """Write the `npukit.json` with the list of networks in the folder."""
    builds = {name: load_build(folder / name).manifest.build_id for name in networks}
    _write_manifest(folder, NetworksManifest(networks=builds))


def _networks_in(manifest: str) -> dict[str, str]:
    try:
        return NetworksManifest.model_validate_json(manifest).networks
    except ValidationError:
        return {}


def _manifest_text(folder: Path) -> str:
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise NpukitError(
            f"{folder} is not a build folder: it has no {MANIFEST}", tries=["npukit build MODEL -o FOLDER"]
        )
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, error: Exception) -> NpukitError:
    why = str(error)
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        why = f"{'.'.join(map(str, fault['loc'])) or 'the file'}: {fault['msg']}"
    return NpukitError(f"{folder / MANIFEST} cannot be read: {why}", tries=["build again"])


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `npukit.json` with the digest of every other file in the folder."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (MANIFEST, REPORT))
    digests = {p.relative_to(folder).as_posix(): file_digest(p) for p in files}
    _write_manifest(folder, manifest.model_copy(update={"sha256": digests}))


def note(build: Build, key: str, value: object) -> None:
    """Add an entry to the manifest's summary."""
    summary = {**build.manifest.summary, key: value}
    _write_manifest(build.folder, build.manifest.model_copy(update={"summary": summary}))


def _write_manifest(folder: Path, manifest: Manifest | NetworksManifest) -> None:
    text = json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def write_spans(folder: Path, spans: Mapping[int, Sequence[int]]) -> None:
    """Write the file for `Build.spans`."""
    (folder / SPANS).write_text(
        json.dumps({str(pe): list(each) for pe, each in sorted(spans.items())}) + "\n", encoding="utf-8", newline="\n"
    )


@contextmanager
def new_build_folder(output: Path) -> Iterator[Path]:
    """A temporary folder that replaces `output` when the block succeeds, and is removed when it fails."""
    place = output.absolute()
    is_ours = place.is_dir() and ((place / MANIFEST).is_file() or not any(place.iterdir()))
    if place.exists() and not is_ours:
        raise NpukitError(f"{place} exists and is not a build folder", tries=["another folder with -o"])
    with new_folder(output) as folder:
        yield folder


def replace_build(source: Path, output: Path) -> None:
    """Replace the build in `output` by a copy of `source`, as a whole or not at all."""
    with new_build_folder(output) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True)
