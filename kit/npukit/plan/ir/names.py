"""Names of buffers: content, frame and micro-batch of a batch, and number if a PE has several.

conv2d_0        conv2d_0 of frame 8        constants of conv2d_0 0:16 of micro-batch 1 (3)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from npukit.plan.ir.plan import Buffer

ROOM = "room for "
"""Prefix of signals that permit sending a frame's tensor."""

SCRATCH = " scratch"

_NAME = re.compile(r"(.*?)(?: of micro-batch ([1-9]\d*))?(?: of frame ([1-9]\d*))?(?: \(([2-9]|[1-9]\d+)\))?", re.S)


@dataclass(frozen=True, order=True)
class Name:
    """The parts of a buffer's name."""

    stem: str
    micro_batch: int = 0
    frame: int = 0
    number: int = 1

    def __str__(self) -> str:
        batch = f" of micro-batch {self.micro_batch}" if self.micro_batch else ""
        number = f" ({self.number})" if self.number > 1 else ""
        return f"{in_frame(self.stem + batch, self.frame)}{number}"


@lru_cache(maxsize=1 << 16)
def read_name(text: str) -> Name:
    match = _NAME.fullmatch(text)
    assert match is not None
    batch, frame, number = (int(part or default) for part, default in zip(match.groups()[1:], (0, 0, 1), strict=True))
    return Name(match[1], batch, frame, number)


def in_frame(tensor: str, frame: int) -> str:
    """The name of the first buffer for a tensor of one frame of a batch."""
    return tensor if frame == 0 else f"{tensor} of frame {frame}"


def is_named(buffer: str, name: str) -> bool:
    """True if a buffer has the name `name`, as given by `in_frame`, with or without a number."""
    return buffer == name or buffer.startswith(f"{name} (")


def has_frames(stem: str) -> bool:
    """True if each frame has its own buffer of this stem, although the buffer holds no tensor."""
    return stem.startswith(ROOM) or stem.endswith(SCRATCH)


@lru_cache(maxsize=1 << 16)
def later(text: str, frames: int, tensor: str) -> str:
    """The buffer's name `frames` frames later. Unchanged if all frames share the buffer.

    `tensor`: the buffer's tensor, empty if none. Buffers of tensors belong to a frame.
    """
    name = read_name(text.removeprefix(tensor))
    if not tensor and not has_frames(name.stem):
        return text
    return tensor + str(replace(name, frame=name.frame + frames))


def in_order(buffers: Iterable[Buffer]) -> list[Buffer]:
    """A PE's buffers in the order of a plan: by first use."""
    return sorted(buffers, key=lambda buffer: (buffer.first, read_name(buffer.name)))
