"""The board for Renode, rendered from the board file: the platform, the script, the devices in C#."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from npukit.board.board import Board
from npukit.data import data_folder
from npukit.errors import DoesNotFit, NpukitError
from npukit.project.images.image import Image, Overlay
from npukit.templates import templates_in

PLATFORM, SCRIPT = "board.repl", "run.resc"
DRAM = "dram.bin"
PORT = 3456
"""Default port of the host link."""

RENODE_PES = 32
"""Most PEs. Renode's translation library keeps the exclusive accesses of a machine's cores in tables of this size."""

MODELS = (
    "Device.cs",
    "MacArrayCommand.cs",
    "MacArrayCycles.cs",
    "MacArrayArithmetic.cs",
    "MacArray.cs",
    "Mesh.cs",
    "Packet.cs",
    "Dram.cs",
    "MessageTimes.cs",
    "Noc.cs",
    "Timer.cs",
    "Uart.cs",
    "Flash.cs",
    "LinkTerminal.cs",
)
"""Source files of `DEVICES`."""

DEVICES = "Devices.cs"
_ONCE = ("// SPDX-", "using ")
"""Beginnings of lines common to all models, which appear once in `DEVICES`."""
"""All devices in one file: Renode 1.15 compiles each file by itself, without the classes of earlier files."""

STOCK_MODELS = ("LinkTerminal.cs",)
"""Models for a board whose platform comes with Renode."""

MODELLED = ("mac_array",)
"""Accelerators with a device in C#."""


@dataclass(frozen=True)
class Dram:
    """Initial bytes of the DRAM of these chips."""

    data: bytes
    chips: tuple[int, ...] = (0,)


def render_renode(board: Board, images: Sequence[Image], folder: Path, dram: Dram | None = None) -> None:
    """Write the board with these images for Renode: `include @FOLDER/run.resc`, then `start`. There must be no
    `objection`. Only PEs with an image exist. Paths of images are relative to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    source = devices_source(STOCK_MODELS if board.renode else MODELS)
    (folder / DEVICES).write_text(source, encoding="utf-8", newline="\n")
    platform = "stock.repl.j2" if board.renode else "board.repl.j2"
    pes = pes_of(images)
    write_template(
        folder / PLATFORM,
        platform,
        board=board,
        pes=pes,
        root=pes[0],
        million_cycles=board.core.clock_hz // 1_000_000,
        dead_links=" ".join(f"{a}-{b}" for a, b in board.mesh.dead_links),
    )
    names = ["image"] if len(images) == 1 else [f"image_{number}" for number in range(len(images))]
    paths = [Path(os.path.relpath(image.elf.resolve(), folder.resolve())).as_posix() for image in images]
    loads = [
        {"variable": name, "elf": path, "pes": image.pes}
        for name, path, image in zip(names, paths, images, strict=True)
    ]
    overlays = [overlay for image in images for overlay in image.overlays]
    for overlay in overlays:
        (folder / own_data_file(overlay)).write_bytes(overlay.data)
    if dram:
        (folder / DRAM).write_bytes(dram.data)
    values = {"board": board, "port": PORT, "devices": DEVICES, "loads": loads, "overlays": overlays}
    values |= {"dram": DRAM, "chips": dram.chips if dram else ()}
    write_template(folder / SCRIPT, "run.resc.j2", own_data_file=own_data_file, **values)


def devices_source(models: Sequence[str]) -> str:
    """The devices as one file of C#, with the licence and the namespaces once, at the top."""
    texts = [(data_folder("templates") / "renode" / model).read_text(encoding="utf-8") for model in models]
    used = sorted({line for text in texts for line in text.splitlines() if line.startswith(_ONCE)})
    bodies = ("\n".join(line for line in text.splitlines() if not line.startswith(_ONCE)) for text in texts)
    return "\n".join([*used, "", *bodies]) + "\n"


def objection(board: Board, images: Sequence[Image]) -> NpukitError | None:
    """Why Renode cannot run this board with these images; None if it can."""
    others = [f"--on {other}" for other in board.runs_on if other != "renode"]
    if "renode" not in board.runs_on or (board.renode is None and (board.noc is None or len(board.memory) != 1)):
        return NpukitError(f"board {board.name} does not run on Renode", tries=others)
    strange = next(
        (slot.name for slot in board.accelerator if slot.base is not None and slot.name not in MODELLED), None
    )
    if strange is not None:
        return NpukitError(f"there is no Renode model of the accelerator {strange}", tries=others)
    count = len(pes_of(images))
    if count > RENODE_PES:
        return DoesNotFit(
            f"{count} PEs do not fit in a Renode machine: its translation library knows at most {RENODE_PES} cores",
            tries=[f"npukit build --pes {RENODE_PES}", *others],
        )
    return None


def pes_of(images: Sequence[Image]) -> list[int]:
    return sorted(pe for image in images for pe in image.pes)


def write_template(path: Path, template: str, **values: Any) -> None:
    text = _environment().get_template(template).render(**values)
    path.write_text(text, encoding="utf-8", newline="\n")


def own_data_file(overlay: Overlay) -> str:
    """Name of the file with a PE's own data, beside the script. The data replace the image's."""
    return f"own-{overlay.pe}-{overlay.address:08x}.bin"


@cache
def _environment() -> Environment:
    environment = templates_in("renode")
    environment.filters["line"] = lambda text: re.sub(r"[^\w .,:/()+-]", "", text)
    environment.filters["address"] = lambda value: f"0x{value:08X}"
    environment.filters["pascal"] = _pascal
    environment.filters["camel"] = lambda name: name[0].lower() + _pascal(name)[1:]
    return environment


def _pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
