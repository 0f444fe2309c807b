"""One frame as a TIR function: the AOT executor. It calls kernels and accelerators in the order of the plan.

The parameters are C names of operands and constants. The generated C refers to these names directly, so the parameters
disappear from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from npukit.accel.interface import Address, Call, CommandFormat
from npukit.codegen.names import comment_text
from npukit.codegen.tir.c_text import function_bodies
from npukit.codegen.tir.door import (
    Expr,
    Local,
    TirFunction,
    TirParameter,
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
RESTORE = "net_restore"
EVENT, FRAME_END = "net_event", "net_end_frame"


@dataclass(frozen=True)
class StepOperand:
    """An operand of a step that may differ between PEs: an address, or a number. `type`: the C type."""

    value: Address | int
    type: str
    name: str = ""


@dataclass(frozen=True)
class KernelStep:
    """Calls of kernels, which complete `layer`. `checked`: the kernels return 0 or an error code. `wait`: the calls
    only start the work, and this function waits for the end. `submitted`: a later step waits."""

    calls: tuple[Call, ...]
    layer: int
    checked: bool
    wait: str | None = None
    submitted: bool = False

    @property
    def code(self) -> object:
        """A key of the code. Steps with equal keys differ in their operands alone."""
        calls = tuple((c.function, *("" if isinstance(a, Address) else a for a in c.arguments)) for c in self.calls)
        return ("kernel", self.checked, self.wait, self.submitted, calls)

    def operands(self) -> tuple[StepOperand, ...]:
        arguments = (a for call in self.calls for a in call.arguments)
        return tuple(StepOperand(a, "void *") for a in arguments if isinstance(a, Address))

    def with_operands(self, values: Sequence[Address | int | str]) -> KernelStep:
        given = iter(values)
        arguments = [[next(given) if isinstance(a, Address) else a for a in call.arguments] for call in self.calls]
        calls = (replace(call, arguments=tuple(a)) for call, a in zip(self.calls, arguments, strict=True))
        return replace(self, calls=tuple(calls))


@dataclass(frozen=True)
class ChainStep:
    """Successive layers on one accelerator, with the commands of each. `submitted`: started without waiting."""

    format: CommandFormat
    layers: tuple[tuple[int, tuple[str, ...]], ...]
    submitted: bool = False

    @property
    def first(self) -> str:
        return self.layers[0][1][0]

    @property
    def code(self) -> object:
        return ("chain", self.format.run, self.submitted, tuple(len(commands) for _, commands in self.layers))

    def operands(self) -> tuple[StepOperand, ...]:
        commands = (symbol for _, commands in self.layers for symbol in commands)
        return tuple(StepOperand(Address(symbol), f"const struct {self.format.struct} *") for symbol in commands)

    def with_operands(self, values: Sequence[Address | int | str]) -> ChainStep:
        given = (value.symbol for value in values if isinstance(value, Address))
        return replace(self, layers=tuple((layer, tuple(next(given) for _ in old)) for layer, old in self.layers))


@dataclass(frozen=True)
class JoinStep:
    """Wait for work submitted to an accelerator."""

    wait: str

    @property
    def code(self) -> object:
        return ("join", self.wait)

    def operands(self) -> tuple[StepOperand, ...]:
        return ()

    def with_operands(self, values: Sequence[Address | int | str]) -> JoinStep:
        assert not values
        return self


@dataclass(frozen=True)
class _OfOneSymbol:
    """Base of steps whose only operand is the address of a struct."""

    symbol: str
    struct: ClassVar[str]

    def operands(self) -> tuple[StepOperand, ...]:
        return (StepOperand(Address(self.symbol), f"const struct {self.struct} *"),)

    def with_operands(self, values: Sequence[Address | int | str]) -> Self:
        (value,) = values
        assert isinstance(value, Address)
        return replace(self, symbol=value.symbol)


@dataclass(frozen=True)
class SendStep(_OfOneSymbol):
    """Start a chain of messages, given the first descriptor. `purpose`: the contents, for readers of the C."""

    struct = "noc_descriptor"
    code = ("send",)
    purpose: str = ""


@dataclass(frozen=True)
class WaitStep:
    """Wait for a counted flag. `flag` and `count` may be names of a PE's own words. `purpose`: the awaited messages."""

    flag: int | str
    count: int | str
    purpose: str = ""
    code = ("wait",)

    def operands(self) -> tuple[StepOperand, ...]:
        values = (("flag", self.flag), ("count", self.count))
        return tuple(StepOperand(value, "uint32_t ", name) for name, value in values if isinstance(value, int))

    def with_operands(self, values: Sequence[Address | int | str]) -> WaitStep:
        flag, count = values
        assert not isinstance(flag, Address)
        assert not isinstance(count, Address)
        return WaitStep(flag, count, self.purpose)


@dataclass(frozen=True)
class TableStep(_OfOneSymbol):
    """All steps of a program in the form of a table. `symbol`: the table."""

    struct = "net_step"
    code = ("table",)


@dataclass(frozen=True)
class RestoreStep(_OfOneSymbol):
    """Reset `count` parts of states to their initial values, if a reset is due. `symbol`: the table of the parts."""

    struct = "net_state"
    count: int

    @property
    def code(self) -> object:
        return "restore", self.count


FrameStep = TableStep | RestoreStep | KernelStep | ChainStep | JoinStep | SendStep | WaitStep


def renamed(step: FrameStep, functions: Mapping[str, str]) -> FrameStep:
    """The step with its called functions renamed."""
    if not isinstance(step, KernelStep):
        return step
    calls = (replace(call, function=functions.get(call.function, call.function)) for call in step.calls)
    return replace(step, calls=tuple(calls))


