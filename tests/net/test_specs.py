"""Specs of ops: each kind has a single spec, a reference, a kernel and rules."""

from __future__ import annotations

import pytest

from npukit.codegen.tir.kernels import KERNELS as TIR
from npukit.net.examples import example
from npukit.net.net import Fused
from npukit.net.ops import Attributes
from npukit.net.ops.table import SPECS
from npukit.net.receptive import cuttable_axes, input_rules

NO_WORK = {"reshape", "tvm_code"}
"""Kinds without a TIR kernel: `reshape` does no work, `tvm_code` is C already."""


def kinds(base: type[Attributes]) -> set[str]:
    """The kinds of all classes of attributes without further subclasses."""
    made = base.__subclasses__()
    return {kind for each in made for kind in kinds(each)} if made else {base.kind}


def test_each_kind_has_a_spec_and_a_kernel() -> None:
    assert set(SPECS) == kinds(Attributes) - {Fused.kind}
    assert set(TIR) == set(SPECS) - NO_WORK


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_an_example_has_a_rule_for_each_axis_that_it_reads(kind: str) -> None:
    net = example(kind)
    op = net.ops[-1]
    rules, names = input_rules(net, op), list(net.activations(op))
    assert [len(rule) for rule in rules] == [len(net.tensor(name).shape) for name in names]
    assert all(axis < len(net.tensor(op.output).shape) for axis in cuttable_axes(net, op))
