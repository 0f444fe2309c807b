"""A network with what is declared compiled into it."""

from __future__ import annotations

from npukit.application.declared import Declared, Layout
from npukit.application.draft import Draft
from npukit.application.inputs import with_inputs
from npukit.application.outputs import with_outputs
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.simplify import merge_moves


def applied(net: Net, declared: Declared, layout: Layout) -> Net:
    """The net that takes and gives what is declared. `layout` is that of the model's own images."""
    if not declared.input and not declared.output:
        return net
    draft = Draft(net)
    with_inputs(draft, declared.input, layout)
    outputs = with_outputs(draft, declared.output, layout)
    return check_net(merge_moves(draft.finished(net.inputs, outputs)))
