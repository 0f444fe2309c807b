"""The interface between npukit and an engine: an accelerator plug-in, or the core itself.

An engine takes or refuses each op, gives the cost of a tile, and lowers a tile to a call of its C wrapper with the
constants of the call. The interface is independent of TVM: the code generator turns `Call` into TIR's `call_extern`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from npukit.board.board import Board
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.tensor import Tensor


@dataclass(frozen=True)
class Address:
    """A place in a PE's memory: a C symbol and a byte offset."""

    symbol: str
    offset: int = 0


@dataclass(frozen=True)
class Operand:
    """A box of a tensor in memory: the address of the first element, and the bytes between rows and between pixels.
    `image_stride`: the bytes between images, if memory holds a part of their rows."""

    tensor: Tensor
    box: Box
    address: Address
    row_stride: int
    pixel_stride: int
    image_stride: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """The stride in bytes along each axis."""
        shape, item = self.box.shape, np.dtype(self.tensor.dtype).itemsize
        if len(shape) == 4:
            image = self.image_stride or self.tensor.shape[1] * self.row_stride
            return image, self.row_stride, self.pixel_stride, item
        outer = (self.pixel_stride * prod(shape[axis + 1 : -1]) for axis in range(len(shape) - 1))
        return (*outer, item)[: len(shape)]


@dataclass(frozen=True)
class Tile:
    """A box of an op's output to compute, and the boxes of the activations. `name`: a unique C identifier."""

    name: str
    net: Net
    op: Op
    output: Operand
    inputs: tuple[Operand, ...]
    scratch: Address | None = None
    """Scratch memory of `Cost.scratch_bytes`, 16-byte aligned, valid while the tile runs."""


@dataclass(frozen=True)
class Cost:
    """The cost of a tile: cycles of the engine, and bytes of constants and of scratch memory on the PE.

    The other fields are optional. Most are promises that save memory; npukit assumes nothing without a promise.

    - `arrangement`: memory layout of the output, if not dense. Only for a whole output whose readers expect the layout.
    - `reads_beyond`: bytes behind each input that the engine may read but does not use. The plan keeps them in memory.
    - `may_overwrite`: indices of inputs at whose address the output may begin, because every byte of the input is read
      before the output overwrites it.
    - `aliases`: indices of inputs that the output may alias element by element, also if it is computed in pieces.
    - `constants_key`: tiles of an op, or of ops that differ only in the source of their activations, have the same
      constants (except commands) if they span the same channels (the last axis) and have equal keys. None: no promise.
    - `arena`: offsets in the scratch memory, multiples of 16, of each input, then of the output. The plan places an
      operand there if no other op needs it meanwhile. The driver copies the other operands, and may overwrite the whole
      scratch memory.
    - `chained`: cycles saved by a tile's command behind another command of the same chain.
    - `accesses`: loads and stores of operands and of scratch memory by the core.
    - `streams`: True if the code receives the address of its constants, so that DRAM can supply them.
    - `commands`: number of commands, part of the constants; 0 if a driver function computes the tile instead.
    """

    cycles: int
    constant_bytes: int
    scratch_bytes: int = 0
    arrangement: Arrangement | None = None
    reads_beyond: int = 0
    may_overwrite: tuple[int, ...] = ()
    aliases: tuple[int, ...] = ()
    constants_key: str | None = None
    arena: tuple[int, ...] = ()
    accesses: int = 0
    streams: bool = True
    commands: int = 1
    chained: int = 0


@dataclass(frozen=True)
class ConstantArray:
    """An array of constants in the image. `comment`: its description in the generated C. `near`: True if start-up code
    copies the array into the memory of the program's variables."""

    symbol: str
    values: np.ndarray
    align: int = 4
    comment: str = ""
    near: bool = False


Field = int | Address | str
"""A struct member's value: a number, an address, or the name of a C constant."""


@dataclass(frozen=True)
class Struct:
    """A C struct with an initialiser, e.g. an accelerator command."""

    fields: tuple[tuple[str, Field], ...]


@dataclass(frozen=True)
class Call:
    """A call of a C function: `function(arguments)`, as `call_extern` in TIR."""

    function: str
    arguments: tuple[Field, ...]


@dataclass(frozen=True)
class Routine:
    """An assembly function, `void name(const void *, ...)`, which several tiles may share. It may write to any place.
    `pointers`: number of arguments; additional pointers stand before the last."""

    name: str
    assembly: str
    comment: str
    bytes: int
    pointers: int = 4


@dataclass(frozen=True)
class RoutineCall:
    """A call of a routine with `Routine.pointers` arguments, 0 for each unused one."""

    routine: Routine
    arguments: tuple[Field, ...]


@dataclass(frozen=True)
class Routines:
    """Routines called in sequence."""

    calls: tuple[RoutineCall, ...]


@dataclass(frozen=True)
class Commands:
    """Commands that an accelerator executes without the core. Consecutive tiles on an accelerator form a chain."""

    structs: tuple[Struct, ...]


@dataclass(frozen=True)
class Lowered:
    """A tile as code: constants, and a call, routines of the core, or commands for the accelerator's chain."""

    constants: tuple[ConstantArray, ...]
    code: Call | Routines | Commands


