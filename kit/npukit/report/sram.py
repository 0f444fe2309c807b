"""A PE's SRAM over its steps: the place and lifetime of each buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npukit.plan.ir.plan import PePlan, Plan

WIDTH, HEIGHT = 1000, 160
MOST_MAPS = 3
_LABEL_WIDTH, _LABEL_HEIGHT = 60, 12


@dataclass(frozen=True)
class BufferArea:
    """A buffer: x along the steps, y along the addresses."""

    x: float
    y: float
    width: float
    height: float
    shade: int
    label: str
    title: str


@dataclass(frozen=True)
class SramMap:
    """The activations of a PE."""

    pe: int
    bytes: int
    steps: int
    blocks: tuple[BufferArea, ...]


def sram_maps(plan: Plan) -> tuple[SramMap, ...]:
    """Maps of the root, and of the PEs with the most bytes of activations."""
    root, *others = plan.pes
    fullest = sorted(others, key=lambda pe: -_top(pe))[: MOST_MAPS - 1]
    found = list[SramMap]()
    for pe in (each for each in (root, *fullest) if each.buffers):
        top, steps = _top(pe), max(len(pe.steps), 1)
        found.append(SramMap(pe.pe, top, steps, tuple(_blocks(pe, top, steps))))
    return tuple(found)


def _top(pe: PePlan) -> int:
    return max((b.offset + b.bytes for b in pe.buffers), default=0)


def _blocks(pe: PePlan, top: int, steps: int) -> Iterator[BufferArea]:
    # tensors that follow each other in the frame differ in their shade
    names = {tensor: index % 4 for index, tensor in enumerate(dict.fromkeys(b.tensor for b in pe.buffers))}
    for buffer in pe.buffers:
        first, last = max(buffer.first, 0), min(buffer.last, steps - 1)
        x, width = first / steps * WIDTH, (last + 1 - first) / steps * WIDTH
        y, height = buffer.offset / top * HEIGHT, buffer.bytes / top * HEIGHT
        label = buffer.name.split(" of frame ")[0] if width >= _LABEL_WIDTH and height >= _LABEL_HEIGHT else ""
        title = f"{buffer.name}: {buffer.bytes:,} bytes at {buffer.offset:,}, steps {first} to {last}"
        yield BufferArea(
            round(x, 2), round(y, 2), round(width, 2), round(height, 2), names[buffer.tensor], label, title
        )
