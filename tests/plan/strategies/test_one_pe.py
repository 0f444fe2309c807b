"""A single PE: kernels measured by tuning are kept, even where constants near make a plan faster than expected."""

from __future__ import annotations

import pytest

from npukit.accel.core_kernels import CostPreference
from npukit.accel.cpu import Cpu
from npukit.accel.engines import plugins_of, with_core
from npukit.net.net import CORE
from npukit.plan.planner import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.predict.test_kernels import random_net, with_memory


@pytest.mark.parametrize("kilobytes", [32, 96])
def test_kernels_preferred_by_tuning_are_kept(kilobytes: int) -> None:
    board, net = with_memory("nucleo-l4r5zi", kilobytes), random_net(1)
    engines = with_core(plugins_of(board), board)
    problem = Problem(Graph(net.with_ops(tuple(op.placed(CORE) for op in net.ops))), board, engines)
    preference = CostPreference({op.name: 30.0 for op in net.ops})
    tuned, usual = (plan_with_kernels(problem, "latency", each) for each in (preference, CostPreference()))
    assert len([line for line in tuned.log if line.strategy == "one_pe"]) <= 3
    assert isinstance(tuned.engines[CORE], Cpu)
    assert tuned.plan.predicted.latency_cycles > usual.plan.predicted.latency_cycles
