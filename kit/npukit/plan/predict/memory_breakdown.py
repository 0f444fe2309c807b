"""The bytes of a PE's memory by kind."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.plan.ir.plan import Buffer, PePlan, Plan
from npukit.plan.predict.memory import control_bytes


@dataclass(frozen=True)
class Kinds:
    """Bytes of one PE's memory. All of them together are what its `MemoryUse` says.

    What lies in the arena is counted at the step at which most of it is in use; other bytes than those counted there,
    which other steps want, are `activations` too.
    """

    code: int
    constants: int
    """Weights and the like; those that stay in the PE."""
    commands: int
    descriptors: int
    table: int
    """The table of the steps of a long program, and of its layers."""
    records: int
    """The control block, and a record of each layer."""
    activations: int
    """Tiles that the PE computes, what the host writes and reads."""
    receive_buffers: int
    """Bytes for what other PEs send or DRAM has: halos and other parts of the buffers of tiles, too."""
    weight_tiles: int
    """Bytes for streamed constants."""
    scratch: int
    stack: int


def kinds_of(plan: Plan, pe: PePlan) -> Kinds:
    """The bytes of one of the plan's PEs by kind."""
    use, orders, records = pe.memory, pe.orders, control_bytes(len(pe.tiles))
    received, weight_tiles, scratch = _apart(plan, pe)
    return Kinds(
        code=use.code,
        constants=use.constants - orders.bytes,
        commands=orders.commands,
        descriptors=orders.descriptors,
        table=orders.table,
        records=records,
        activations=use.activations - records - received - weight_tiles - scratch,
        receive_buffers=received,
        weight_tiles=weight_tiles,
        scratch=scratch,
        stack=use.stack,
    )


def _apart(plan: Plan, pe: PePlan) -> tuple[int, int, int]:
    """Bytes at the fullest step that only receive, of weight tiles, of scratch memory."""
    computes = list(pe.computes())
    weight_tiles = {step.constants for step in computes if step.constants}
    scratch = {step.scratch for step in computes if step.scratch}
    landed = {landing.view.buffer for m in plan.messages for landing in m.landings if landing.pe == pe.pe}
    live = _at_the_fullest_step(pe)
    received = sum(_not_computed(pe, buffer) for buffer in live if buffer.tensor and buffer.name in landed)
    weight_tiled, scratched = (sum(b.bytes for b in live if b.name in names) for names in (weight_tiles, scratch))
    return received, weight_tiled, scratched


def _not_computed(pe: PePlan, buffer: Buffer) -> int:
    """Bytes of a tensor's buffer that the PE leaves to others: halos, what is gathered."""
    made = {step.output.box for step in pe.computes() if step.output.buffer == buffer.name}
    elements = max(buffer.box.elements, 1)
    return buffer.bytes * max(elements - sum(box.elements for box in made), 0) // elements


def _at_the_fullest_step(pe: PePlan) -> list[Buffer]:
    """Buffers in use at the step at which they take most; of those that lie on each other one."""
    steps = {buffer.first for buffer in pe.buffers}
    return max((_live(pe, step) for step in sorted(steps)), key=lambda live: sum(b.bytes for b in live), default=[])


def _live(pe: PePlan, step: int) -> list[Buffer]:
    """The buffers live at a step: the largest of those at one place, and of a tensor and its reshapes the tensor."""
    live = (buffer for buffer in reversed(pe.buffers) if buffer.first <= step <= buffer.last)
    return list({buffer.offset: buffer for buffer in sorted(live, key=lambda buffer: buffer.bytes)}.values())
