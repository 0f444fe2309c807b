"""Parser of a Net's text form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from pydantic import ConfigDict, TypeAdapter, with_config

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.c_code.function import C_TYPES
from npukit.net.net import CORE, Fused, Net, Op, State
from npukit.net.ops.table import SPECS
from npukit.net.tensor import Quantization, Tensor
from npukit.net.text import digest, scales_key

TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(sha256:[0-9a-f]+)|(-?\d[\w.+-]*|-\w+)|([A-Za-z_][\w.]*)|([\[\]():,=]))')
BLANK = re.compile(r"\s*")
STRING, DIGEST, NUMBER, NAME, MARK = range(5)
Item = TypeVar("Item")
LITERALS = ("true", "false", "Infinity", "NaN")
"""Words read as literals, not names, in place of a literal."""


def parse_net(text: str, values: Mapping[str, np.ndarray]) -> Net:
    """The Net of a text. `values`: arrays referred to by digest in the text (`stored_values`)."""
    parser = _Parser(values)
    for number, line in enumerate(text.splitlines(), 1):
        try:
            parser.line(_Tokens(line))
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as fault:
            raise NpukitError(f"line {number} of the net is not understood: {line.strip()[:80]!r}") from fault
    return parser.net()


@dataclass
class _Tokens:
    """The tokens of a line, read from left to right."""

    line: str
    place: int = 0

    def take(self) -> tuple[int, str]:
        match = TOKEN.match(self.line, self.place)
        if match is None:
            raise ValueError("no token")
        self.place = match.end()
        kind = next(index for index, group in enumerate(match.groups()) if group is not None)
        return kind, match.groups()[kind]

    @property
    def done(self) -> bool:
        blank = BLANK.match(self.line, self.place)
        return blank is not None and blank.end() == len(self.line)

    def accept(self, text: str) -> bool:
        """Take the next token if it is the word or mark `text`."""
        place = self.place
        if not self.done and self.take() in ((NAME, text), (MARK, text)):
            return True
        self.place = place
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise ValueError(f"no {text}")

    def name(self) -> str:
        kind, text = self.take()
        if kind not in (STRING, NAME):
            raise ValueError("no name")
        return json.loads(text) if kind == STRING else text

    def literal(self) -> Any:
        """A number, string, truth value or list (as a tuple)."""
        if self.accept("["):
            return tuple(self.items("]", self.literal))
        kind, text = self.take()
        if kind not in (STRING, NUMBER) and text not in LITERALS:
            raise ValueError("no literal")
        return json.loads(text)

    def items(self, end: str, read: Callable[[], Item]) -> list[Item]:
        found = []
        while not self.accept(end):
            found.append(read())
            self.accept(",")
        return found


@dataclass
class _Parser:
    values: Mapping[str, np.ndarray]
    name: str = ""
    rounds_once: bool = False
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    parts: list[Op] = field(default_factory=list)
    """The parts of the next fused op."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)

    def net(self) -> Net:
        if self.parts:
            raise NpukitError(f"the net has no fused op for its part {self.parts[0].name!r}")
        ends = tuple(self.inputs), tuple(self.outputs)
        parts = tuple(self.ops), self.tensors, self.constants, tuple(self.states)
        return Net(self.name, *ends, *parts, self.rounds_once)

    def line(self, tokens: _Tokens) -> None:
        if tokens.done:
            return
        match tokens.name():
            case "net":
                self._net(tokens)
            case "input":
                self.inputs.append(self._tensor(tokens))
            case "part":
                self.parts.append(self._any_op(tokens))
            case "op":
                self._op(tokens)
            case "output":
                self.outputs.append(tokens.name())
            case "state":
                self._state(tokens)
            case "constant":
                name = self._tensor(tokens)
                tokens.expect("=")
                tensor = self.tensors[name]
                self.constants[name] = np.asarray(self._known(tokens, name), tensor.dtype).reshape(tensor.shape)
            case _:
                raise ValueError("unknown line")
        if not tokens.done:
            raise ValueError("more than was expected")

    def _state(self, tokens: _Tokens) -> None:
        name = self._tensor(tokens)
        tokens.expect("becomes")
        output = tokens.name()
        tokens.expect("begins")
        tensor = self.tensors[name]
        initial = np.asarray(self._known(tokens, name), tensor.dtype)
        whole = np.full(tensor.shape, initial) if initial.ndim == 0 else initial.reshape(tensor.shape)
        self.states.append(State(name, output, whole))

    def _tensor(self, tokens: _Tokens) -> str:
        name = tokens.name()
        tokens.expect(":")
        dtype = tokens.name()
        if dtype not in C_TYPES:
            raise ValueError("no type")
        tokens.expect("[")
        shape = tuple(int(size) for size in tokens.items("]", tokens.literal))
        known = self._quantization(tokens, name)
        self.tensors[name] = Tensor(name, shape, dtype, known, tokens.name() if tokens.accept("for") else "")
        return name

    def _quantization(self, tokens: _Tokens, name: str) -> Quantization | None:
        if tokens.accept("scale"):
            scale = float(tokens.literal())
            tokens.expect("zero")
            return Quantization((scale,), (int(tokens.literal()),))
        return self._per_axis(tokens, name) if tokens.accept("scales") else None

    def _per_axis(self, tokens: _Tokens, name: str) -> Quantization:
        scales = tuple(map(float, self._known(tokens, scales_key(name))))
        tokens.expect("zero")
        zero = tokens.literal()
        tokens.expect("axis")
        zeros = zero if isinstance(zero, tuple) else (zero,) * len(scales)
        return Quantization(scales, zeros, int(tokens.literal()))

    def _known(self, tokens: _Tokens, key: str) -> Any:
        """A literal, or the stored values of a digest."""
        place = tokens.place
        kind, text = tokens.take()
        if kind != DIGEST:
            tokens.place = place
            return tokens.literal()
        if key not in self.values:
            raise NpukitError(f"the values of {key!r} are missing beside the net's text")
        if digest(self.values[key]) != text:
            raise NpukitError(f"the values of {key!r} beside the net's text are not those it was printed with")
        return self.values[key]

    def _net(self, tokens: _Tokens) -> None:
        self.name = tokens.name()
        if not tokens.done:
            tokens.expect("rounding")
            tokens.expect("once")
            self.rounds_once = True

    def _op(self, tokens: _Tokens) -> None:
        op = self._any_op(tokens)
        if isinstance(op.attributes, Fused):
            op = replace(op, attributes=replace(op.attributes, ops=tuple(self.parts)))
            self.parts.clear()
        self.ops.append(op)

    def _any_op(self, tokens: _Tokens) -> Op:
        outputs = [self._tensor(tokens)]
        while tokens.accept(","):
            outputs.append(self._tensor(tokens))
        tokens.expect("=")
        name = tokens.name()
        kind = Fused if name == Fused.kind else SPECS[name].attributes
        tokens.expect("(")
        return _rest(tokens, kind, tuple(tokens.items(")", tokens.name)), tuple(outputs))


def _rest(tokens: _Tokens, kind: type[Attributes], inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Op:
    """An op from the text after its operands: attributes, then name, engine, reason, choice, places and pattern."""
    attributes: dict[str, Any] = {}
    words = {"named": outputs[0], "on": CORE, "because": "", "choosing": "", "keeping": "", "matching": ""}
    while not tokens.done:
        key = tokens.name()
        if tokens.accept("="):
            attributes[key] = tokens.literal()
        elif key in words:
            words[key] = tokens.name()
        else:
            raise ValueError(f"unknown word {key}")
    named, engine, reason, choice, keeping, pattern = words.values()
    places = tuple((memory, int(place)) for memory, place in map(str.split, keeping.split(", ") if keeping else ()))
    return Op(named, _typed(kind)(attributes), inputs, outputs, engine, reason, choice, places, pattern)


@cache
def _typed(kind: type[Attributes]) -> Callable[[Any], Attributes]:
    """Function that makes a kind's attributes from parsed values. Wrong types raise `ValueError`."""
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(kind)).validate_python
