"""The interface of an engine, against which every accelerator plug-in, and the core itself, is written.

An engine says which ops it takes (or why not), what a tile costs, and lowers a tile to a call of its C wrapper with the
constants the call needs. Nothing here knows TVM: the code generator turns `Call` into TIR's `call_extern`.
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
    """A box of a tensor in memory: where its first element lies, and the bytes between rows and between pixels."""

    tensor: Tensor
    box: Box
    address: Address
    row_stride: int
    pixel_stride: int

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours along each axis."""
        shape, item = self.box.shape, np.dtype(self.tensor.dtype).itemsize
        if len(shape) == 4:
            return self.tensor.shape[1] * self.row_stride, self.row_stride, self.pixel_stride, item
        outer = (self.pixel_stride * prod(shape[axis + 1 : -1]) for axis in range(len(shape) - 1))
        return (*outer, item)[: len(shape)]


@dataclass(frozen=True)
class Tile:
    """A box of an op's output to compute, and its activations' boxes. `name` is a C identifier, unique in the image."""

    name: str
    net: Net
    op: Op
    output: Operand
    inputs: tuple[Operand, ...]
    scratch: Address | None = None
    """Memory of `Cost.scratch_bytes`, 16-byte aligned, while the tile runs."""


@dataclass(frozen=True)
class Cost:
    """The cost of a tile: cycles of the engine, and bytes of constants and of scratch memory on its PE.

    `arrangement`: how the output lies, if not densely; only for a whole output whose readers know.
    `reads_beyond`: bytes behind its inputs that may be read, never used.
    `may_overwrite`: numbers of inputs where the output may begin, as they have been read by then.
    `aliases`: numbers of inputs on which the output may lie element by element, also if it is computed in pieces.
    `constants_key`: tiles of an op, or of ops that differ only in where their activations come from, that span the
    same channels (the last axis) and have equal keys have the same constants, but for their commands; None promises
    nothing.
    `arena`: offsets in the scratch memory, multiples of 16, for each input, then for the output. The plan puts there
    what nothing else needs meanwhile; the driver copies the rest, and may overwrite all of it.
    `accesses`: times that the core reads or writes its operands and its scratch memory.
    `streams`: the constants may be anywhere, as what computes the tile is told where: they can come from DRAM.
    `called`: a function of the driver computes the tile, though the accelerator has commands: none is a constant.
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
    called: bool = False


@dataclass(frozen=True)
class ConstantArray:
    """Data the image carries. `comment` tells a reader of the C what it is.

    What is `near` is copied at start-up into the memory of the program's variables.
    """

    symbol: str
    values: np.ndarray
    align: int = 4
    comment: str = ""
    near: bool = False


Field = int | Address | str
"""A struct member's value: a number, an address, or the name of a C constant."""


@dataclass(frozen=True)
class Struct:
    """A C struct with its initialiser, e.g. one accelerator command."""

    fields: tuple[tuple[str, Field], ...]


@dataclass(frozen=True)
class Call:
    """A call of a C function: `function(arguments)`, as `call_extern` in TIR."""

    function: str
    arguments: tuple[Field, ...]


@dataclass(frozen=True)
class Routine:
    """A function in assembly, `void name(void *, void *, void *, const void *)`; tiles may share it. Some have more
    pointers before the last."""

    name: str
    assembly: str
    comment: str
    bytes: int
    pointers: int = 4


@dataclass(frozen=True)
class RoutineCall:
    """A call of a routine with four arguments, or as many as it has; 0 where it takes fewer."""

    routine: Routine
    arguments: tuple[Field, ...]


@dataclass(frozen=True)
class Routines:
    """Routines called one after the other."""

    calls: tuple[RoutineCall, ...]


@dataclass(frozen=True)
class Commands:
    """Commands that an accelerator runs by itself. Tiles that follow each other on one accelerator become one chain."""

    structs: tuple[Struct, ...]


@dataclass(frozen=True)
class Lowered:
    """A tile as code: constants, and a call, or routines of its own, or commands for the accelerator's chain."""

    constants: tuple[ConstantArray, ...]
    code: Call | Routines | Commands


