"""The shape of a 2x2 block, its unrolling, and the places of its results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npukit.accel.cortex_m.code.assembly import REACH

_ROUND_CHANNELS = 4
"""Channels of which the results are stored before the pointer moves on."""


class Density(Enum):
    """The order of weights in the stream."""

    HALFWORDS = 16
    """prescaled int16, two of one channel in a word"""
    BYTES = 8
    """two channels in a halfword: 256 * first + second"""


class Packing(Enum):
    """The way results are saturated and stored."""

    BYTES = "bytes"
    HALFWORDS = "halfwords"
    PAIR_WORDS = "pair words"
    """both pixels of a channel in one word, where the common exponent is 16"""


@dataclass(frozen=True)
class Stores:
    """The places of results: byte steps from one pixel of the pair to the other and from one channel to the next."""

    packing: Packing
    pixel_step: int
    channel_step: int
    unsigned: bool

    @property
    def mnemonic(self) -> str:
        return {Packing.BYTES: "strb", Packing.HALFWORDS: "strh", Packing.PAIR_WORDS: "str"}[self.packing]

    @property
    def far(self) -> bool:
        """True if channels lie too far apart for a whole turn of the loop to be stored from one pointer."""
        return _ROUND_CHANNELS * self.channel_step + self.pixel_step > REACH

    @property
    def saturate(self) -> str:
        return "usat" if self.unsigned else "ssat"


@dataclass(frozen=True)
class BlockShape:
    """The outputs of the blocks: `channels` of `depth` products each, `depth` padded by the weights."""

    depth: int
    channels: int
    density: Density
    exponent: int | None
    """E of all channels, or None if the stream brings one for each"""
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
        """The bytes of the stream that one block reads."""
        constants = 4 + 2 + 2 * self.ties + 2 * (self.density is Density.BYTES) + 2 * (self.exponent is None)
        weights = self.depth if self.density is Density.HALFWORDS else self.depth // 2
        return 4 * (weights + constants)


@dataclass(frozen=True)
class Unrolling:
    """The code written out: an even number of blocks in a turn of the channel loop, steps in one of the K loop."""

    blocks: int
    steps: int
