"""Kernels in assembly and plain C in the same network: every layer bit for bit, for any layout and address."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.core_networks import CoreBuilder, mixed_net, run_on_emulator
from helpers import first_of, needs
from npukit.accel.core_kernels import OpKernels, choose_core_kernels
from npukit.project.images.elf import Elf


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "compiler"), first_of([(0, "zig"), (1, "gcc"), (2, "zig")], 2))
def test_every_layer_of_a_mixed_network(tmp_path: Path, seed: int, compiler: str) -> None:
    net = mixed_net(seed)
    ran = run_on_emulator(net, tmp_path, compiler, ("latency", "memory")[seed % 2])
    assert ran.validation.passed, ran.validation.mismatches
    assert ran.validation.tiles_checked == ran.validation.cases * sum(op.kind != "reshape" for op in net.ops)
    notes = ran.planned.kernels
    assert set(notes) == {op.name for op in net.ops if op.kind != "reshape"}
    assert {note.startswith("plain C: ") for note in notes.values()} == {True, False}


@needs("qemu-system-arm")
@pytest.mark.parametrize("seed", first_of([3, 4]))
def test_qemu_faults_where_silicon_does_and_finds_nothing(tmp_path: Path, seed: int) -> None:
    """Loads and stores of several words at unaligned addresses: the built-in emulator's processor accepts them."""
    net = mixed_net(seed)
    ran = run_on_emulator(net, tmp_path, None, ("latency", "memory")[seed % 2], "mps2-an386")
    assert ran.validation.passed, ran.validation.mismatches


@needs("qemu-system-arm")
@pytest.mark.parametrize(("seed", "compiler"), first_of([(5, "zig"), (6, "gcc")]))
def test_vectors_of_a_mixed_network(tmp_path: Path, seed: int, compiler: str) -> None:
    """QEMU runs the test, because the built-in emulator's processor has no Helium."""
    ran = run_on_emulator(mixed_net(seed), tmp_path, compiler, board="mps3-an547")
    assert ran.validation.passed, ran.validation.mismatches
    notes = " ".join(ran.planned.kernels.values())
    assert "Helium products" in notes
    assert "Helium depthwise" in notes


@pytest.mark.exhaustive
def test_the_stack_analysis_agrees_with_the_generator(tmp_path: Path) -> None:
    """The analysis reads the image's instructions. The generator counts while writing the kernel, and is also measured
    on an emulated core."""
    net = mixed_net(0)
    ran = run_on_emulator(net, tmp_path)
    functions = {function.name for function in Elf(ran.image.elf).functions.values()}
    compared = 0
    every = choose_core_kernels(net, "latency").ops.values()
    for made in (made for made in every if isinstance(made, OpKernels)):
        for kernel in made.kernels:
            (name,) = (name for name in functions if name.endswith(kernel.routine.name[-8:]))
            assert ran.image.stack.functions[name] == kernel.stack_bytes
            compared += 1
    assert compared > 10


def test_memory_takes_fewer_bytes_and_latency_fewer_cycles() -> None:
    net = mixed_net(0)
    fast, small = (choose_core_kernels(net, objective) for objective in ("latency", "memory"))
    assert fast.ops.keys() == small.ops.keys()
    costs = [[made.cost for made in choice.ops.values()] for choice in (fast, small)]
    assert sum(cost.cycles for cost in costs[0]) < sum(cost.cycles for cost in costs[1])
    sizes = [sum(c.constant_bytes for c in cs) + k.code_bytes for cs, k in zip(costs, (fast, small), strict=True)]
    assert sizes[0] > sizes[1]


def test_what_has_no_kernel_says_why() -> None:
    b = CoreBuilder("product", 0)
    net = b.net(b.multiply(b.input(1, 4, 4, 8), b.input(1, 4, 4, 1)))
    assert [*choose_core_kernels(net, "latency").notes.values()] == ["plain C: there are no kernels for multiply"]
    notes = choose_core_kernels(mixed_net(0), "latency").notes
    (padded,) = (note for name, note in notes.items() if name.startswith("max_pool"))
    assert padded == "plain C: windows reach outside the input by (1, 1, 1, 1)"


def test_a_depthwise_convolution_of_what_nobody_makes_planes_of_copies_its_input() -> None:
    notes = choose_core_kernels(mixed_net(0), "latency").notes
    assert notes["depthwise_conv2d17"] == "input copied, depthwise planes16 to pixels"
