"""Ops given as C code: calls that carry a function body with parameters p0, p1, ..., `output` and optionally `work`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import relax
from tvm.ir import Call, Op, make_node

from npukit.net.c_code.function import Words, body_of
from npukit.net.c_code.rows import NO_STEPS, Steps
from npukit.net.importer.expressions import bindings, callee

_OPERATOR = "call_dps_packed"
CYCLES_PER_ELEMENT = 10
"""Predicted cycles of a user's C per element of its inputs and its result."""
make_call: Any = Call
extern: Any = relax.ExternFunc


def call_of(
    name: str,
    text: str,
    operands: Sequence[Any],
    result: Any,
    words: Words | None = None,
    work_bytes: int = 0,
    *,
    steps: Steps = NO_STEPS,
) -> Any:
    """The call of an op given as C code. `words`: numbers to substitute, besides p0_size, ... and output_size. `steps`:
    its loop over rows and its cycles. Without stated cycles, CYCLES_PER_ELEMENT are predicted."""
    sizes = {f"p{place}_size": prod(map(int, operand.ty.shape)) for place, operand in enumerate(operands)}
    sizes["output_size"] = prod(map(int, result.shape))
    if not steps.cycles:
        steps = steps._replace(cycles=CYCLES_PER_ELEMENT * sum(sizes.values()))
    told = {"what": name, "code": body_of(text, {**sizes, **(words or {})}), "work_bytes": work_bytes}
    attributes = make_node("ir.DictAttrs", **told, steps=json.dumps(steps))
    function = extern(re.sub(r"\W", "_", name))
    return make_call(Op.get(f"relax.{_OPERATOR}"), [function, relax.Tuple(list(operands))], attributes, [result])


def is_given(value: Any) -> bool:
    """True for an op given as C code."""
    return callee(value) == _OPERATOR and value.attrs is not None


def has_given(module: Any) -> bool:
    """True if the module has an op given as C code."""
    return any(is_given(value) for _, value in bindings(module))
