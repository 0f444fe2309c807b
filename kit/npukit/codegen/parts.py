"""A PE's tiles, each lowered by its engine, with the addresses of their operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npukit.accel.interface import Accelerator, Address, Call, Commands, Lowered, Operand, Routines, Tile
from npukit.codegen.constants import Callee, Fields, Number, Record
from npukit.codegen.frame import KernelStep
from npukit.codegen.names import Names
from npukit.codegen.streamed import DramPiece, streamed_piece, with_constants_in
from npukit.codegen.tir.kernels import describe
from npukit.errors import NpukitError
from npukit.net.c_code.function import C_TYPES
from npukit.net.net import CORE, Net
from npukit.plan.emit.replay import layers_onward
from npukit.plan.ir.plan import Buffer, PePlan, View
from npukit.plan.predict.memory import aligned
from npukit.structs import WORD


@dataclass(frozen=True)
class Part:
    """A tile lowered by its engine. `op`: number of the op in the net. `layer`: number of the tile on this PE."""

    tile: Tile
    engine: Accelerator
    lowered: Lowered
    op: int
    layer: int
    onward: int
    """The number of layers from this part's layer to the next part's."""
    submitted: bool = False
    streamed: DramPiece | None = None
    """The part's constants, if streamed instead of in the image."""
    prototype: str | None = None
    """The prototype of the plug-in's function that the part calls."""

    @property
    def chained(self) -> bool:
        return isinstance(self.lowered.code, Commands)

    @property
    def from_tir(self) -> bool:
        """True if the core computes the tile with a kernel generated from TIR."""
        return self.engine.name == CORE and isinstance(self.lowered.code, Call)


def lower_parts(net: Net, pe: PePlan, arena: Arena, engines: Mapping[str, Accelerator]) -> list[Part]:
    """The parts of all compute steps."""
    names = Names()
    places = {op.name: index for index, op in enumerate(net.ops)}
    parts = []
    for step, layer, onward in zip(pe.computes(), pe.tile_numbers, layers_onward(pe), strict=True):
        inputs = tuple(arena.operand(view) for view in step.inputs)
        op = places[step.op]
        scratch = arena.scratch(step.scratch) if step.scratch else None
        tile = Tile(names.identifier(step.op), net, net.ops[op], arena.operand(step.output), inputs, scratch)
        if step.engine not in engines:
            raise NpukitError(f"{step.op}: the plan wants the engine {step.engine}, which the board does not have")
        engine = engines[step.engine]
        lowered, streamed = engine.lower(tile), None
        prototype = _prototype(lowered) if engine.name != CORE else None
        if step.constants and step.streamed:
            streamed = streamed_piece(step.streamed, lowered.constants)
            lowered = with_constants_in(arena.scratch(step.constants), lowered)
        parts.append(Part(tile, engine, lowered, op, layer, onward, step.submitted, streamed, prototype))
    return parts


def _prototype(lowered: Lowered) -> str | None:
    """The prototype of a plug-in's function, before constants move: the same for streamed constants."""
    code = lowered.code
    if not isinstance(code, Call):
        return None
    types = {array.symbol: f"const {C_TYPES[str(array.values.dtype)]} *" for array in lowered.constants}
    arguments = (types.get(a.symbol, "void *") if isinstance(a, Address) else "int32_t" for a in code.arguments)
    return f"int32_t {code.function}({', '.join(arguments) or 'void'});"


def commands_of(part: Part) -> list[str]:
    """The symbols of a part's commands."""
    code = part.lowered.code
    if not isinstance(code, Commands):
        return []
    base = f"{part.tile.name}_command"
    return [base] if len(code.structs) == 1 else [f"{base}_{i}" for i in range(len(code.structs))]


def chain_records(run: list[Part]) -> Iterator[Record]:
    """The linked commands of successive parts on one accelerator."""
    form = run[0].engine.commands
    symbols = [symbol for part in run for symbol in commands_of(part)]
    following = dict(pairwise(symbols))
    for part in run:
        code = part.lowered.code
        assert isinstance(code, Commands)
        assert form is not None
        for symbol, struct in zip(commands_of(part), code.structs, strict=True):
            link = link_to(form.next_field, following.get(symbol))
            fields = (*link, (form.tag_field, part.op), *struct.fields)
            ends = "" if link else ", ends a chain"
            comment = describe(part.tile, part.engine.name) + ends
            yield Record(symbol, form.struct, (fields,), form.align, form.bytes, comment)


def link_to(field: str, symbol: str | None) -> Fields:
    """The link of a chain, as a struct's fields. Empty at the end of the chain."""
    return ((field, Address(symbol)),) if symbol else ()


def kernel_step(part: Part) -> KernelStep:
    """The calls of a part without commands."""
    code = part.lowered.code
    if isinstance(code, Routines):
        calls = tuple(Call(call.routine.name, call.arguments) for call in code.calls)
        return KernelStep(calls, part.layer, checked=False)
    assert isinstance(code, Call)
    return KernelStep((code,), part.layer, part.engine.name != CORE, part.engine.abilities.wait, part.submitted)


def callees_of(part: Part) -> list[Callee]:
    """The functions that a part calls, in a program whose table holds the arguments."""
    step, routines = kernel_step(part), isinstance(part.lowered.code, Routines)
    wait = None if step.submitted else step.wait
    return [
        Callee(each.function, tuple(routines or isinstance(a, Address) for a in each.arguments), step.checked, wait)
        for each in step.calls
    ]


def arguments_of(part: Part) -> Record:
    """The arguments of all calls of a part, in order."""
    given = [value for call in kernel_step(part).calls for value in call.arguments]
    words = (Number(value) if isinstance(value, Address) else value for value in given)
    rows: tuple[Fields, ...] = tuple((("word", word),) for word in words)
    comment = f"arguments of {part.tile.name}"
    return Record(f"{part.tile.name}_arguments", "net_argument", rows, WORD, WORD, comment, listed=True)


class Arena:
    """The buffers of one PE, with the C name of each buffer's offset. `bytes`: the size within the first bank."""

    def __init__(self, net: Net, pe: PePlan, places: Sequence[str] = ()) -> None:
        """`places`: the C names of the buffers, if taken from another PE."""
        names = Names()
        self._net = net
        ends = (aligned(buffer.offset + buffer.bytes) for buffer in pe.buffers)
        self.bytes = max((end for end in ends if not pe.memory.banks or end <= pe.memory.activations), default=0)
        self.buffers = {buffer.name: buffer for buffer in pe.buffers}
        named = places or [f"at_{names.identifier(buffer.name)}" for buffer in pe.buffers]
        self.offsets = dict(zip(self.buffers, named, strict=True))
        self._by_place = dict(zip(named, self.buffers.values(), strict=True))

    def of_twin(self, pe: PePlan) -> Arena:
        """The buffers of a PE with the same layout, under the same C names."""
        return Arena(self._net, pe, tuple(self.offsets.values()))

    def operand(self, view: View) -> Operand:
        """The operand of a view: a box of a tensor in a buffer."""
        buffer = self.buffers[view.buffer]
        tensor = self._net.tensor(buffer.tensor)
        return buffer.operand(tensor, view.box, self.offsets[buffer.name])

    def scratch(self, name: str) -> Address:
        return Address(self.offsets[name])

    def place(self, buffer: Buffer) -> str:
        """The C name of the buffer's offset."""
        return self.offsets[buffer.name]

    def of_place(self, name: str) -> Buffer:
        """The buffer whose offset has this C name."""
        return self._by_place[name]
