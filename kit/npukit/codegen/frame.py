"""One frame as a TIR function: the AOT executor. It calls kernels and accelerators in the order of the plan.

Its parameters are the C names of what it touches. They are in scope where its C stands, so they vanish from the C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npukit.accel.interface import Address, Call, CommandFormat
from npukit.codegen.c_text import function_bodies
from npukit.codegen.tvm_door import (
    Expr,
    Function,
    Local,
    Parameter,
    call,
    define,
    do,
    give,
    if_else,
    print_c,
    when,
)

NAME = "net_run"
BEGIN, END = "net_begin_layer", "net_end_layer"


@dataclass(frozen=True)
class KernelStep:
    """Calls of kernels, which finish `layer`. `checked`: they return 0 or an error code."""

    calls: tuple[Call, ...]
    layer: int
    checked: bool


@dataclass(frozen=True)
class ChainStep:
    """Layers of one accelerator that follow each other, each with its commands."""

    format: CommandFormat
    layers: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def first(self) -> str:
        return self.layers[0][1][0]


@dataclass(frozen=True)
class SendStep:
    """Start the messages whose first descriptor this is."""

    symbol: str


@dataclass(frozen=True)
class WaitStep:
    """Wait for a counted flag."""

    flag: int
    count: int


FrameStep = KernelStep | ChainStep | SendStep | WaitStep


def frame_function(steps: Sequence[FrameStep], *, observable: bool = True) -> Function:
    """The whole frame. Observed, it runs command by command and records each layer."""
    parameters = [Parameter(symbol, "uint8", "place") for symbol in dict.fromkeys(_symbols(steps))]
    parameters += [Parameter(name, "int32", "value") for name in dict.fromkeys(_numbers(steps))]
    names = [parameter.name for parameter in parameters]

    def body(*values: Any) -> None:
        _Writer(dict(zip(names, values, strict=True)), observable).write(steps)

    return define(NAME, parameters, body, result="int32")


def frame_as_c(function: Function, place: Callable[[str, int], str]) -> str:
    """The statements of the frame. `place`: the C of a symbol's address plus so many bytes."""
    return function_bodies(print_c([function]), lambda symbol, offset: place(symbol, int(offset)))[NAME]


def _symbols(steps: Sequence[FrameStep]) -> Iterator[str]:
    for step in steps:
        match step:
            case ChainStep():
                yield from (symbol for _, commands in step.layers for symbol in commands)
            case KernelStep():
                yield from (a.symbol for call in step.calls for a in call.arguments if isinstance(a, Address))
            case SendStep():
                yield step.symbol


def _numbers(steps: Sequence[FrameStep]) -> Iterator[str]:
    """C constants that calls name."""
    for step in steps:
        if isinstance(step, KernelStep):
            yield from (a for call in step.calls for a in call.arguments if isinstance(a, str))


class _Writer:
    def __init__(self, values: Mapping[str, Any], observable: bool) -> None:
        self._values = values
        self._observable = observable
        self._status: Local | None = None
        self._observed: Local | None = None

    def write(self, steps: Sequence[FrameStep]) -> None:
        if any(not isinstance(step, KernelStep) or step.checked for step in steps):
            self._status = Local("status", "int32", 0)
        for step in steps:
            self._step(step)
        give(0)

    def _step(self, step: FrameStep) -> None:
        match step:
            case ChainStep():
                self._chain(step)
            case KernelStep():
                self._kernel(step)
            case SendStep():
                self._checked("noc_send", step.symbol)
            case WaitStep():
                self._stop_on_error(call("noc_wait", step.flag, step.count))

    def _is_observed(self) -> Expr:
        """Asked once a frame, before its first layer: the word comes before what the frame works on."""
        if self._observed is None:
            self._observed = Local("observed", "int32", call("net_observed"))
        return self._observed.value != 0

    def _chain(self, step: ChainStep) -> None:
        if not self._observable:
            self._checked(step.format.run, step.first)
            return
        if_else(self._is_observed(), lambda: self._one_by_one(step), lambda: self._checked(step.format.run, step.first))

    def _one_by_one(self, step: ChainStep) -> None:
        for layer, commands in step.layers:
            do(call(BEGIN))
            for command in commands:
                self._checked(f"{step.format.run}_one", command)
            do(call(END, layer))

    def _checked(self, function: str, symbol: str) -> None:
        self._stop_on_error(call(function, self._values[symbol].address(0)))

    def _kernel(self, step: KernelStep) -> None:
        if not self._observable:
            self._calls(step)
            return
        observed = self._is_observed()
        with when(observed):
            do(call(BEGIN))
        self._calls(step)
        with when(observed):
            do(call(END, step.layer))

    def _calls(self, step: KernelStep) -> None:
        for each in step.calls:
            made = call(each.function, *(self._argument(a) for a in each.arguments))
            if step.checked:
                self._stop_on_error(made)
            else:
                do(made)

    def _argument(self, value: object) -> object:
        if isinstance(value, Address):
            return self._values[value.symbol].address(value.offset)
        return self._values[value] if isinstance(value, str) else value

    def _stop_on_error(self, made: object) -> None:
        assert self._status is not None
        self._status.set(made)
        with when(self._status.value != 0):
            give(self._status.value)
