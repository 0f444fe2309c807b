"""A plan as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from npukit.board.noc import DRAM
from npukit.plan.ir.plan import Compute, Join, Message, PePlan, Plan, Restore, Send, Step, Wait
from npukit.plan.ir.purposes import Purposes


def print_plan(plan: Plan) -> str:
    """A summary, the memory of all PEs, then the steps, buffers and messages of each PE.

    Of data-parallel replicas (`Plan.alike`) the first is printed.
    """
    replicas = {twin: first for group in plan.alike[1:] for twin, first in zip(group, plan.alike[0], strict=True)}
    printed = [pe for pe in plan.pes if pe.pe not in replicas]
    lines, purposes = [_headline(plan), "", *_memory_table(plan)], Purposes(plan)
    for pe in printed:
        others = [str(twin) for twin, first in replicas.items() if first == pe.pe]
        lines += ["", f"PE {pe.pe}, role {pe.role}{_the_same(others)}"]
        lines += [*_steps_table(pe, purposes.of(pe)), "", *_buffer_table(pe)]
    sent = [step.message for pe in printed for step in pe.steps if isinstance(step, Send)]
    if sent:
        lines += ["", *_message_table(plan, sorted(sent))]
    return "\n".join(lines) + "\n"


def _the_same(others: Sequence[str]) -> str:
    plural = "" if len(others) == 1 else "s"
    return f"; the same on frames of their own: PE{plural} {', '.join(others)}" if others else ""


def _headline(plan: Plan) -> str:
    cycles = plan.predicted
    return (
        f"{plan.model} on {plan.board}, for {plan.objective}: {plan.pes_used} PEs{_on_chips(plan)}, "
        f"latency {cycles.latency_cycles:,} cycles, interval {cycles.interval_cycles:,}"
    )


def _on_chips(plan: Plan) -> str:
    return f" on {len(plan.chips)} chips, which all do what the first does" if len(plan.chips) > 1 else ""


def _memory_table(plan: Plan) -> Iterator[str]:
    names = ("code", "constants", "activations", "stack", "free")
    rows = [(str(pe.pe), *(f"{getattr(pe.memory, name):,}" for name in names)) for pe in plan.pes]
    return _table(("PE", *names), rows)


def _steps_table(pe: PePlan, purposes: Mapping[int, str]) -> Iterator[str]:
    rows = [_step_row(i, step, purposes.get(i, "")) for i, step in enumerate(pe.steps)]
    return _table(("step", "what", "engine", "output, or what is on its way", "cycles"), rows)


def _step_row(index: int, step: Step, purpose: str) -> Sequence[str]:
    match step:
        case Compute():
            name = f"{step.op}, submitted" if step.submitted else step.op
            return (
                str(index),
                name,
                step.engine,
                f"{step.output.buffer} {step.output.box}",
                f"{step.predicted_cycles:,}",
            )
        case Join():
            return str(index), f"wait for {step.engine}", step.engine, "", ""
        case Restore():
            return str(index), "begin states if they were reset", "", ", ".join(step.buffers), ""
        case Send():
            return str(index), f"send message {step.message}", "", purpose, ""
        case Wait():
            return str(index), f"wait for flag {step.flag}, {step.count} times", "", purpose, ""


def _buffer_table(pe: PePlan) -> Iterator[str]:
    rows = [
        (b.name, str(b.box), f"{b.bytes:,}", f"{b.offset:,}", f"{b.first} - {b.last}")
        for b in sorted(pe.buffers, key=lambda b: (b.offset, b.first))
    ]
    return _table(("buffer", "box", "bytes", "offset", "steps"), rows)


def _message_table(plan: Plan, numbers: Iterable[int]) -> Iterator[str]:
    rows = [_message_row(number, plan.messages[number]) for number in numbers]
    return _table(("message", "tensor", "box", "from PE", "to PE (flag)"), rows)


def _message_row(number: int, message: Message) -> Sequence[str]:
    landings = ", ".join(f"{landing.pe} ({landing.flag})" for landing in message.landings)
    source = "DRAM" if message.source_pe >= DRAM else str(message.source_pe)
    return str(number), message.tensor or message.source.buffer, str(message.source.box), source, landings


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
