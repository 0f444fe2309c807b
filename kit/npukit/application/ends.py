"""Inputs and outputs of the types that the model's file says: what it takes and gives as float stays float."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.application.declared import Declared, SensorInput
from npukit.application.draft import Draft
from npukit.application.inputs import by_name
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.tensor import Quantization, Tensor

FLOAT = "float32"
BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class Ends:
    """The types that a file says; none where the net's own are wanted. `away`: it rounds halves away from zero."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    away: bool = False


AS_NET = Ends()


def with_float_inputs(declared: Declared, net: Net, types: Sequence[str]) -> Declared:
    """The declarations, and that inputs of `types` in the file that the net takes as integers are given as float."""
    known = by_name(declared.input, net.name, net.inputs)
    inputs: list[SensorInput] = []
    for name, dtype in zip(net.inputs, types or [""] * len(net.inputs), strict=True):
        given = known.get(name)
        if dtype == FLOAT and net.tensor(name).dtype in BYTES and (given is None or given.type is None):
            given = (given or SensorInput(input=name)).model_copy(update={"type": FLOAT})
        inputs += [given] if given else []
    return Declared(input=tuple(inputs), output=declared.output)


def float_outputs(declared: Declared, net: Net, types: Sequence[str]) -> frozenset[int]:
    """The places of outputs that the file gives as float, the net as integers, and of which nothing is declared."""
    wanted = {each.output for each in declared.output}
    return frozenset(
        place
        for place, (name, dtype) in enumerate(zip(net.outputs, types, strict=False))
        if dtype == FLOAT and net.tensor(name).dtype in BYTES and place not in wanted
    )


def dequantized(draft: Draft, name: str) -> str:
    """The real numbers of an output: the integer less its zero point, times the scale, in float32."""
    tensor = draft.tensors[name]
    assert tensor.quantization is not None
    code = dequantizing_code(tensor, tensor.quantization)
    made = draft.new_name("dequantize")
    draft.tensors[made] = Tensor(made, tensor.shape, FLOAT)
    draft.after.append(Op(made, TvmCode("dequantize", code, 0, WHY), (name,), (made,)))
    return made


WHY = "the model gives it in float"


def dequantizing_code(tensor: Tensor, given: Quantization) -> str:
    scale = np.float32(given.scale)
    number = str(scale) if "." in str(scale) else str(scale).replace("e", ".0e")
    return (
        f"for (int32_t i = 0; i < {tensor.elements}; ++i) {{\n"
        f"  output[i] = (float)((int32_t)p0[i] - ({given.zero_point})) * {number}f;\n"
        "}\n"
    )
