"""The Robot suite: the firmware answers over its link and reproduces the golden frame; a broken image does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from npukit.board.board import Board
from npukit.data import data_folder
from npukit.emulator.renode.render import SCRIPT, pes_of, write_template
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image

SUITE, LIBRARY, GOLDEN = "firmware.robot", "FirmwareLink.py", "golden.json"

_CONSTANTS = ".constants"
_ARRAY_ERROR, _DMA_ERROR = 0x10, 0x0C
_SIXTEENTHS = (8, 12, 4, 14, 10, 6, 2, 15)
"""Places in the constants, in sixteenths, to change a byte until the output changes: weights are in the middle."""


@dataclass(frozen=True)
class GoldenFrame:
    """Inputs and outputs of one frame of a build, as bytes. `build_id` is hexadecimal."""

    model: str
    build_id: str
    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]


def render_suite(board: Board, images: Sequence[Image], golden: GoldenFrame, folder: Path) -> None:
    """Write the suite beside the script, for `renode-test FOLDER/firmware.robot`."""
    pes = pes_of(images)
    errors = [board.noc.base + _DMA_ERROR] if board.noc else []
    errors += [slot.base + _ARRAY_ERROR for slot in board.accelerator if slot.base is not None]
    shutil.copyfile(data_folder("templates") / "renode" / LIBRARY, folder / LIBRARY)
    frame = {name: [data.hex() for data in getattr(golden, name)] for name in ("inputs", "outputs")}
    text = json.dumps({**asdict(golden), **frame}, indent=1) + "\n"
    (folder / GOLDEN).write_text(text, encoding="utf-8", newline="\n")
    write_template(
        folder / SUITE,
        f"{SUITE}.j2",
        board=board,
        golden=golden,
        script=SCRIPT,
        pes=pes,
        root=pes[0],
        error_registers=errors,
        bytes_to_change=_bytes_to_change(next(image for image in images if pes[0] in image.pes)),
    )


def _bytes_to_change(image: Image) -> list[int]:
    """Addresses of bytes in the constants; none for a network without constants."""
    constants = Elf(image.elf).sections.get(_CONSTANTS)
    if constants is None or not constants.size:
        return []
    return [constants.address + constants.size * part // 16 for part in _SIXTEENTHS]
