"""A wrapper that checks every answer of a plug-in. An error names the plug-in and the op."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from npukit.accel import interface
from npukit.board.board import Board
from npukit.errors import NpukitError, raised
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.table import SPECS

Answer = TypeVar("Answer")

DTYPES = ("int8", "uint8", "int16", "int32", "int64", "float32")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def _rtl_of(plugin: interface.Plugin) -> Path | None:
    """The folder of the plug-in's Verilog, or None."""
    folder: Path | None = getattr(plugin, "rtl", None)
    if folder is not None and not Path(folder).is_dir():
        raise NpukitError(f"the plug-in {plugin.name} names a folder of RTL that is not there: {folder}")
    return folder


class Checked:
    """The checked plug-in of the accelerator `name`."""

    def __init__(self, plugin: interface.Plugin, name: str) -> None:
        self._plugin = plugin
        self._code = code_of(type(plugin))
        self.name = name
        missing = [each for each in _MEMBERS if not hasattr(plugin, each)]
        if missing:
            raise NpukitError(f"the plug-in {name} has no `{missing[0]}`", tries=[_INTERFACE])
        if plugin.name != name:
            fact = f"the plug-in {name} is named {plugin.name}"
            raise NpukitError(fact, tries=["the same name in plug-in and board file"])
        if plugin.model is not None and not Path(plugin.model).is_file():
            raise NpukitError(f"the plug-in {name} names a model that is not there: {plugin.model}", tries=[_INTERFACE])
        self.version, self.commands, self.model = str(plugin.version), plugin.commands, plugin.model
        self.rtl = _rtl_of(plugin)
        abilities = getattr(plugin, "abilities", interface.Abilities())
        fault = _fault_of_abilities(abilities, plugin.commands)
        if fault:
            raise NpukitError(f"the plug-in {name} has wrong `abilities`: {fault}", tries=[_INTERFACE])
        self.abilities = abilities
        own = getattr(self._plugin, "passes", interface.OwnPasses())
        if not isinstance(own, interface.OwnPasses):
            raise NpukitError(f"the plug-in {name} has wrong `passes`: {own!r} is no OwnPasses", tries=[_INTERFACE])
        self.passes = interface.OwnPasses(
            *(made and partial(self._run, made, place) for place, made in vars(own).items())
        )

    def _run(self, made: Callable[..., Any], place: str, given: Any, *more: Any) -> Any:
        try:
            passed = made(given, *more)
        except Exception as error:
            what = f"the plug-in {self.name} fails in its pass `{place}`: {raised(error, self._code)}"
            raise NpukitError(what, tries=["--engine cpu"]) from error
        if type(passed) is not type(given):
            raise NpukitError(f"the plug-in {self.name} makes {type(passed).__name__} in its pass `{place}`")
        return passed

    def refusal(self, net: Net, op: Op) -> str | None:
        reason = self._ask(op, "refusal", lambda: self._plugin.refusal(net, op))
        if reason is not None and (not isinstance(reason, str) or not reason.strip()):
            raise self._wrong(op, f"refuses with {reason!r}, which is no reason in words")
        return reason

    def cost(self, net: Net, op: Op, output: Box) -> interface.Cost:
        cost = self._ask(op, "cost", lambda: self._plugin.cost(net, op, output))
        if fault := _fault_of_cost(cost) or _fault_of_arena(cost, len([*net.activations(op)])):
            raise self._wrong(op, f"says for {output} {fault}")
        return cost

    def choices(self, net: Net, op: Op) -> Sequence[interface.Choice]:
        if not hasattr(self._plugin, "choices"):
            return ()
        choices = self._ask(op, "choices", lambda: tuple(self._plugin.choices(net, op)))
        fault = next(_faults_of_choices(choices, self.abilities.memories), None)
        if fault:
            raise self._wrong(op, f"has choices that make no sense: {fault}")
        return choices

    def lower(self, tile: interface.Tile) -> interface.Lowered:
        lowered = self._ask(tile.op, "lower", lambda: self._plugin.lower(tile))
        fault = next(_faults(tile, lowered, self.commands), None)
        if fault is None:
            fault = _broken_promise(lowered, self.cost(tile.net, tile.op, tile.output.box), self.commands)
        if fault:
            raise self._wrong(tile.op, f"lowers {tile.output.box} to nonsense: {fault}")
        return lowered

    def sources(self, board: Board) -> tuple[Path, ...]:
        try:
            sources = tuple(self._plugin.sources(board))
        except Exception as error:
            fact = f"the plug-in {self.name} fails in `sources`: {raised(error, self._code)}"
            raise NpukitError(fact, tries=[_INTERFACE]) from error
        absent = next((path for path in sources if not Path(path).is_file()), None)
        if absent is not None:
            raise NpukitError(f"the plug-in {self.name} names a source that is not there: {absent}")
        return sources

    def _ask(self, op: Op, what: str, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except NpukitError:
            raise
        except Exception as error:
            raise self._wrong(op, f"fails in `{what}`: {raised(error, self._code)}") from error

    def _wrong(self, op: Op, what: str) -> NpukitError:
        return NpukitError(
            f"the plug-in {self.name} is wrong about {op.name} ({op.title}): it {what}",
            tries=[f"a plug-in newer than {self.version}", "--engine cpu"],
        )


def code_of(made: object) -> Path:
    """The source file of a plug-in's class or maker, or its package's folder; `os.devnull` if unknown."""
    try:
        file = Path(inspect.getfile(made))  # pyright: ignore[reportArgumentType]
    except (TypeError, OSError):
        return Path(os.devnull)
    return file.parent if (file.parent / "__init__.py").is_file() else file


_MEMBERS = ("name", "version", "commands", "model", "refusal", "cost", "lower", "sources")
_INTERFACE = "kit/npukit/accel/interface.py says what a plug-in has"


def _fault_of_abilities(abilities: Any, commands: interface.CommandFormat | None) -> str | None:
    if not isinstance(abilities, interface.Abilities):
        return f"{abilities!r} is no Abilities"
    if any(isinstance(pattern, str) or len(pattern) < SHORTEST_PATTERN for pattern in abilities.patterns):
        return "a pattern is a tuple of two kinds of op or more, or of a name and a pattern of Relax's"
    strange = [kind for pattern in abilities.chains for kind in pattern if kind not in SPECS]
    if strange:
        return f"a pattern has {strange[0]!r}, which is no kind of op"
    if not all(_IDENTIFIER.fullmatch(name) and size > 0 for name, size in abilities.memories.items()):
        return f"its memories are {dict(abilities.memories)}, not sizes by a name that C could have"
    if commands and (commands.submit is None) != (abilities.wait is None):
        return "a chain is started with `submit` if and only if there is a `wait`"
    return None


SHORTEST_PATTERN = 2


def _faults_of_choices(choices: Sequence[Any], memories: Mapping[str, int]) -> Iterator[str]:
    for each in choices:
        if not isinstance(each, interface.Choice) or not each.name.strip() or len(each.name.splitlines()) > 1:
            yield f"{each!r} is no Choice with a name of one line"
            return
        strange = [name for name, size in each.keeps.items() if name not in memories or size <= 0]
        if strange:
            yield f"{each.name!r} keeps {each.keeps[strange[0]]!r} bytes of {strange[0]!r}; memories: {dict(memories)}"
    if len({each.name for each in choices}) < len(choices):
        yield "two have one name"
    if choices and choices[0].keeps:
        yield f"the first, {choices[0].name!r}, keeps something"


def _fault_of_cost(cost: Any) -> str | None:
    if not isinstance(cost, interface.Cost):
        return f"a cost of {cost!r}"
    for what in ("cycles", "constant_bytes", "scratch_bytes"):
        value = getattr(cost, what)
        if not isinstance(value, int | np.integer) or value < 0:
            return f"{what} = {value!r}"
    return None


def _fault_of_arena(cost: interface.Cost, inputs: int) -> str | None:
    if cost.arena and len(cost.arena) != inputs + 1:
        return f"an arena for {len(cost.arena)} operands, the op has {inputs + 1}"
    outside = [place for place in cost.arena if place % ARENA_STEP or not 0 <= place < cost.scratch_bytes]
    return f"an operand at {outside[0]} of {cost.scratch_bytes} bytes" if outside else None


ARENA_STEP = 16
"""Alignment in bytes of every buffer in a PE's memory."""


def _faults(tile: interface.Tile, lowered: Any, commands: interface.CommandFormat | None) -> Iterator[str]:
    """Faults of a lowering that prevent a translation to C."""
    if not isinstance(lowered, interface.Lowered):
        yield f"{lowered!r} is not a Lowered"
        return
    for array in lowered.constants:
        yield from _faults_of_array(tile, array)
    yield from _faults_of_code(lowered.code, commands)
    places = [operand.address for operand in (tile.output, *tile.inputs)] + ([tile.scratch] if tile.scratch else [])
    sizes: dict[str, int | None] = {place.symbol: None for place in places}
    sizes |= {array.symbol: array.values.nbytes for array in lowered.constants}
    for field in _fields(lowered.code):
        if isinstance(field, interface.Address):
            yield from _faults_of_address(field, sizes)


def _faults_of_array(tile: interface.Tile, array: Any) -> Iterator[str]:
    if not isinstance(array, interface.ConstantArray) or not isinstance(array.values, np.ndarray):
        yield f"{array!r} is not a ConstantArray of a numpy array"
    elif str(array.values.dtype) not in DTYPES:
        yield f"{array.symbol} is of {array.values.dtype}, C gets {', '.join(DTYPES)}"
    elif not _IDENTIFIER.fullmatch(array.symbol) or not array.symbol.startswith(f"{tile.name}_"):
        yield f"the constant {array.symbol} must be a C name that begins with {tile.name}_"
    elif array.align <= 0 or array.align & (array.align - 1):
        yield f"{array.symbol} is aligned to {array.align}, no power of two"


def _faults_of_code(code: Any, commands: interface.CommandFormat | None) -> Iterator[str]:
    if isinstance(code, interface.Commands):
        if commands is None:
            yield "commands, but the plug-in has no command format"
        if not code.structs:
            yield "no commands"
    elif not isinstance(code, interface.Call):
        yield f"{code!r} is neither a Call nor Commands"
    elif not _IDENTIFIER.fullmatch(code.function):
        yield f"{code.function!r} is no name of a C function"


def _fields(code: Any) -> Iterator[interface.Field]:
    if isinstance(code, interface.Call):
        yield from code.arguments
    elif isinstance(code, interface.Commands):
        yield from (value for struct in code.structs for _, value in struct.fields)


def _faults_of_address(address: interface.Address, sizes: Mapping[str, int | None]) -> Iterator[str]:
    """Faults of an address. `sizes`: bytes of each symbol; None for buffers that the plan places."""
    if address.symbol not in sizes:
        yield f"{address.symbol} is neither an operand nor one of its constants"
        return
    size = sizes[address.symbol]
    if address.offset < 0 or (size is not None and address.offset >= max(size, 1)):
        yield f"{address.symbol} + {address.offset} is outside of it"


def _broken_promise(
    lowered: interface.Lowered, cost: interface.Cost, commands: interface.CommandFormat | None
) -> str | None:
    """The difference between the constants' size and the reserved size, or None. Alignment gaps may count or not."""
    sizes = [(array.values.nbytes, array.align) for array in lowered.constants]
    if isinstance(lowered.code, interface.Commands) and commands is not None:
        if (count := len(lowered.code.structs)) != cost.commands:
            return f"it has {count} commands, its cost says {cost.commands}"
        sizes += [(commands.bytes, commands.align)] * count
    least = sum(size for size, _ in sizes)
    most = sum(-(-size // align) * align for size, align in sizes)
    if least <= cost.constant_bytes <= most:
        return None
    return f"its constants are {least} bytes, its cost says {cost.constant_bytes}"