@dataclass(frozen=True)
class CommandFormat:
    """The C format of an accelerator's commands."""

    struct: str
    next_field: str
    tag_field: str
    align: int
    bytes: int
    run: str
    """C function that runs a chain and returns 0 or an error code: `int32_t run(const struct NAME *first)`"""
    header: str
    submit: str | None = None
    """C function that only starts a chain, if `Abilities.wait` is set: `void submit(const struct NAME *first)`"""


@dataclass(frozen=True)
class Choice:
    """One of several ways in which an accelerator can compute an op: a tiling, a schedule, a placement of weights.

    `name`: a single line for people, in the plan and in tuning records; `Op.choice` holds the name during costing and
    lowering. `keeps`: bytes per memory of the accelerator (`Abilities.memories`) that the op owns from frame to frame;
    `Op.places` holds the offsets.
    """

    name: str
    keeps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Abilities:
    """Optional abilities of an engine. Without any, an engine runs op after op while the core waits.

    - `patterns`: groups of ops that the engine may take as one. Either kinds of ops, where each op is the only reader
      of the op before, and reads it once; or a pattern over the model as a Relax module, in the form of TVM's
      `FuseOpsByPattern`: a name, a pattern, and optionally annotations and a check.
    - `memories`: bytes of each memory of the accelerator, from which `Choice.keeps` may take some.
    - `subgraphs`: True if the engine takes any connected ops as one, provided that it takes each op alone.
    - `wait`: C function that waits for all started work, `int32_t wait(void)`: returns 0 or an error code, at once if
      no work is pending. A `Call` or a chain then only starts the work.
    - `rounds_twice`: True if the engine knows no rounding but TensorFlow Lite's two. All networks then round twice.
    - `products_per_cycle`: multiply-accumulates of the accelerator at its peak, for the floors of a frame; 0: unknown.
    """

    patterns: tuple[tuple[Any, ...], ...] = ()
    memories: Mapping[str, int] = field(default_factory=dict)
    subgraphs: bool = False
    wait: str | None = None
    rounds_twice: bool = False
    products_per_cycle: int = 0

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """The patterns of op kinds."""
        return tuple(pattern for pattern in self.patterns if isinstance(pattern[1], str))

    @property
    def relax_patterns(self) -> tuple[tuple[Any, ...], ...]:
        """The patterns over the Relax module."""
        return tuple(pattern for pattern in self.patterns if not isinstance(pattern[1], str))


@dataclass(frozen=True)
class OwnPasses:
    """Compiler passes of a plug-in, named by their place between the model and C.

    - `relax`: on the imported model as a Relax module. A float model returned in QDQ form counts as quantised.
    - `quantizer`: for each int8 tensor of a float model that npukit quantises. Receives the tensor with the scales and
      zero points that npukit would choose, and the real values of a constant (else None). Returns the tensor with
      scales and zero points that the hardware supports. Constants may become int4: integers from -8 to 7.
    - `net`: on the integer network, before ops are assigned to engines.
    - `tir`: on the module of loops that TVM generates for ops without an integer form, before TVM lowers the loops.
    """

    relax: Callable[[Any], Any] | None = None
    quantizer: Callable[[Tensor, np.ndarray | None], Tensor] | None = None
    net: Callable[[Net], Net] | None = None
    tir: Callable[[Any], Any] | None = None


class Accelerator(Protocol):
    """An engine. One instance serves one board."""

    name: str
    commands: CommandFormat | None
    abilities: Abilities

    def refusal(self, net: Net, op: Op) -> str | None:
        """The reason why the op cannot run on this engine, or None."""
        ...

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        """The cost of computing a box of the op's output."""
        ...

    def choices(self, net: Net, op: Op) -> Sequence[Choice]:
        """The ways to compute an op that the engine takes; empty if there is no choice. The first way keeps nothing,
        and is the default while `Op.choice` is empty."""
        ...

    def lower(self, tile: Tile) -> Lowered:
        """The tile as code. The constants take `Cost.constant_bytes`, with or without alignment gaps. Symbols begin
        with the tile's name."""
        ...

    def sources(self, board: Board) -> tuple[Path, ...]:
        """The C driver if the board has the accelerator, otherwise the stand-in that computes the same on the core."""
        ...


def whole_cycles(net: Net, op: Op, engine: Accelerator) -> int:
    """The cycles of an engine for the whole output of an op."""
    return engine.cost(net, op, Box.whole(net.tensor(op.output).shape)).cycles


Engines = Mapping[str, Accelerator]
"""All engines of a board by name, the core included."""


class Plugin(Accelerator, Protocol):
    """An accelerator from a plug-in, npukit's own included. `docs/plug-in.md` is the reference. `abilities`, `choices`,
    `passes` (an `OwnPasses`) and `rtl` are optional. `rtl`: a folder with the device in Verilog, whose top module has
    the accelerator's name (`rtl/README.md`)."""

    version: str
    model: Path | None
    """The device model for the built-in emulator: a C file written against `device.h`, or a shared library built from
    one, with `const struct device_model NAME_device`. None if the emulator contains the device itself."""