@dataclass(frozen=True)
class CommandFormat:
    """The look of an accelerator's commands in C."""

    struct: str
    next_field: str
    tag_field: str
    align: int
    bytes: int
    run: str
    """C function that runs a chain and returns 0 or an error code: `int32_t run(const struct NAME *first)`"""
    header: str
    submit: str | None = None
    """C function that only starts a chain, if the engine has a `wait`: `void submit(const struct NAME *first)`"""


@dataclass(frozen=True)
class Choice:
    """One way of several in which an accelerator can compute an op: its own tiles, a schedule, a place of weights.

    `name`: one line for people, in the plan and in tuning records; `Op.choice` has it where the op is costed and
    lowered. `keeps`: bytes in memories of the accelerator's own (`Abilities.memories`) that are the op's alone from
    frame to frame; `Op.places` says where they begin.
    """

    name: str
    keeps: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Abilities:
    """Abilities of an engine besides running op after op while the core waits.

    `patterns`: kinds of ops that it may take as one, each reading what the one before makes and nothing else reads.
    Or a pattern over the model as a Relax module, in what TVM's `FuseOpsByPattern` takes: a name, a pattern, and
    perhaps annotations and a check.
    `memories`: the bytes of each memory of its own of which `Choice.keeps` may have some.
    `subgraphs`: it takes any connected ops as one that it takes one by one.
    `wait`: a `Call` or a chain only starts the work, and this function waits for all that was started:
    `int32_t wait(void)`, 0 or an error code; at once if there is nothing to wait for.
    """

    patterns: tuple[tuple[Any, ...], ...] = ()
    memories: Mapping[str, int] = field(default_factory=dict)
    subgraphs: bool = False
    wait: str | None = None

    @property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """The patterns that are kinds of ops."""
        return tuple(pattern for pattern in self.patterns if isinstance(pattern[1], str))

    @property
    def relax_patterns(self) -> tuple[tuple[Any, ...], ...]:
        """The patterns over the Relax module."""
        return tuple(pattern for pattern in self.patterns if not isinstance(pattern[1], str))


@dataclass(frozen=True)
class OwnPasses:
    """Passes of a plug-in's own, each at its place on the way from the model to C.

    `relax`: of the model as a Relax module, as imported. One that comes back in QDQ form has been quantised by it.
    `quantizer`: of each int8 tensor of a float model that npukit quantises, with the scales and zero points that
    npukit would choose, to be changed to those that the hardware can have; and of a constant's real values, or None.
    Constants may become int4: integers from -8 to 7.
    `net`: of the integer network, before its ops get engines.
    `tir`: of the loops that TVM makes of what has no integer op, as a module, before TVM lowers them.
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
        """Why this op cannot run here, or None if it can."""
        ...

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        """The cost of computing this box of the op's output."""
        ...

    def choices(self, net: Net, op: Op) -> Sequence[Choice]:
        """The ways in which it can compute an op that it takes; none if there is nothing to choose. The first keeps
        nothing, and is what an op gets whose `choice` is empty."""
        ...

    def lower(self, tile: Tile) -> Lowered:
        """The tile as code. Its constants are as many bytes as `cost` said, its symbols begin with the tile's name."""
        ...

    def sources(self, board: Board) -> tuple[Path, ...]:
        """The C driver for a board that has the accelerator, or its stand-in on the core for one that has not."""
        ...


Engines = Mapping[str, Accelerator]
"""The engines of a board, the core among them, by name."""


class Plugin(Accelerator, Protocol):
    """An accelerator that comes from a plug-in, npukit's own included. `docs/accelerators.md` leads through it.

    It may leave out `abilities`, `choices`, and `passes`, which are `OwnPasses`, if it has none.
    """

    version: str
    model: Path | None
    """The built-in emulator's model of the device: a C file written against `device.h`, or a shared library made of
    one, that has `const struct device_model NAME_device`. None where the emulator has the device itself."""
