"""An accelerator from outside: the C calls a wrapper by name, the driver is compiled in, and errors are passed on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from codegen.host import HostProgram, build
from codegen.random_ops import random_inputs
from net.small_nets import op_net, quantized
from npukit.accel.cpu import Cpu
from npukit.accel.interface import Abilities, Address, Call, CommandFormat, ConstantArray, Cost, Lowered, Tile
from npukit.board.board import Board, load_board
from npukit.codegen.generate import generate
from npukit.codegen.parts import Arena, lower_parts
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Lookup
from npukit.net.reference import run_reference
from npukit.net.tensor import Tensor
from npukit.plan.planner import plan_network

SIZE = 24

DRIVER = """#include <stdint.h>
int32_t vendor_lookup(void *input, const int8_t *table, void *output, int32_t count, int32_t status);
int32_t vendor_lookup(void *input, const int8_t *table, void *output, int32_t count, int32_t status)
{
    const int8_t *from = input;
    int8_t *to = output;
    for (int32_t i = 0; i < count; i++) {
        to[i] = table[from[i] + 128];
    }
    return status;
}
"""


@dataclass
class Vendor:
    """An accelerator for lookups; every call returns `status`."""

    driver: Path
    status: int = 0
    name: str = "vendor"
    commands: CommandFormat | None = None
    abilities: Abilities = field(default_factory=Abilities)

    def refusal(self, net: Net, op: Op) -> str | None:
        return None if isinstance(op.attributes, Lookup) else "only lookups"

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        return Cost(output.elements, 256)

    def lower(self, tile: Tile) -> Lowered:
        table = ConstantArray(f"{tile.name}_table", tile.net.constants[tile.op.inputs[1]], 4, "the function")
        places = (tile.inputs[0].address, Address(table.symbol), tile.output.address)
        return Lowered((table,), Call("vendor_lookup", (*places, tile.output.box.elements, self.status)))

    def sources(self, board: Board) -> tuple[Path, ...]:
        return (self.driver,)


def _net() -> Net:
    values = np.random.default_rng(7).permutation(np.arange(-128, 128)).astype(np.int8)
    table = Tensor("table", (256,), "int8")
    net = op_net(Lookup(), [quantized("in", (SIZE,), 0.5)], quantized("out", (SIZE,), 0.5), {table: values})
    return net.with_ops(tuple(op.placed("vendor") for op in net.ops))


def _program(folder: Path, status: int) -> HostProgram:
    driver = folder / "driver" / "vendor.c"
    driver.parent.mkdir()
    driver.write_text(DRIVER)
    net, board = _net(), load_board("mps2-an386")
    engines = {"vendor": Vendor(driver, status), "cpu": Cpu()}
    (sources,) = generate(net, plan_network(net, board, engines, max_pes=1), board, engines, bytes(16))
    assert sources.drivers == (driver,)
    return build(sources, folder)


def test_its_wrapper_is_called(tmp_path: Path) -> None:
    inputs = random_inputs(_net(), np.random.default_rng(8))
    assert _program(tmp_path, 0).run(inputs) == [run_reference(_net(), inputs)[0].tobytes()]


@pytest.mark.parametrize("observed", [True, False])
def test_its_error_ends_the_frame(tmp_path: Path, observed: bool) -> None:
    inputs = random_inputs(_net(), np.random.default_rng(9))
    seen: list[int] = []
    assert _program(tmp_path, 5).status(inputs, seen.append if observed else None) == 5
    assert seen == []


def test_a_wrapper_has_one_prototype_wherever_its_constants_lie(tmp_path: Path) -> None:
    net, board = _net(), load_board("mps2-an386")
    engines = {"vendor": Vendor(tmp_path), "cpu": Cpu()}
    (pe,) = plan_network(net, board, engines, max_pes=1).pes
    (step,) = pe.computes()
    streamed = replace(pe, steps=(replace(step, constants=pe.buffers[0].name, streamed="piece"),))
    (resident,), (other,) = (lower_parts(net, each, Arena(net, pe), engines) for each in (pe, streamed))
    assert other.streamed
    assert not other.lowered.constants
    assert resident.prototype == other.prototype
    assert resident.prototype == "int32_t vendor_lookup(void *, const int8_t *, void *, int32_t, int32_t);"
