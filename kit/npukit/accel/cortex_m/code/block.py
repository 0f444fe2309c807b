"""The 2x2 block: two pixels times two output channels, accumulated over the depth K in four registers.

Ten instructions make sixteen products: two four-word loads and eight dual multiply-accumulates. Even and odd blocks
alternate. Even blocks read the widened pixels forwards and odd ones backwards, so the pixel pointer needs no reset.
Each block loads the next block's biases together with its own constants, into the next block's accumulators.

r0 points into the widened pixels, r1 into the stream of weights and constants, sp to the frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from npukit.accel.cortex_m.code.assembly import INDEX_REACH, REACH, Assembly

FRAME_OUTPUT, FRAME_STREAM_END, FRAME_PIXELS_END, FRAME_PIXELS = range(0, 16, 4)
"""Offsets in the stack frame."""
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
    """The outputs of the blocks: `channels` of `depth` products each, padding of the weights included."""

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


@dataclass(frozen=True)
class Registers:
    """Register assignment of one kind of block. Accumulators are named by pixel and channel."""

    p0c0: str
    p0c1: str
    p1c0: str
    p1c1: str
    pixels: tuple[str, str, str, str]
    weights: tuple[str, str, str, str]
    multipliers: tuple[str, str]
    addends: tuple[str, str]
    ties: tuple[str, str]
    temporary: str
    shifts: tuple[str, str]
    next_biases: tuple[str, str]
    output: str
    spare: str
    load: str

    @property
    def accumulators(self) -> tuple[tuple[str, int], ...]:
        """Each accumulator with its channel."""
        return (self.p0c0, 0), (self.p1c0, 0), (self.p0c1, 1), (self.p1c1, 1)


EVEN = Registers(
    *("r2", "r3", "r4", "r5"),
    pixels=("r6", "r7", "r8", "r9"),
    weights=("r10", "r11", "r12", "lr"),
    multipliers=("r6", "r7"),
    addends=("r8", "r9"),
    ties=("r10", "r11"),
    temporary="r12",
    shifts=("r12", "lr"),
    next_biases=("r10", "r11"),
    output="r12",
    spare="lr",
    load="ldmia",
)
ODD = Registers(
    *("r10", "r11", "r12", "lr"),
    pixels=("r2", "r3", "r4", "r5"),
    weights=("r6", "r7", "r8", "r9"),
    multipliers=("r4", "r5"),
    addends=("r6", "r7"),
    ties=("r2", "r3"),
    temporary="r8",
    shifts=("r8", "r9"),
    next_biases=("r2", "r3"),
    output="r8",
    spare="r9",
    load="ldmdb",
)
KINDS = (EVEN, ODD)


def constants_order(shape: BlockShape, kind: int) -> tuple[tuple[str, ...], ...]:
    """The loads at a block's end, as the names of the words in each load."""
    before = ("shift",) if shape.density is Density.BYTES else ()
    after = ("exponent",) if shape.exponent is None else ()
    own = ("multiplier", "addend")
    if shape.ties or (before and after):
        ties = (("tie", *own) if kind else (*own, "tie")) if shape.ties else own
        return tuple(names for names in (before, ties, after, ("next bias",)) if names)
    last = before or after
    return (("next bias", *own, *last) if kind else (*own, "next bias", *last),)


def emit_blocks(asm: Assembly, shape: BlockShape, unrolling: Unrolling) -> None:
    """Code for all output channels of one pixel pair. r0 and r1 point to the beginning of pixels and stream."""
    rounds, tail = rounds_and_tail(shape, unrolling)
    asm.emit("ldmia r1!, {r2, r3}")
    if rounds:
        with asm.loop(rounds, closing=(f"cmp r1, {ODD.spare}",)):
            for index in range(unrolling.blocks):
                last = index == unrolling.blocks - 1
                _emit_block(asm, shape, unrolling, index)
                _emit_stores(asm, shape, index, closes=last and rounds > 1, advances=last and (rounds > 1 or tail > 0))
    for index in range(tail):
        _emit_block(asm, shape, unrolling, index)
        _emit_stores(asm, shape, index, whole=index < tail - 1 or shape.channels % 2 == 0)


