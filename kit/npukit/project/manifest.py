"""`npukit.json`: what a build folder says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from npukit import __version__
from npukit.board.board import Board
from npukit.project.compile import BuiltImage
from npukit.project.image import Image, Overlay


class OwnRecord(BaseModel):
    """The data by which the PEs of an image differ: `bytes` for each in turn, for `address` in its memory.

    Where chips do the same, it has those of one chip, and is there for each of them.
    """

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

    def moved(self, place: Callable[[str], str]) -> ImageRecord:
        """The record of the same image in another place of the folder."""
        own = self.own and self.own.model_copy(update={"file": place(self.own.file)})
        return self.model_copy(update={"elf": place(self.elf), "own": own})

    def _overlays(self, folder: Path) -> Iterator[Overlay]:
        if self.own:
            size, data = self.own.bytes, (folder / self.own.file).read_bytes()
            parts = [data[at : at + size] for at in range(0, len(data), size)]
            for pe, part in zip(self.pes, cycle(parts), strict=False):
                yield Overlay(pe, self.own.address, part)


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


class CompanyRecord(BaseModel):
    """Of a network that shares its board with those in the folders beside it: the PE that answers for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    network_pe: int


class NetworksManifest(BaseModel):
    """`npukit.json` of several networks side by side: each has a build folder of its own in this one.

    They are built together: `networks` has each one's name and build id.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    npukit: str = __version__
    networks: dict[str, str]


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
    """What must be in a chip's DRAM before the first frame, if anything is kept there."""
    chips: tuple[int, ...] = (0,)
    """The chips that run the network, each on frames of its own."""
    company: CompanyRecord | None = None
    """Where networks share the board."""
    summary: dict[str, Any]
    sha256: dict[str, str]
