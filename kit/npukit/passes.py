"""The passes between model and plan, in a table. Each pass makes a new net from a net."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf

from npukit.accel.choices import TunedChoice, as_predicted, with_choices
from npukit.accel.engines import (
    refuse_cpu_ops,
    with_own_passes,
    with_patterns_of,
    with_placed_ops,
    with_rounding_of,
    with_subgraphs_of,
)
from npukit.accel.groups import with_groups_joined
from npukit.accel.interface import Engines, whole_cycles
from npukit.accel.phases import with_phases
from npukit.dump import dumped
from npukit.errors import NpukitError
from npukit.net.net import CORE, Net, Op
from npukit.net.passes.at_link import with_ends_at_link
from npukit.net.passes.by_channel import with_filters_by_channel
from npukit.net.passes.dead_channels import without_dead_channels
from npukit.net.passes.lines import with_lines
from npukit.net.passes.numbers import with_numbers_as_constants
from npukit.net.passes.simplify import with_repeats_as_resizing, with_transposing_products
from npukit.net.passes.states import with_states_in_place
from npukit.net.passes.tabled import with_tables
from npukit.net.text import print_net, print_op
from npukit.plan.tensors.op_order import in_overlapping_order

SHOWN_AROUND = 2
"""Ops that an error shows before and after the op in question."""


@dataclass(frozen=True)
class PassOptions:
    """The options of the passes that choose engines.

    `only`: the single accelerator to use. `slower_too`: an accelerator gets every op it supports, even if the core is
    faster. `strict`: refuse ops on the core. `chosen`: choices from tuning records for ops on accelerators.
    """

    engines: Engines
    only: str | None = None
    slower_too: bool = False
    strict: bool = False
    chosen: TunedChoice = as_predicted

    def fastest(self, net: Net, op: Op) -> tuple[float, str]:
        """The cycles and the name of the fastest accelerator that takes the op alone; infinite if there is none."""
        accelerators = (engine for name, engine in self.engines.items() if name != CORE and self.only in (None, name))
        takes = (each for each in accelerators if not each.abilities.subgraphs and each.refusal(net, op) is None)
        return min(((whole_cycles(net, op, each), each.name) for each in takes), default=(inf, ""))

    def cycles(self, net: Net, op: Op) -> float:
        """The cycles of the fastest accelerator."""
        return self.fastest(net, op)[0]

    def faster(self, net: Net, op: Op, made: Net, instead: Op) -> str | None:
        """The accelerator that computes `instead` faster than the core computes the op, or None."""
        cycles, name = self.fastest(made, instead)
        return name if cycles < whole_cycles(net, op, self.engines[CORE]) else None


@dataclass(frozen=True)
class Pass:
    """A pass, with the name in dumps and errors."""

    name: str
    run: Callable[[Net, PassOptions], Net]


OWN = (
    Pass("rounding", lambda net, options: with_rounding_of(net, options.engines, options.only)),
    Pass("plug-ins", lambda net, options: with_own_passes(net, options.engines)),
)
"""The passes that plug-ins decide."""

SIMPLIFYING = (
    Pass("dead-channels", lambda net, options: without_dead_channels(net)),
    Pass("numbers", lambda net, options: with_numbers_as_constants(net)),
)
"""The passes before any engine is chosen."""

PLACING = (
    Pass("repeats", lambda net, options: with_repeats_as_resizing(net)),
    Pass("products", lambda net, options: with_transposing_products(net)),
    Pass("ends", lambda net, options: with_ends_at_link(net)),
    Pass("phases", lambda net, options: with_phases(net, options.engines, options.only)),
    Pass("groups", lambda net, options: with_groups_joined(net, options.engines, options.only)),
    Pass("by-channel", lambda net, options: with_filters_by_channel(net, options.cycles)),
    Pass(
        "place", lambda net, options: with_placed_ops(net, options.engines, options.only, slower_too=options.slower_too)
    ),
    Pass("subgraphs", lambda net, options: with_subgraphs_of(net, options.engines, options.only)),
    Pass(
        "patterns",
        lambda net, options: with_patterns_of(net, options.engines, options.only, slower_too=options.slower_too),
    ),
    Pass("tables", lambda net, options: with_tables(net)),
    Pass("lines", lambda net, options: with_lines(net, options.faster)),
    Pass("choices", lambda net, options: with_choices(net, options.engines, options.chosen)),
    Pass("strict", lambda net, options: refuse_cpu_ops(net) if options.strict else net),
    Pass("overlap", lambda net, options: in_overlapping_order(net, options.engines)),
    Pass("states", lambda net, options: with_states_in_place(net)),
)
"""The passes that choose each op's engine and the order of the ops."""


NUMBERS = {each.name: number for number, each in enumerate((*OWN, *SIMPLIFYING, *PLACING), 1)}
"""The number of each pass in the file names of a dump."""


def run_passes(net: Net, passes: tuple[Pass, ...], options: PassOptions, variant: str = "") -> Net:
    """Run the passes in order and dump the net after each. An error shows the lines around the op in question."""
    for each in passes:
        try:
            net = each.run(net, options)
        except NpukitError as error:
            words = set(re.findall(r"[^\s:,;()'\"]+", error.message))
            place = next((place for place, op in enumerate(net.ops) if op.name in words), None)
            if place is None:
                raise
            facts = [*error.facts, f"in pass {each.name}:", *_lines(net, place)]
            raise type(error)(error.message, facts=facts, tries=error.tries) from error
        dumped(f"net-{NUMBERS[each.name]:02}-{each.name}{variant}.txt", partial(print_net, net))
    return net


def _lines(net: Net, place: int) -> Iterator[str]:
    first = max(place - SHOWN_AROUND, 0)
    for number, op in enumerate(net.ops[first : place + SHOWN_AROUND + 1], first):
        yield f"{'>' if number == place else ' '} {print_op(net, op)}"
