"""The text form of a Net, with a line per input, op, output, state and constant; `net/parse.py` reads it back.

    net digits
    input image: int8[1,8,8,1] scale 0.0625 zero -128
    op conv2d_0: int8[1,8,8,4] scale 0.05 zero -128 = conv2d(image, conv2d_0_weights, conv2d_0_bias) on mac_array
    part conv2d_1: int8[1,8,8,4] scale 0.1 zero 0 = conv2d(conv2d_0, conv2d_1_weights)
    part add_0: int8[1,8,8,4] scale 0.05 zero -128 = add(conv2d_1, conv2d_0)
    op add_0: int8[1,8,8,4] scale 0.05 zero -128 = fused(conv2d_0, conv2d_1_weights, conv2d_0) on mac_array
    op mean_0: int8[1,1,1,4] scale 0.05 zero -128 for "head/GlobalMean" = mean(add_0, axes=[1, 2])
    op fc: int8[1,2] scale 0.05 zero 0 = dense(mean_0, fc_weights) on npu choosing "resident" keeping "filters 4096"
    output conv2d_0
    state held: int8[1,8] scale 0.05 zero -128 becomes add_1 begins -128
    constant conv2d_0_weights: int8[4,1,1,1] scale 0.01 zero 0 = [1, 2, 3, 4]
    constant conv2d_0_bias: int32[4] = [0, 0, 0, 0]

`net digits rounding once`: see `Net.rounds_once`.
Parts precede their fused op. A state's initial value is one number for all elements, or a list. Attributes with default
values are omitted. Numbers parse back to the same bits. Long constants and long vectors of scales appear as digests;
their values are stored beside the text (`stored_values`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator
from dataclasses import fields
from hashlib import sha256
from itertools import count
from typing import Any

import numpy as np

from npukit.net.attributes import Attributes
from npukit.net.net import CORE, Fused, Net, Op, State
from npukit.net.tensor import Quantization, Tensor

_LONGEST_NAME = 60
INLINE_VALUES = 16
INLINE_SCALES = 4
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


def print_net(net: Net) -> str:
    return "\n".join(_lines(net)) + "\n"


def stored_values(net: Net) -> dict[str, np.ndarray]:
    """The values that the text refers to by digest: long constants, and long scale vectors as `NAME scales`."""
    values = {name: value for name, value in net.constants.items() if value.size > INLINE_VALUES}
    values |= {state.input: state.initial for state in net.states if _is_stored(state)}
    for name, tensor in net.tensors.items():
        if tensor.quantization and len(tensor.quantization.scales) > INLINE_SCALES:
            values[scales_key(name)] = np.array(tensor.quantization.scales)
    return values


def scales_key(name: str) -> str:
    return f"{name} scales"


def digest(value: np.ndarray) -> str:
    header = f"{value.dtype}{list(value.shape)}".encode()
    return "sha256:" + sha256(header + np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def _lines(net: Net) -> Iterator[str]:
    yield f"net {quoted(net.name)}{' rounding once' if net.rounds_once else ''}"
    for name in net.inputs:
        yield f"input {print_tensor(net.tensor(name))}"
    for op in net.ops:
        if isinstance(op.attributes, Fused):
            yield from (f"part {print_op(net, part)}" for part in op.parts)
        yield f"op {print_op(net, op)}"
    for name in net.outputs:
        yield f"output {quoted(name)}"
    for state in net.states:
        begins = digest(state.initial) if _is_stored(state) else _literal(state.begins)
        yield f"state {print_tensor(net.tensor(state.input))} becomes {quoted(state.output)} begins {begins}"
    for name, value in net.constants.items():
        yield f"constant {print_tensor(net.tensor(name))} = {_value(value)}"


def _is_stored(state: State) -> bool:
    return isinstance(state.begins, list) and state.initial.size > INLINE_VALUES


def plain_name(name: str, kind: str, taken: Container[str]) -> str:
    """An unused name, safe in C, files and text. `kind`: prefix if the name does not begin with a letter."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:_LONGEST_NAME]
    plain = plain if plain[:1].isalpha() else f"{kind}_{plain.strip('_')}"
    numbered = (f"{plain}_{number}" for number in count(1))
    return plain if plain not in taken else next(other for other in numbered if other not in taken)


def quoted(name: str) -> str:
    """The name, as a JSON string if it is no plain word."""
    return name if PLAIN_NAME.match(name) else json.dumps(name)


def print_tensor(tensor: Tensor) -> str:
    """A tensor's name, type, shape, quantisation, and layer of the user's model."""
    shape = ",".join(map(str, tensor.shape))
    quantization = f" {_quantization(tensor.quantization)}" if tensor.quantization else ""
    title = f" for {json.dumps(tensor.title)}" if tensor.title else ""
    return f"{quoted(tensor.name)}: {tensor.dtype}[{shape}]{quantization}{title}"


def _quantization(quantization: Quantization) -> str:
    if quantization.axis is None:
        return f"scale {quantization.scale!r} zero {quantization.zero_point}"
    zeros = set(quantization.zero_points)
    zero = str(zeros.pop()) if len(zeros) == 1 else _literal(quantization.zero_points)
    return f"scales {_scales(quantization.scales)} zero {zero} axis {quantization.axis}"


def _scales(scales: tuple[float, ...]) -> str:
    return _literal(scales) if len(scales) <= INLINE_SCALES else digest(np.array(scales))


def _value(value: np.ndarray) -> str:
    return _literal(value.ravel().tolist()) if value.size <= INLINE_VALUES else digest(value)


def _literal(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return json.dumps(value)


def print_op(net: Net, op: Op) -> str:
    """An op as in its line of the text form."""
    outputs = ", ".join(print_tensor(net.tensor(name)) for name in op.outputs)
    inputs = ", ".join(map(quoted, op.inputs))
    return f"{outputs} = {op.kind}({inputs})" + "".join(f" {part}" for part in _rest(op))


def _rest(op: Op) -> Iterator[str]:
    values = attribute_values(op.attributes)
    defaults = {f.name: f.default for f in fields(op.attributes)}
    for key, value in {key: value for key, value in values.items() if value != defaults[key]}.items():
        yield f"{key}={_literal(value)}"
    if op.name != op.outputs[0]:
        yield f"named {quoted(op.name)}"
    if op.engine != CORE or op.reason:
        yield f"on {quoted(op.engine)}"
    if op.reason:
        yield f"because {json.dumps(op.reason)}"
    if op.choice:
        yield f"choosing {json.dumps(op.choice)}"
    if op.places:
        yield f'keeping "{", ".join(f"{memory} {place}" for memory, place in op.places)}"'
    if op.pattern:
        yield f"matching {json.dumps(op.pattern)}"


def attribute_values(attributes: Attributes) -> dict[str, Any]:
    """The attributes by name, without the parts of a fused op."""
    return {f.name: getattr(attributes, f.name) for f in fields(attributes) if f.name != "ops"}
