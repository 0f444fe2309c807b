"""Whole networks of generated kernels, run on an emulated core, against outputs nobody here computed."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from accel.cortex_m import laboratory, layers
from helpers import first_of, models
from npukit.accel.core_nodes import core_nodes
from npukit.accel.cortex_m.network import INPUT, Node, choose, choose_thriftily
from npukit.errors import DoesNotFit
from npukit.frontend.models import load_net_from_model
from npukit.net.net import CORE, Net
from npukit.net.passes.dead_channels import without_dead_channels
from npukit.net.reference import evaluate

# Instructions of TensorFlow Lite Micro with CMSIS-NN (benchmarks/core/cortex_m4.py), the share of them that is allowed,
# and its bytes of RAM: arena and stack.
PEERS = {
    "kws_ref_model": (7_701_741, 0.35, 24_360),
    "ad01_int8": (583_201, 0.45, 3_624),
    "pretrainedResnet_quant": (29_862_439, 0.35, 56_536),
    "vww_96_int8": (24_102_778, 0.35, 102_248),
}


@cache
def network(name: str) -> Net:
    net = without_dead_channels(load_net_from_model(models() / f"{name}.tflite"))
    return net.with_ops(tuple(op.placed(CORE) for op in net.ops))


def nodes(name: str) -> tuple[Node, ...]:
    return core_nodes(network(name)).nodes


def finished(net: Net, values: np.ndarray) -> np.ndarray:
    """The softmax of what such kernels leave, if it is the last op: that is not one of them."""
    last = net.ops[-1]
    if last.kind != "softmax":
        return values
    return evaluate(net.alone(last), [values.reshape(net.tensor(last.output).shape)])[last.output].ravel()


@pytest.mark.parametrize("objective", ["latency", "memory"])
@pytest.mark.parametrize("name", first_of(list(PEERS), 2))
def test_a_network_equals_the_golden_outputs(name: str, objective: str):
    peer, share, _ = PEERS[name]
    choice = choose(nodes(name), objective=objective)
    golden = np.load(models() / f"{name}.npz")
    for case in (0, 1):
        got, instructions = laboratory.run_network(choice, golden["in0"][case])
        want = golden["out0_tflm" if "out0_tflm" in golden else "out0"][case]
        np.testing.assert_array_equal(finished(network(name), got.view(np.int8)), want.ravel())
        assert instructions == choice.instructions
    assert choice.instructions <= (share if objective == "latency" else 0.45) * peer


@pytest.mark.parametrize("name", PEERS)
def test_memory_keeps_constants_within_the_model_file(name: str):
    choice = choose(nodes(name), objective="memory")
    assert choice.constant_bytes <= (models() / f"{name}.tflite").stat().st_size


@pytest.mark.parametrize("assembler", ["gcc", "zig"])
def test_one_file_holds_the_code_of_a_network(assembler: str):
    choice = choose(nodes("kws_ref_model"))
    routines = {kernel.routine.name: kernel.routine.assembly for kernel in choice.kernels}
    assert len(routines) < len(choice.kernels)
    parts = (laboratory.PROLOGUE, *routines.values(), *(laboratory.entry_of(kernel) for kernel in choice.kernels))
    code = laboratory.object_code("".join(parts), assembler)
    assert choice.code_bytes <= len(code) <= choice.code_bytes + 4 * (len(routines) + 1)


def test_a_quarter_of_the_sram_is_worth_a_fiftieth_of_the_time():
    fastest, chosen = choose(nodes("kws_ref_model")), choose_thriftily(nodes("kws_ref_model"))
    assert chosen.live_bytes <= 0.75 * fastest.live_bytes
    assert fastest.time < chosen.time <= 1.02 * fastest.time


def test_no_layer_goes_without_a_kernel_for_the_sake_of_sram():
    """A padded convolution in plain C needs no border, and nobody predicts its time here."""
    rng = np.random.default_rng(1)
    first = layers.conv(rng, (4, 4, 32), 32)
    second = layers.conv(rng, (4, 4, 32), 32, (3, 3), strides=(2, 2), padding=(1, 1, 1, 1))
    chosen = choose_thriftily([Node("input", (4, 4, 32), (INPUT,)), Node.of(first, 0), Node.of(second, 1)])
    assert [call.kernel is None for call in chosen.calls if call.node] == [False, False, False]
    assert choose(chosen.nodes, sram=3 * chosen.live_bytes // 4).without_kernel == 2


def test_sram_bounds_the_choice():
    free = choose(nodes("kws_ref_model"))
    tight = choose(nodes("kws_ref_model"), sram=20_000)
    assert tight.live_bytes <= 20_000 < free.live_bytes
    assert tight.instructions > free.instructions
    with pytest.raises(DoesNotFit, match="conv2d"):
        choose(nodes("kws_ref_model"), sram=4_000)
