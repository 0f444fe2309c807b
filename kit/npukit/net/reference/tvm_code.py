"""Reference of ops as C code: the same C code, run in a sandbox.

Results equal the device's to the last bit: IEEE single precision, one operation at a time in the order of the C code
(no fused multiply-add, no reordering), with the same `firmware/libm`. Any NaN becomes Arm's default NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from npukit.net.attributes import TvmCode
from npukit.net.c_code.function import declaration, math_functions, pointers
from npukit.net.net import Net, Op
from npukit.net.reference.sandbox import Sandbox

NAN = np.uint32(0x7FC00000)

STEPS_A_CALL, STEPS_A_CYCLE = 1 << 28, 16
"""Sandbox steps allowed per call, and additional steps per predicted cycle of its loops. Of 277 ops in the tests of
float operators, none took more than 4 steps a cycle."""


def tvm_code(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    output, attributes = net.tensor(op.output), op.attributes
    assert isinstance(attributes, TvmCode)
    activations = [value for name, value in zip(op.inputs, operands, strict=True) if name not in net.constants]
    result = np.empty((len(activations[0]), *output.shape), output.dtype)
    blank, work = np.zeros(output.shape, output.dtype), np.zeros(attributes.work_bytes, np.uint8)
    sources, steps = _sources(_Same(net)), STEPS_A_CALL + STEPS_A_CYCLE * attributes.cycles
    function = sources.index(_source(net, op))
    for case in range(len(result)):
        given = [
            value if name in net.constants else value[case] for name, value in zip(op.inputs, operands, strict=True)
        ]
        arrays = [*given, blank, *([work] if work.size else [])]
        result[case] = _sandbox(sources).call(function, arrays, len(given), steps)
    if result.dtype == np.float32:
        result.view(np.uint32)[np.isnan(result)] = NAN
    return result


@dataclass(frozen=True, eq=False)
class _Same:
    """A net as a cache key, compared by identity. A stream looks up the same net in every frame."""

    net: Net

    def __hash__(self) -> int:
        return id(self.net)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.net is self.net


@lru_cache(maxsize=4)
def _sources(same: _Same) -> tuple[str, ...]:
    net = same.net
    ops = (part for op in net.ops for part in op.parts)
    return tuple(dict.fromkeys(_source(net, op) for op in ops if isinstance(op.attributes, TvmCode)))


def _source(net: Net, op: Op) -> str:
    """The C function without its name, from the parameter list on."""
    attributes = op.of(TvmCode)
    parameters = (declaration(each.dtype, each.name, written=each.written) for each in pointers(net, op))
    return f"({', '.join(parameters)})\n{{\n{attributes.code}}}\n"


@cache
def _sandbox(sources: tuple[str, ...]) -> Sandbox:
    return Sandbox(sources, math=any(math_functions(source) for source in sources))
