"""Declarations compiled into a network."""

from __future__ import annotations

from npukit.application.declared import NOTHING, Declared, Layout
from npukit.application.draft import Draft
from npukit.application.ends import AS_NET, Ends, float_outputs, with_float_inputs
from npukit.application.inputs import with_inputs
from npukit.application.outputs import with_outputs
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.passes.simplify import merge_moves


def applied(net: Net, declared: Declared, layout: Layout, ends: Ends = AS_NET) -> Net:
    """The net with declared inputs and outputs, else with the types in the model's file. `layout`: of images in the
    net."""
    declared, real = with_float_inputs(declared, net, ends.inputs), float_outputs(declared, net, ends.outputs)
    if declared == NOTHING and not real:
        return net
    draft = Draft(net, away=ends.away)
    with_inputs(draft, declared.input, layout)
    outputs = with_outputs(draft, declared.output, layout, real)
    return check_net(merge_moves(draft.finished(net.inputs, outputs)))
