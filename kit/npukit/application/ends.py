"""Types of inputs and outputs in the model's file: float inputs and outputs stay float for the application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npukit.application.declared import Declared, SensorInput
from npukit.application.draft import Draft
from npukit.application.inputs import by_name
from npukit.net.net import Net
from npukit.net.ops import Dequantize

FLOAT = "float32"
BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class Ends:
    """The types in a model's file. Empty for the net's own types. `away`: the format rounds halves away from zero."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    away: bool = False


AS_NET = Ends()


def with_float_inputs(declared: Declared, net: Net, types: Sequence[str]) -> Declared:
    """The declarations, with type float for inputs that are float in the file and integers in the net."""
    known = by_name(declared.input, net.name, net.inputs)
    inputs: list[SensorInput] = []
    for name, dtype in zip(net.inputs, types or [""] * len(net.inputs), strict=True):
        given = known.get(name)
        if dtype == FLOAT and net.tensor(name).dtype in BYTES and (given is None or given.type is None):
            given = (given or SensorInput(input=name)).model_copy(update={"type": FLOAT})
        inputs += [given] if given else []
    return Declared(input=tuple(inputs), output=declared.output)


def float_outputs(declared: Declared, net: Net, types: Sequence[str]) -> frozenset[int]:
    """Numbers of undeclared outputs that are float in the file and integers in the net."""
    wanted = {each.output for each in declared.output}
    return frozenset(
        place
        for place, (name, dtype) in enumerate(zip(net.outputs, types, strict=False))
        if dtype == FLOAT and net.tensor(name).dtype in BYTES and place not in wanted
    )


def dequantized(draft: Draft, name: str) -> str:
    """Append the conversion of an output to real numbers."""
    return draft.op(draft.after, Dequantize(), (name,), None, FLOAT)
