"""The passes between model and plan, in a table. Each pass makes a new net from a net."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from npukit.accel.choices import Chosen, as_predicted, with_choices
from npukit.accel.engines import refuse_cpu_ops, with_own_passes, with_patterns_of, with_placed_ops, with_subgraphs_of
from npukit.accel.groups import with_groups_joined
from npukit.accel.interface import Engines
from npukit.accel.phases import with_phases
from npukit.dump import dumped
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.passes.at_link import with_ends_at_link
from npukit.net.passes.dead_channels import without_dead_channels
from npukit.net.passes.numbers import with_numbers_as_constants
from npukit.net.passes.products import with_transposing_products
from npukit.net.passes.repeats import with_repeats_as_resizing
from npukit.net.passes.requantised import with_requantising_tables
from npukit.net.passes.states import with_states_in_place
from npukit.net.text import print_net, print_op
from npukit.plan.tensors.op_order import in_overlapping_order

AROUND = 2
"""Ops that an error shows before and after the op in question."""


@dataclass(frozen=True)
class Wanted:
    """The options of the passes that choose engines.

    `only`: the single accelerator to use. `slower_too`: an accelerator gets every op it supports, even if the core is
    faster. `strict`: refuse ops on the core. `chosen`: choices from tuning records for ops on accelerators.
    """

    engines: Engines
    only: str | None = None
    slower_too: bool = False
    strict: bool = False
    chosen: Chosen = as_predicted


@dataclass(frozen=True)
class Pass:
    """A pass, with the name in dumps and errors."""

    name: str
    run: Callable[[Net, Wanted], Net]


OWN = (Pass("plug-ins", lambda net, wanted: with_own_passes(net, wanted.engines)),)
"""The passes of plug-ins."""

SIMPLIFYING = (
    Pass("dead-channels", lambda net, wanted: without_dead_channels(net)),
    Pass("numbers", lambda net, wanted: with_numbers_as_constants(net)),
)
"""The passes before any engine is chosen."""

PLACING = (
    Pass("repeats", lambda net, wanted: with_repeats_as_resizing(net)),
    Pass("products", lambda net, wanted: with_transposing_products(net)),
    Pass("ends", lambda net, wanted: with_ends_at_link(net)),
    Pass("phases", lambda net, wanted: with_phases(net, wanted.engines, wanted.only)),
    Pass("groups", lambda net, wanted: with_groups_joined(net, wanted.engines, wanted.only)),
    Pass("place", lambda net, wanted: with_placed_ops(net, wanted.engines, wanted.only, slower_too=wanted.slower_too)),
    Pass("subgraphs", lambda net, wanted: with_subgraphs_of(net, wanted.engines, wanted.only)),
    Pass(
        "patterns",
        lambda net, wanted: with_patterns_of(net, wanted.engines, wanted.only, slower_too=wanted.slower_too),
    ),
    Pass("tables", lambda net, wanted: with_requantising_tables(net)),
    Pass("choices", lambda net, wanted: with_choices(net, wanted.engines, wanted.chosen)),
    Pass("strict", lambda net, wanted: _strict(net) if wanted.strict else net),
    Pass("overlap", lambda net, wanted: in_overlapping_order(net, wanted.engines)),
    Pass("states", lambda net, wanted: with_states_in_place(net)),
)
"""The passes that choose each op's engine and the order of the ops."""


NUMBERS = {each.name: number for number, each in enumerate((*OWN, *SIMPLIFYING, *PLACING), 1)}
"""The number of each pass in the file names of a dump."""


def run_passes(net: Net, passes: tuple[Pass, ...], wanted: Wanted, variant: str = "") -> Net:
    """Run the passes in order and dump the net after each. An error shows the lines around the op in question."""
    for each in passes:
        try:
            net = each.run(net, wanted)
        except NpukitError as error:
            raise _in_surroundings(error, net, each.name) from error
        dumped(f"net-{NUMBERS[each.name]:02}-{each.name}{variant}.txt", partial(print_net, net))
    return net


def _strict(net: Net) -> Net:
    refuse_cpu_ops(net)
    return net


def _in_surroundings(error: NpukitError, net: Net, name: str) -> NpukitError:
    """The error, with the lines of the net around the first op named in its message."""
    words = set(re.findall(r"[^\s:,;()'\"]+", error.message))
    place = next((place for place, op in enumerate(net.ops) if op.name in words), None)
    if place is None:
        return error
    facts = [*error.facts, f"in pass {name}:", *_lines(net, place)]
    return type(error)(error.message, facts=facts, tries=error.tries)


def _lines(net: Net, place: int) -> Iterator[str]:
    first = max(place - AROUND, 0)
    for number, op in enumerate(net.ops[first : place + AROUND + 1], first):
        yield f"{'>' if number == place else ' '} {print_op(net, op)}"
