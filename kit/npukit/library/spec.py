"""Memory images and a `spec.json`, the form of an experiment for a SpiNNaker2 host, as far as public.

The keys are public: the PEs that take part, a memory file for each, data to send before the run, regions to read after
the run. The layout of values is not public; npukit's is in `docs/link.md`. The images are the build's own, for the
hardware of its board file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.boot.mesh_image import distinct_programs
from npukit.plan.ir.names import in_frame
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import control_bytes
from npukit.project.build_folder import Build
from npukit.project.images.elf import Elf
from npukit.structs import WORD

SPEC = "spec.json"


@dataclass(frozen=True)
class SpecRegion:
    """A region of a PE's SRAM, or of a chip's DRAM, with a tensor of the first frames."""

    name: str
    pe: int
    address: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "pe": self.pe, "address": self.address, "words": -(-self.bytes // WORD)}


def spec_files(build: Build) -> dict[str, str]:
    """Files of an export: `spec.json`, and a memory image for each PE, equal images once."""
    plan, board = build.plan(), build.board
    files, images = dict[str, str](), dict[int, str]()
    for pe, text in _memories(build):
        place = next((name for name, known in files.items() if known == text), f"memory/pe_{pe}.mem")
        files[place], images[pe] = text, place
    dram = build.dram()
    places = [DRAM + chip for chip in plan.chips] if dram else []
    if dram:
        files["memory/dram.mem"] = memory_text({0: dram})
    golden = build.golden()
    files_of = {str(pe): images[pe] for pe in sorted(images)} | dict.fromkeys(map(str, places), "memory/dram.mem")
    spec = {
        "active_pes": [_place(board, pe) for pe in sorted(images)],
        "mem_files": files_of,
        "duration_in_s": plan.predicted.latency_cycles / board.core.clock_hz,
        "mem_data_to_send": [
            {**region.to_json(), "data": _words(cases[frame % len(cases)].tobytes())}
            for frame, index, region in _regions(build, plan, build.net().inputs)
            for cases in [golden[f"in{index}"]]
        ],
        "mem_regions_to_read": [region.to_json() for _, _, region in _regions(build, plan, build.net().outputs)],
    }
    return {SPEC: json.dumps(spec, indent=1) + "\n", **files}


def _memories(build: Build) -> Iterator[tuple[int, str]]:
    """Memory of each PE, with the PE's own data in place of its image's."""
    images = build.images()
    own = {overlay.pe: overlay for image in images for overlay in image.overlays}
    for program in distinct_programs(images):
        common = {segment.address: segment.data for segment in program.segments}
        for pe in program.pes:
            parts = {**common, **({own[pe].address: own[pe].data} if pe in own else {})}
            yield pe, memory_text(parts)


def _regions(build: Build, plan: Plan, tensors: Sequence[str]) -> Iterator[tuple[int, int, SpecRegion]]:
    """Buffers of tensors, with their frame and index: on the root PE, or in DRAM for tensors of a batch."""
    root, net = plan.pes[0], build.net()
    stored = {buffer.name: buffer for buffer in plan.dram}
    (image,) = [image for image in build.images() if root.pe in image.pes]
    arena = Elf(image.elf).symbols["net_activations"] + control_bytes(len(root.tiles))
    for frame in range(plan.frames):
        for index, tensor in enumerate(tensors):
            name, size = in_frame(tensor, frame), net.tensor(tensor).bytes
            if name in stored:
                yield frame, index, SpecRegion(name, DRAM + plan.home, stored[name].offset, size)
            else:
                yield frame, index, SpecRegion(name, root.pe, arena + root.buffer(name).offset, size)


def memory_text(parts: Mapping[int, bytes]) -> str:
    """Memory as text: `@` and the number of a word, then words of 32 bits, in hexadecimal."""
    lines = list[str]()
    for address, data in sorted(parts.items()):
        lines += [f"@{address // WORD:08x}", *(f"{word:08x}" for word in _words(data))]
    return "\n".join(lines) + "\n"


def _words(data: bytes) -> list[int]:
    return np.frombuffer(data.ljust(-(-len(data) // WORD) * WORD, b"\0"), "<u4").tolist()


def _place(board: Board, pe: int) -> dict[str, int]:
    chip, at = divmod(pe, board.mesh.pes.count)
    row, column = divmod(at, board.mesh.pes.columns)
    return {"pe": pe, "chip": chip, "x": column, "y": row}