def rounds_and_tail(shape: BlockShape, unrolling: Unrolling) -> tuple[int, int]:
    """Rounds of the channel loop, and the remaining blocks, a half-used last block among them."""
    rounds = shape.channels // 2 // unrolling.blocks
    return rounds, shape.blocks - rounds * unrolling.blocks


def looped_stream_bytes(shape: BlockShape, unrolling: Unrolling) -> int:
    """Bytes of the stream read up to the end of the channel loop."""
    rounds, _ = rounds_and_tail(shape, unrolling)
    return 8 + rounds * unrolling.blocks * shape.block_bytes


def _emit_block(asm: Assembly, shape: BlockShape, unrolling: Unrolling, index: int) -> None:
    registers = KINDS[index % 2]
    asm.comment("two channels of two pixels: products")
    _emit_products(asm, shape, unrolling, registers)
    _emit_requantization(asm, shape, registers, index % 2)


def _emit_products(asm: Assembly, shape: BlockShape, unrolling: Unrolling, registers: Registers) -> None:
    step = _STEPS[shape.density]
    peeled, unrolled = split_steps(shape.steps, unrolling.steps)
    for index in range(peeled):
        step(asm, registers, index == 0)
    if peeled < shape.steps:
        end = FRAME_PIXELS_END if registers.load == "ldmia" else FRAME_PIXELS
        closing = (f"ldr {registers.pixels[0]}, [sp, #{end}]", f"cmp r0, {registers.pixels[0]}")
        with asm.loop((shape.steps - peeled) // unrolled, closing=closing):
            for _ in range(unrolled):
                step(asm, registers, False)


def split_steps(steps: int, most: int) -> tuple[int, int]:
    """The steps before the K loop, and per pass of the loop: fewest passes first, then fewest steps before the loop."""
    if steps <= most:
        return steps, 1
    choices = [(p, u) for p in range(1, 5) for u in range(1, most + 1) if (steps - p) % u == 0 and steps - p > u]
    return min(choices, key=lambda c: (steps - c[0]) // c[1] + 0.1 * c[0])


def _emit_step16(asm: Assembly, registers: Registers, first: bool) -> None:
    x, w, r = registers.pixels, registers.weights, registers
    asm.emit(f"{r.load} r0!, {{{', '.join(x)}}}", f"ldmia r1!, {{{', '.join(w)}}}")
    for pair in (0, 1):
        x0, x1, wa, wb = x[2 * pair], x[2 * pair + 1], w[2 * pair], w[2 * pair + 1]
        fresh = first and pair == 0
        asm.emit(f"smlad {r.p1c0}, {x1}, {wa}, {r.p0c0 if fresh else r.p1c0}", f"smlad {r.p0c0}, {x0}, {wa}, {r.p0c0}")
        asm.emit(f"smlad {r.p1c1}, {x1}, {wb}, {r.p0c1 if fresh else r.p1c1}", f"smlad {r.p0c1}, {x0}, {wb}, {r.p0c1}")


def _emit_step8(asm: Assembly, registers: Registers, first: bool) -> None:
    """Products for sums of 256 * first + second in the c0 accumulators, and of second alone in the c1 accumulators."""
    x, r = registers.pixels, registers
    asm.emit(f"ldmia r1!, {{{', '.join(r.weights)}}}")
    for index, w in enumerate(r.weights):
        if index % 2 == 0:
            asm.emit(f"{r.load} r0!, {{{', '.join(x)}}}")
        x0, x1 = x[index % 2 * 2], x[index % 2 * 2 + 1]
        fresh = first and index == 0
        asm.emit(f"smlad {r.p1c0}, {x1}, {w}, {r.p0c0 if fresh else r.p1c0}", f"smlad {r.p0c0}, {x0}, {w}, {r.p0c0}")
        asm.emit(f"sxtb16 {w}, {w}")
        asm.emit(f"smlad {r.p1c1}, {x1}, {w}, {r.p0c1 if fresh else r.p1c1}", f"smlad {r.p0c1}, {x0}, {w}, {r.p0c1}")


_STEPS = {Density.HALFWORDS: _emit_step16, Density.BYTES: _emit_step8}


def _emit_requantization(asm: Assembly, shape: BlockShape, r: Registers, kind: int) -> None:
    asm.comment("times the multipliers, to 8 bits")
    if shape.density is Density.BYTES:
        asm.emit(f"sub {r.p0c0}, {r.p0c0}, {r.p0c1}", f"sub {r.p1c0}, {r.p1c0}, {r.p1c1}")
    for names in constants_order(shape, kind):
        registers = {
            "multiplier": r.multipliers,
            "addend": r.addends,
            "tie": r.ties,
            "shift": r.shifts,
            "exponent": r.shifts,
            "next bias": r.next_biases,
        }
        asm.emit(f"ldmia r1!, {{{', '.join(register for name in names for register in registers[name])}}}")
        if "shift" in names:
            first = "lsl" if shape.left_shift else "asr"
            for a, channel in r.accumulators:
                asm.emit(f"{'lsl' if channel else first} {a}, {a}, {r.shifts[channel]}")
        if "multiplier" in names:
            _emit_multiplications(asm, shape, r)
        if "exponent" in names:
            asm.emit(*(f"asr {a}, {a}, {r.shifts[channel]}" for a, channel in r.accumulators))
    if shape.stores.packing is not Packing.PAIR_WORDS:
        shift = f", asr #{shape.exponent}" if shape.exponent else ""
        asm.emit(*(f"{shape.stores.saturate} {a}, #8, {a}{shift}" for a, _ in r.accumulators))


def _emit_multiplications(asm: Assembly, shape: BlockShape, r: Registers) -> None:
    for accumulator, channel in r.accumulators:
        addend = r.addends[channel]
        if shape.ties:
            asm.emit(f"and {r.temporary}, {r.ties[channel]}, {accumulator}, asr #31")
            asm.emit(f"sub {r.temporary}, {addend}, {r.temporary}")
            addend = r.temporary
        asm.emit(f"smmla {accumulator}, {accumulator}, {r.multipliers[channel]}, {addend}")


def _emit_stores(
    asm: Assembly, shape: BlockShape, index: int, *, closes: bool = False, advances: bool = False, whole: bool = True
) -> None:
    """Store a block's results. `closes`: load the stream's end for the channel loop. `advances`: advance the output
    pointer. The output pointer in the frame points one channel before the first of the round."""
    r, stores = KINDS[index % 2], shape.stores
    if stores.far:
        asm.emit(f"ldr {r.output}, [sp]")
        for channel in (0, 1) if whole else (0,):
            asm.add(r.output, r.output, stores.channel_step, r.spare)
            _emit_channel(asm, stores, r, channel, 0)
        asm.emit(f"str {r.output}, [sp]")
        if closes:
            asm.emit(f"ldr {r.spare}, [sp, #{FRAME_STREAM_END}]")
        return
    asm.emit(f"ldrd {r.output}, {r.spare}, [sp]" if closes else f"ldr {r.output}, [sp]")
    first = (2 * index + 1) * stores.channel_step
    _emit_channel(asm, stores, r, 0, first)
    if whole:
        _emit_channel(asm, stores, r, 1, first + stores.channel_step, moves=advances)
    if advances:
        asm.emit(f"str {r.output}, [sp]")


def _emit_channel(asm: Assembly, stores: Stores, r: Registers, channel: int, offset: int, moves: bool = False) -> None:
    """Store the two pixels of a channel. With `moves` the output pointer ends on the channel."""
    first, second = ((r.p0c0, r.p1c0), (r.p0c1, r.p1c1))[channel]
    if stores.packing is Packing.PAIR_WORDS:
        asm.emit(f"pkhtb {first}, {second}, {first}, asr #16", f"{stores.saturate}16 {first}, #8, {first}")
    else:
        asm.emit(f"{stores.mnemonic} {second}, [{r.output}, #{offset + stores.pixel_step}]")
    indexed = moves and offset <= INDEX_REACH
    asm.emit(f"{stores.mnemonic} {first}, [{r.output}, #{offset}]{'!' if indexed else ''}")
    if moves and not indexed:
        asm.add(r.output, r.output, offset, first)
