"""Declarations compiled into a network. Float inputs and outputs of the model's file stay float for the application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npukit.application.declared import NOTHING, Declared, Layout, SensorInput
from npukit.application.draft import FLOAT, Draft
from npukit.application.inputs import by_name, with_inputs
from npukit.application.outputs import with_outputs
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.passes.simplify import merge_moves

BYTES = ("int8", "uint8")


@dataclass(frozen=True)
class Ends:
    """The types in a model's file. Empty for the net's own types. `away`: the format rounds halves away from zero."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    away: bool = False


AS_NET = Ends()


def applied(net: Net, declared: Declared, layout: Layout, ends: Ends = AS_NET) -> Net:
    """The net with declared inputs and outputs, else with the file's types. `layout`: of the net's images."""
    known = by_name(declared.input, net.name, net.inputs)
    inputs: list[SensorInput] = []
    for name, dtype in zip(net.inputs, ends.inputs or [""] * len(net.inputs), strict=True):
        given = known.get(name)
        if dtype == FLOAT and net.tensor(name).dtype in BYTES and (given is None or given.type is None):
            given = (given or SensorInput(input=name)).model_copy(update={"type": FLOAT})
        inputs += [given] if given else []
    declared, real = Declared(input=tuple(inputs), output=declared.output), _float_outputs(declared, net, ends.outputs)
    if declared == NOTHING and not real:
        return net
    draft = Draft(net, away=ends.away)
    with_inputs(draft, declared.input, layout)
    outputs = with_outputs(draft, declared.output, layout, real)
    return check_net(merge_moves(draft.finished(net.inputs, outputs)))


def _float_outputs(declared: Declared, net: Net, types: Sequence[str]) -> frozenset[int]:
    """Numbers of undeclared outputs that are float in the file and integers in the net."""
    ends = enumerate(zip(net.outputs, types, strict=False))
    real = {place for place, (name, dtype) in ends if dtype == FLOAT and net.tensor(name).dtype in BYTES}
    return frozenset(real - {each.output for each in declared.output})
