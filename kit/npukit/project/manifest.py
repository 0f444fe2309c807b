"""`npukit.json`, the manifest of a build folder. Every field is checked, as the source is untrusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator
from typing_extensions import TypedDict

from npukit import __version__
from npukit.accel.core_kernels import USUAL, CostPreference
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.options import Options
from npukit.project.images.image import Image, Overlay
from npukit.project.images.regions import with_digests

if TYPE_CHECKING:
    from npukit.project.compile import BuiltImage

FORMAT = 8
"""The format of build folders. Format 1 had no format in its manifest, and no titles of layers; 2 no energy of frames;
3 no coverage of golden inputs; 4 no rows of C; 5 no cycles of C; 6 repeated steps in `plan.txt` by reference
and no log of the search."""

PLANNED_FOR = "planned_for"
"""The key in a summary with the options of the search, where different from the build's options."""

_PE = Annotated[int, Field(ge=0)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
_BUILD_ID = r"^[0-9a-f]{32}$"

File = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f\x7f]+(/[^/\\\x00-\x1f\x7f]+)*$")]
"""A file in the folder. `build_folder.py` rejects paths out of the folder."""
ImageFile = Annotated[str, Field(pattern=r"^images/[A-Za-z0-9_][A-Za-z0-9_-]*\.(elf|own|bin)$")]
"""An image file. The name is passed to tools."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OwnRecord(_Record):
    """Own data of an image's PEs: `bytes` bytes for each PE in turn, to load at `address`. If several chips run the
    image, the file has the data of one chip, for use on each of them."""

    file: ImageFile
    address: int = Field(ge=0, le=0xFFFF_FFFF)
    bytes: int = Field(gt=0)


class ImageRecord(_Record):
    elf: ImageFile
    pes: tuple[_PE, ...] = Field(min_length=1)
    own: OwnRecord | None = None

    def image(self, folder: Path) -> Image:
        """The image in a build folder."""
        overlays = list[Overlay]()
        if self.own:
            size, data = self.own.bytes, (folder / self.own.file).read_bytes()
            if not data or len(data) % size or len(data) > size * len(self.pes):
                message = f"{self.own.file} has {len(data):,} bytes, not {size:,} for each PE"
                raise NpukitError(message, tries=["build again"])
            parts = cycle([data[at : at + size] for at in range(0, len(data), size)])
            overlays = [Overlay(pe, self.own.address, part) for pe, part in zip(self.pes, parts, strict=False)]
        return Image(folder / self.elf, self.pes, tuple(overlays))

    def moved(self, place: Callable[[str], str]) -> ImageRecord:
        """The record of the same image in another place of the folder."""
        own = self.own and self.own.model_copy(update={"file": place(self.own.file)})
        return self.model_copy(update={"elf": place(self.elf), "own": own})


def image_record(built: BuiltImage, folder: Path) -> ImageRecord:
    """The manifest's record of an image in the build folder."""
    place = built.layout.own
    own = built.own and OwnRecord(file=built.own.relative_to(folder).as_posix(), address=place.start, bytes=place.size)
    return ImageRecord(elf=built.elf.relative_to(folder).as_posix(), pes=built.pes, own=own)


class AcceleratorRecord(_Record):
    """The plug-in used for a build, and the SHA-256 of the plug-in's model for the emulator, if any."""

    name: _Line
    version: _Line
    model: _Sha256 | None


class CoresidentRecord(_Record):
    """The PE that answers for a network, on a board shared with the networks in the neighbouring folders."""

    network_pe: _PE


class FolderFormat(BaseModel):
    """The format of a folder, from the manifest of any npukit."""

    format: int = 1


class NetworksManifest(_Record):
    """`npukit.json` of several networks side by side, each in a build folder inside this one. `networks`: the name and
    build id of each. All are built together."""

    npukit: str = __version__
    networks: dict[Annotated[str, Field(pattern=r"^\w[\w.-]*$")], str]


class _OpRow(TypedDict):
    name: str
    title: str
    op: str
    engine: str
    choice: str
    reason: str
    kernel: str | None
    macs: int
    pes: list[int]
    predicted_cycles: int
    sources: NotRequired[list[str]]


class _MemoryRow(TypedDict):
    pe: int
    code: int
    constants: int
    activations: int
    stack: int
    free: int


class _PlannedFor(TypedDict):
    objective: str
    pes: int | None


class _Summary(TypedDict):
    """The part of `npukit build`'s summary that other verbs read."""

    model: str
    board: str
    pes_used: int
    ops: list[_OpRow]
    memory: Annotated[list[_MemoryRow], Field(min_length=1)]
    predicted: dict[str, int | float | None]
    frames: Annotated[int, Field(gt=0)]
    chips: int
    planned_for: NotRequired[_PlannedFor]


_SUMMARY = TypeAdapter(_Summary)


class Manifest(_Record):
    """`npukit.json`. `summary`: the output of `npukit build --json`."""

    npukit: _Line = __version__
    format: int = FORMAT
    model: str
    model_sha256: str
    build_id: str = Field(pattern=_BUILD_ID)
    board: Board
    accelerators: tuple[AcceleratorRecord, ...] = ()
    toolchain: _Line
    options: dict[str, Any] = {}
    """The options of the build: `Options.to_json()`."""
    images: tuple[ImageRecord, ...] = Field(min_length=1)
    dram: ImageFile | None = None
    """The file with the initial contents of a chip's DRAM, if DRAM holds any."""
    chips: tuple[_PE, ...] = Field((0,), min_length=1)
    """The chips that run the network, each on separate frames."""
    coresident: CoresidentRecord | None = None
    """The network's place on a board shared by several networks."""
    preference: CostPreference = USUAL
    """The cost preference that chose the core's kernels. Records of `npukit tune` change it."""
    summary: dict[str, Any]
    sha256: dict[File, _Sha256]

    @field_validator("options")
    @classmethod
    def _known_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        Options.from_json(options)
        return options

    @field_validator("summary")
    @classmethod
    def _known_summary(cls, summary: dict[str, Any]) -> dict[str, Any]:
        _SUMMARY.validate_python(summary)
        return summary

    @model_validator(mode="after")
    def _names_no_code(self) -> Manifest:
        named = [slot.name for slot in self.board.accelerator if slot.plugin]
        if named:
            raise ValueError(f"it says where the plug-in {named[0]} is to be loaded from, which only a board file may")
        return self

    @model_validator(mode="after")
    def _of_one_board(self) -> Manifest:
        pes = [pe for image in self.images for pe in image.pes]
        if len(set(pes)) < len(pes) or max(pes) >= self.board.pe_count:
            raise ValueError(f"its images do not run on different PEs of a board that has {self.board.pe_count}")
        if max(self.chips) >= self.board.mesh.chips.count:
            raise ValueError(f"it runs on chips of a board that has {self.board.mesh.chips.count}")
        return self

    @property
    def planned_for(self) -> Options:
        """The options of the search for the plan: the build's, or for least energy the best trial's."""
        return Options.from_json(self.options | self.summary.get(PLANNED_FOR, {}))

    def loaded(self, folder: Path) -> Iterator[Image]:
        """The images in a build folder, with all their overlays."""
        images = (image.image(folder) for image in self.images)
        return map(with_digests, images) if self.options.get("self_test") else images

    @property
    def needed(self) -> set[str]:
        """The files that a build needs to run."""
        own = (image.own.file for image in self.images if image.own)
        return {*(image.elf for image in self.images), *own, *([self.dram] if self.dram else [])}