def frame_function(steps: Sequence[FrameStep], *, observable: bool = True, traces: bool = False) -> TirFunction:
    """The whole frame. `observable`: if observed, the frame runs command by command and records each layer. `traces`:
    the frame records when each step began."""
    values = [operand.value for step in steps for operand in step.operands()]
    symbols = dict.fromkeys(value.symbol for value in values if isinstance(value, Address))
    numbers = dict.fromkeys(value for step in steps for value in _named_numbers(step))
    parameters = [TirParameter(symbol, "uint8", "place") for symbol in symbols]
    parameters += [TirParameter(name, "int32", "value") for name in numbers]
    names = [parameter.name for parameter in parameters]

    def body(*values: Any) -> None:
        _Writer(dict(zip(names, values, strict=True)), observable, traces).write(steps)

    return define(NAME, parameters, body, result="int32")


def frame_as_c(function: TirFunction, place: Callable[[str, int], str], numbers: Mapping[str, str]) -> str:
    """The statements of the frame. `place`: the C of a symbol's address plus an offset in bytes. `numbers`: the C of
    numbers that differ between PEs."""
    body = function_bodies(print_c([function]), lambda symbol, offset: place(symbol, int(offset)))[NAME]
    return re.sub(r"\b[A-Za-z_]\w*", lambda word: numbers.get(word[0], word[0]), body)


def with_purposes(body: str, steps: Sequence[FrameStep], pe: str) -> str:
    """The statements of a frame, with the messages' contents as comments. `pe`: a prefix that names the PE."""
    purposes = iter([step.purpose for step in steps if isinstance(step, SendStep | WaitStep)])

    def commented(call: re.Match[str]) -> str:
        purpose = next(purposes)
        return f"{call[0]} /* {pe}{comment_text(purpose)} */" if purpose else call[0]

    return re.sub(r"\bnoc_(?:send|wait)\(.*\);", commented, body)


def _named_numbers(step: FrameStep) -> list[str]:
    """Names of C constants among a step's operands."""
    values = [argument for call in step.calls for argument in call.arguments] if isinstance(step, KernelStep) else []
    values += [step.flag, step.count] if isinstance(step, WaitStep) else []
    return [value for value in values if isinstance(value, str)]


class _Writer:
    def __init__(self, values: Mapping[str, Any], observable: bool, traces: bool) -> None:
        self._values, self._observable, self._traces = values, observable, traces
        self._status: Local | None = None
        self._observed_frame: Local | None = None

    def write(self, steps: Sequence[FrameStep]) -> None:
        kernels = [step for step in steps if isinstance(step, KernelStep)]
        others_may_fail = any(not isinstance(step, KernelStep | RestoreStep) for step in steps)
        if others_may_fail or any(self._observable or step.checked for step in kernels):
            self._status = Local("status", "int32", 0)
        for number, step in enumerate(steps):
            if self._traces:
                do(call(EVENT, number))
            self._step(step)
        if self._traces:
            do(call(FRAME_END))
        give(0)

    def _step(self, step: FrameStep) -> None:
        match step:
            case ChainStep():
                self._chain(step)
            case KernelStep():
                self._kernel(step)
            case JoinStep():
                # An observed frame skips the wait, as each layer has waited already.
                with when(self._observed() == 0) if self._observable else nullcontext():
                    self._stop_on_error(call(step.wait))
            case RestoreStep():
                do(call(RESTORE, self._values[step.symbol].address(0), step.count))
            case SendStep():
                self._checked("noc_send", step.symbol)
            case WaitStep():
                self._stop_on_error(call("noc_wait", self._argument(step.flag), self._argument(step.count)))
            case TableStep():
                raise ValueError(f"{step.symbol}: a loop goes through a table, no statement does (net_table.c.j2)")

    def _observed(self) -> Expr:
        """1 in an observed frame. Read once: the root sets `observed` in the control block before the frame's data."""
        if self._observed_frame is None:
            self._observed_frame = Local("observed", "int32", call("net_observed"))
        return self._observed_frame.value

    def _chain(self, step: ChainStep) -> None:
        if not self._observable:
            self._all_at_once(step)
        else:
            if_else(self._observed() != 0, lambda: self._one_by_one(step), lambda: self._all_at_once(step))

    def _all_at_once(self, step: ChainStep) -> None:
        if step.submitted:
            do(call(str(step.format.submit), self._values[step.first].address(0)))
        else:
            self._checked(step.format.run, step.first)

    def _one_by_one(self, step: ChainStep) -> None:
        for layer, commands in step.layers:
            do(call(BEGIN))
            for command in commands:
                self._checked(f"{step.format.run}_one", command)
            self._stop_on_error(call(END, layer))

    def _checked(self, function: str, symbol: str) -> None:
        self._stop_on_error(call(function, self._values[symbol].address(0)))

    def _kernel(self, step: KernelStep) -> None:
        if not self._observable:
            self._calls(step)
            return
        observed = self._observed() != 0
        with when(observed):
            do(call(BEGIN))
        self._calls(step)
        with when(observed):
            if step.wait and step.submitted:
                self._stop_on_error(call(step.wait))
            self._stop_on_error(call(END, step.layer))

    def _calls(self, step: KernelStep) -> None:
        for each in step.calls:
            made = call(each.function, *(self._argument(a) for a in each.arguments))
            if step.checked:
                self._stop_on_error(made)
            else:
                do(made)
        if step.wait and not step.submitted:
            self._stop_on_error(call(step.wait))

    def _argument(self, value: object) -> object:
        if isinstance(value, Address):
            return self._values[value.symbol].address(value.offset)
        return self._values[value] if isinstance(value, str) else value

    def _stop_on_error(self, made: object) -> None:
        assert self._status is not None
        self._status.set(made)
        with when(self._status.value != 0):
            give(self._status.value)
