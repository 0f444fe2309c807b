"""The parts of states on a PE, as constants: the address and the initial value of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npukit.accel.interface import Address, ConstantArray
from npukit.codegen.constants import Fields, Record
from npukit.codegen.parts import Arena
from npukit.net.net import Net
from npukit.plan.ir.plan import PePlan, Restore
from npukit.plan.predict.memory import STATE_BYTES, initial_bytes
from npukit.structs import WORD

STATES = "net_states"


def state_arrays(net: Net, pe: PePlan, arena: Arena) -> Iterator[ConstantArray]:
    """The initial bytes of states, unless all bytes are equal."""
    for symbol, value in _begins(net, pe, arena):
        if initial_bytes(value):
            values = np.frombuffer(value.tobytes(), np.uint8)
            yield ConstantArray(symbol, values, comment=f"initial value of {symbol.removesuffix('_begins')}")


def state_records(net: Net, pe: PePlan, arena: Arena) -> Iterator[Record]:
    """The table of all parts, if there are any."""
    rows = list[Fields]()
    for symbol, value in _begins(net, pe, arena):
        begins = ("initial", Address(symbol)) if initial_bytes(value) else ("fill", value.tobytes()[0])
        rows.append((("data", Address(symbol.removesuffix("_begins"))), ("bytes", value.nbytes), begins))
    if rows:
        comment = "states, kept from frame to frame"
        yield Record(STATES, "net_state", tuple(rows), WORD, STATE_BYTES, comment, listed=True)


def _begins(net: Net, pe: PePlan, arena: Arena) -> Iterator[tuple[str, np.ndarray]]:
    """The C name and the initial value of each part."""
    initial = {state.input: state.initial for state in net.states}
    for name in (name for step in pe.steps if isinstance(step, Restore) for name in step.buffers):
        buffer = arena.buffers[name]
        yield f"{arena.place(buffer)}_begins", initial[buffer.tensor][buffer.box.slices]
