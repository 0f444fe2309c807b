"""A plan as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from npukit.plan.plan import Compute, Join, PePlan, Plan, Send, Step, Wait


def print_plan(plan: Plan) -> str:
    """What the plan is, then memory, steps and buffers of each PE, then the messages."""
    lines = [_headline(plan), "", *_memory_table(plan)]
    for pe in plan.pes:
        lines += ["", f"PE {pe.pe}, role {pe.role}", *_steps_table(pe), "", *_buffer_table(pe)]
    if plan.messages:
        lines += ["", *_message_table(plan)]
    return "\n".join(lines) + "\n"


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


def _steps_table(pe: PePlan) -> Iterator[str]:
    return _table(("step", "what", "engine", "output", "cycles"), [_step_row(i, s) for i, s in enumerate(pe.steps)])


def _step_row(index: int, step: Step) -> Sequence[str]:
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
        case Send():
            return str(index), f"send message {step.message}", "", "", ""
        case Wait():
            return str(index), f"wait for flag {step.flag}, {step.count} times", "", "", ""


def _buffer_table(pe: PePlan) -> Iterator[str]:
    rows = [
        (b.name, str(b.box), f"{b.bytes:,}", f"{b.offset:,}", str(b.slots), f"{b.first} - {b.last}")
        for b in sorted(pe.buffers, key=lambda b: (b.offset, b.first))
    ]
    return _table(("buffer", "box", "bytes", "offset", "slots", "steps"), rows)


def _message_table(plan: Plan) -> Iterator[str]:
    rows = [
        (
            str(index),
            message.tensor,
            str(message.source.box),
            str(message.source_pe),
            ", ".join(f"{landing.pe} ({landing.flag})" for landing in message.landings),
        )
        for index, message in enumerate(plan.messages)
    ]
    return _table(("message", "tensor", "box", "from PE", "to PE (flag)"), rows)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
