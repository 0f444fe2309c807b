"""The shape of a 2x2 block, the unrolling, and the addresses of results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npukit.accel.cortex_m.code.assembly import REACH

_ROUND_CHANNELS = 4
"""Channels whose results are stored before the pointer advances."""


class Density(Enum):
    """The order of weights in the stream."""

    HALFWORDS = 16
    """prescaled int16, two of one channel per word"""
    BYTES = 8
    """two channels per halfword: 256 * first + second"""


class Packing(Enum):
    """The way to saturate and store results."""

    BYTES = "bytes"
    HALFWORDS = "halfwords"
    PAIR_WORDS = "pair words"
    """both pixels of a channel in one word, if the common exponent is 16"""


@dataclass(frozen=True)
class Stores:
    """The places of results. `pixel_step`, `channel_step`: bytes between the pair's pixels and between channels."""

    packing: Packing
    pixel_step: int
    channel_step: int
    unsigned: bool

    @property
    def mnemonic(self) -> str:
        return {Packing.BYTES: "strb", Packing.HALFWORDS: "strh", Packing.PAIR_WORDS: "str"}[self.packing]

    @property
    def far(self) -> bool:
        """True if channels are too far apart to store a whole round of the loop from one pointer."""
        return _ROUND_CHANNELS * self.channel_step + self.pixel_step > REACH

    @property
    def saturate(self) -> str:
        return "usat" if self.unsigned else "ssat"


@dataclass(frozen=True)
class BlockShape:
    """The outputs of the blocks: `channels` of `depth` products each, with the padding of the weights included in
    `depth`."""

    depth: int
    channels: int
    density: Density
    exponent: int | None
    """the exponent E of all channels (`requantize.py`), or None if the stream has one per channel"""
    ties: bool
    left_shift: bool
    stores: Stores

    @property
    def blocks(self) -> int:
        return (self.channels + 1) // 2

    @property
    def step_depth(self) -> int:
        """Products along K in one unrolled step."""
        return 4 if self.density is Density.HALFWORDS else 8

    @property
    def steps(self) -> int:
        return self.depth // self.step_depth

    @property
    def block_bytes(self) -> int:
        """Bytes of the stream per block."""
        constants = 4 + 2 + 2 * self.ties + 2 * (self.density is Density.BYTES) + 2 * (self.exponent is None)
        weights = self.depth if self.density is Density.HALFWORDS else self.depth // 2
        return 4 * (weights + constants)


@dataclass(frozen=True)
class Unrolling:
    """The unrolling: an even number of blocks per pass of the channel loop, and steps per pass of the K loop."""

    blocks: int
    steps: int
