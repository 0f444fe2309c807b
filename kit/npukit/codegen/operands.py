"""Addresses and strides of a tile's operands, from the views and buffers of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.accel.interface import Address, Operand
from npukit.codegen.names import Names
from npukit.net.net import Net
from npukit.plan.ir.operands import operand_in
from npukit.plan.ir.plan import Buffer, PePlan, View
from npukit.plan.predict.memory import aligned


class Arena:
    """The buffers of one PE, with the C name of each buffer's offset. `bytes`: the size within the first bank."""

    def __init__(self, net: Net, pe: PePlan, places: Sequence[str] = ()) -> None:
        """`places`: the C names of the buffers, if taken from another PE."""
        names = Names()
        self._net = net
        ends = (aligned(buffer.offset + buffer.bytes) for buffer in pe.buffers)
        self.bytes = max((end for end in ends if not pe.memory.banks or end <= pe.memory.activations), default=0)
        self.buffers = {buffer.name: buffer for buffer in pe.buffers}
        named = places or [f"at_{names.identifier(buffer.name)}" for buffer in pe.buffers]
        self.offsets = dict(zip(self.buffers, named, strict=True))
        self._by_place = dict(zip(named, self.buffers.values(), strict=True))

    def of_twin(self, pe: PePlan) -> Arena:
        """The buffers of a PE with the same layout, under the same C names."""
        return Arena(self._net, pe, tuple(self.offsets.values()))

    def operand(self, view: View) -> Operand:
        """The operand of a view: a box of a tensor in a buffer."""
        buffer = self.buffers[view.buffer]
        tensor = self._net.tensor(buffer.tensor)
        return operand_in(buffer, tensor, view.box, self.offsets[buffer.name])

    def scratch(self, name: str) -> Address:
        return Address(self.offsets[name])

    def place(self, buffer: Buffer) -> str:
        """The C name of the buffer's offset."""
        return self.offsets[buffer.name]

    def of_place(self, name: str) -> Buffer:
        """The buffer whose offset has this C name."""
        return self._by_place[name]
