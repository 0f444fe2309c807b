"""`int8_of` and `int8_of_ratio` of `firmware/libm/math.h`: the device's instructions and the host's C against numpy,
also for the ends of floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.test_core_moves import BOARD, run
from npukit.accel.cpu import Cpu
from npukit.net.parse import parse_net
from npukit.net.reference import run_reference
from npukit.plan.planner import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

NUMBERS = 4096
TEXT = """net rounded
input x: float32[1,{0}]
op y: int8[1,{0}] scale 1.0 zero {1} = tvm_code(x) what="rounded" code="{2}" cycles=100000
output y
"""
CODE = r"  for (int32_t i = 0; i < {0}; ++i) {{\n    output[i] = ((int8_t)int8_of(p0[i], {1}));\n  }}\n"


def numbers() -> np.ndarray:
    """All halves near int8, the ends of floats, and floats with any bits."""
    random = np.random.default_rng(1)
    ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**31, -(2.0**31), 1e-45, 3.4e38, -3.4e38], np.float32)
    halves = np.arange(-600, 600).astype(np.float32) / 2
    near = np.concatenate([np.nextafter(halves, np.float32(side)) for side in (-np.inf, np.inf)])
    known = np.concatenate([ends, halves, near])
    rest = random.integers(0, 1 << 32, NUMBERS - len(known), dtype=np.uint32).view(np.float32)
    return np.concatenate([known, rest]).reshape(1, 1, NUMBERS)


@pytest.mark.parametrize("zero", [0, 127, -128])
def test_device_and_host_round_alike(zero: int, tmp_path: Path) -> None:
    net = parse_net(TEXT.format(NUMBERS, zero, CODE.format(NUMBERS, zero)), {})
    given = numbers()
    with np.errstate(invalid="ignore"):
        real = np.nan_to_num(given[0].astype(np.float64), posinf=1e9, neginf=-1e9)
    wanted = np.clip(np.rint(real) + zero, -128, 127)
    np.testing.assert_array_equal(run_reference(net, [given[0]])[0], wanted)
    planned = plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")
    run(net, planned, tmp_path, inputs=given)


@pytest.mark.parametrize("step", [0.05, 1.0, 3.7e-9, 6.1e12])
@pytest.mark.parametrize("zero", [3, 127, -128])
def test_quotients_are_rounded_as_if_divided(step: float, zero: int, tmp_path: Path) -> None:
    """Also of numbers next to halves of a step, up to three floats away."""
    halves = (np.arange(-600, 600) / 2).astype(np.float32) * np.float32(step)
    near = [np.nextafter(halves, np.float32(side * np.inf)) for side in (-1, 1)]
    near += [np.nextafter(each, np.float32(side * np.inf)) for each, side in zip(near, (-1, 1), strict=True)]
    given = np.concatenate([halves, *near, numbers().ravel()]).astype(np.float32).reshape(1, 1, -1)
    inverse = np.float32(1) / np.float32(step)
    call = f"int8_of_ratio(p0[i], {np.float32(step)!s}f, {inverse!s}f, {zero})"
    texts = [CODE.format(given.size, zero), CODE.format(given.size, zero).replace(f"int8_of(p0[i], {zero})", call)]
    plain, net = (parse_net(TEXT.format(given.size, zero, text), {}) for text in texts)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        wanted = run_reference(plain, [given[0] / np.float32(step)])[0]
    np.testing.assert_array_equal(run_reference(net, [given[0]])[0], wanted)
    planned = plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")
    run(net, planned, tmp_path, inputs=given)


def test_the_last_of_two_numbers_is_rounded(tmp_path: Path) -> None:
    """The compiler does not need the zero point after the last number, and may reuse its register."""
    net = parse_net(TEXT.format(2, -100, CODE.format(2, -100)), {})
    planned = plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")
    run(net, planned, tmp_path, inputs=np.array([[[30.4, 7.6]]], np.float32))
