"""Text form of a plan, with equal PEs printed once. `ir/parse.py` reads it back to an equal plan.

    plan digits_int8 on pe-mesh for throughput
    predicted latency 5210 interval 1302
    frames 4
    chips 0
    alike 1-2 3-4
    dram tensor image[0:1, 0:8, 0:8, 0:1] 64 bytes at 0, steps @0 0-40, @1 0-40
    pe 1 role 1 code 3416 constants 8400 activations 960 stack 640 free 117656 variables 0 commands 512 ... table 0
      tensor conv2d_0#2[0:1, 3:5, 0:8, 0:4] 64 bytes at 128, steps @0 0-3, @2 20-23
      block "room for conv2d_0"[0:0] 0 bytes at 0, steps @0 1-1
      0 send 7 bytes "room for conv2d_0"@0 to 2 flag 4
      1 compute conv2d_0 on mac_array: conv2d_0@0[0:1, 0:4, 0:8, 0:4] = image@0; 420 cycles
      2 send 8 conv2d_0@0[0:1, 3:4, 0:8, 0:4] to 2 as conv2d_0@0#2 flag 4
      3 wait 4 x 1  # conv2d_0 from PE 2
      4 join mac_array
      5 restore memory_0@0
      stolen 1:12
    pe 3 as 1

`@` marks the frame of a name, `%` the micro-batch, `#` the number if a PE has several. A box is omitted if it equals
the whole box of the buffer or the message. Streamed constants lie in DRAM under their own name. A PE `as` another
copies its counterpart in the groups of `alike` (`ir/replicas.py`). `stolen`: the predicted cycles taken by messages
from engines, by step. The purpose of a wait, behind `#`, is a comment for readers.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby

from npukit.board.noc import DRAM, NO_FLAG
from npukit.net.text import quoted
from npukit.plan.ir.names import has_frames, read_name
from npukit.plan.ir.plan import (
    SENT_FLAG,
    Buffer,
    Compute,
    Join,
    Landing,
    MemoryUse,
    Message,
    Orders,
    PePlan,
    Plan,
    Restore,
    Send,
    Step,
    View,
    Wait,
)
from npukit.plan.ir.replicas import replicas_in


def print_plan(plan: Plan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    predicted = plan.predicted
    yield f"plan {quoted(plan.model)} on {quoted(plan.board)} for {plan.objective}"
    yield f"predicted latency {predicted.latency_cycles} interval {predicted.interval_cycles}"
    yield f"frames {plan.frames}"
    yield f"chips {_numbers(plan.chips)}"
    if plan.alike:
        yield f"alike {' '.join(map(_numbers, plan.alike))}"
    yield from (f"dram {line}" for line in _buffers(plan.dram))
    firsts = _copies(plan)
    for pe in plan.pes:
        yield from [f"pe {pe.pe} as {firsts[pe.pe]}"] if pe.pe in firsts else _pe(plan, pe)
        stolen = [f"{i}:{s.stolen}" for i, s in enumerate(pe.steps) if isinstance(s, Compute) and s.stolen]
        if stolen:
            yield f"  stolen {' '.join(stolen)}"


def _copies(plan: Plan) -> dict[int, int]:
    """The PEs printed as copies, each with its original in the first group."""
    found: dict[int, int] = {}
    for replica in replicas_in(plan.alike):
        for first, pe in replica.places.items():
            one = plan.by_pe[first]
            sent = [step.message for step in one.steps if isinstance(step, Send)]
            same = all(replica.message(plan.messages[n]) == plan.messages[n + replica.number] for n in sent)
            if same and replica.pe(one.with_stolen({})) == plan.by_pe[pe].with_stolen({}):
                found[pe] = first
    return found


def _pe(plan: Plan, pe: PePlan) -> Iterator[str]:
    """The lines of a PE in full."""
    memory, orders = pe.memory, pe.orders
    numbers = [f"{name} {getattr(each, name)}" for each in (memory, orders) for name in numbers_of(type(each))]
    yield (
        f"pe {pe.pe} role {pe.role} {' '.join(numbers)}"
        + (f" in pages {','.join(f'{page.first}+{page.bytes}' for page in orders.pages)}" if orders.pages else "")
        + (f" banks {','.join(map(str, memory.banks))}" if memory.banks else "")
    )
    yield from (f"  {line}" for line in _buffers(pe.buffers))
    content = purposes(plan, pe)
    for index, step in enumerate(pe.steps):
        yield f"  {index} {_step(plan, pe, step)}" + (f"  # {content[index]}" if isinstance(step, Wait) else "")


def numbers_of(kind: type[MemoryUse | Orders]) -> list[str]:
    """The fields with a number."""
    return [field.name for field in fields(kind) if field.type == "int"]


def _step(plan: Plan, pe: PePlan, step: Step) -> str:
    match step:
        case Compute():
            return _compute(plan, pe, step)
        case Send(number):
            return f"send {number} {_message(plan, plan.messages[number])}"
        case Wait(flag, count):
            return f"wait {flag} x {count}"
        case Join(engine):
            return f"join {quoted(engine)}"
        case Restore(buffers):
            return f"restore {', '.join(_name(plan, name, tensor=True) for name in buffers)}"


def _compute(plan: Plan, pe: PePlan, step: Compute) -> str:
    inputs = ", ".join(_view(plan, pe, view) for view in step.inputs)
    output = _view(plan, pe, step.output)
    frame = "" if read_name(step.output.buffer).frame == step.frame else f", frame {step.frame}"
    scratch = f", scratch {_name(plan, step.scratch)}" if step.scratch else ""
    constants = f", constants {_name(plan, step.constants)}" if step.constants else ""
    usual = read_name(step.constants).stem if step.constants else None
    streamed = f" from {quoted(step.streamed)}" if step.streamed and step.streamed != usual else ""
    submitted = ", submitted" if step.submitted else ""
    called = f"compute {quoted(step.op)} on {quoted(step.engine)}: {output} = {inputs}; {step.cycles} cycles"
    return called + frame + scratch + constants + streamed + submitted


def _message(plan: Plan, message: Message) -> str:
    source, name = message.source, _name(plan, message.source.buffer, tensor=bool(message.tensor))
    plain = read_name(source.buffer).stem == message.tensor
    kind = "" if plain else f"of {quoted(message.tensor)} " if message.tensor else "bytes "
    box = "" if plan.buffer(message.source_pe, source.buffer).box == source.box else str(source.box)
    from_pe = " from dram" if message.source_pe == DRAM else ""
    ends = groupby(message.landings, key=lambda landing: (landing.view, landing.flag))
    return f"{kind}{name}{box}{from_pe}" + "".join(_landed(plan, message, list(same)) for _, same in ends)


def _landed(plan: Plan, message: Message, landings: Sequence[Landing]) -> str:
    view, flag = landings[0].view, landings[0].flag
    name = _name(plan, view.buffer, tensor=bool(message.tensor))
    as_name = "" if view.buffer == message.source.buffer else f" as {name}"
    box = "" if view.box == message.source.box else f" in {view.box}"
    if flag == NO_FLAG:
        return f" to dram{as_name}{box}"
    return f" to {_numbers([landing.pe for landing in landings])}{as_name}{box} flag {flag}"


def _view(plan: Plan, pe: PePlan, view: View) -> str:
    return _name(plan, view.buffer, tensor=True) + ("" if pe.buffer(view.buffer).box == view.box else str(view.box))


def _name(plan: Plan, text: str, *, tensor: bool = False) -> str:
    """A buffer's name. If each frame has its own buffer, frame 0 is marked too."""
    name, several = read_name(text), plan.frames > 1
    framed = several and (tensor or has_frames(name.stem))
    batch = f"%{name.micro_batch}" if name.micro_batch or (several and not framed) else ""
    return quoted(name.stem) + batch + (f"@{name.frame}" if framed or name.frame else "") + _number(name.number)


def _number(number: int) -> str:
    return f"#{number}" if number > 1 else ""


def _buffers(buffers: Sequence[Buffer]) -> Iterator[str]:
    """The buffers, a line each. Buffers that differ only in frame, micro-batch and steps share a line."""
    together: dict[tuple[object, ...], list[Buffer]] = {}
    for each in buffers:
        name = read_name(each.name)
        key = (name.stem, name.number, each.tensor, each.box, each.bytes, each.offset, each.arrangement)
        together.setdefault(key, []).append(each)
    for same in together.values():
        each, name = same[0], read_name(same[0].name)
        kind = (
            "block" if not each.tensor else "tensor" if each.tensor == name.stem else f"tensor {quoted(each.tensor)} as"
        )
        place = f"{each.bytes} bytes at {each.offset}"
        if form := each.arrangement:
            shape, strides = (",".join(map(str, sizes)) for sizes in (form.shape, form.strides))
            place += f", arranged {form.bytes} {form.origin} {shape} {strides} {form.dtype} {form.subtracted}"
        yield f"{kind} {quoted(name.stem)}{_number(name.number)}{each.box} {place}, steps {', '.join(map(_use, same))}"


def _use(buffer: Buffer) -> str:
    name = read_name(buffer.name)
    batch, frame = (f"%{name.micro_batch} " if name.micro_batch else ""), (f"@{name.frame} " if name.frame else "")
    return f"{batch}{frame}{buffer.first}-{buffer.last}"


def _numbers(numbers: Sequence[int]) -> str:
    """Numbers in their order, `0-3,7,9-8`. A run in steps of 1 or -1 is a span."""
    spans: list[list[int]] = []
    for number in numbers:
        span = spans[-1] if spans else []
        if span and abs(number - span[-1]) == 1 and (len(span) == 1 or number - span[-1] == span[1] - span[0]):
            span.append(number)
        else:
            spans.append([number])
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in spans)


def purposes(plan: Plan, pe: PePlan) -> dict[int, str]:
    """The purpose of each send and wait of a PE, by step number."""
    arrived, found = awaited(plan, pe), dict[int, str]()
    for index, step in enumerate(pe.steps):
        match step:
            case Send(number):
                message = plan.messages[number]
                found[index] = f"{_content(message)} to {_pes(each.pe for each in message.landings)}"
            case Wait(flag) if flag == SENT_FLAG:
                found[index] = "sent messages have left"
            case Wait():
                found[index] = _arrivals([plan.messages[number] for number in arrived[index]])
    return found


def awaited(plan: Plan, pe: PePlan) -> dict[int, tuple[int, ...]]:
    """The messages taken by each wait of a PE, by step number.

    A flag is reused only after waits for everything counted before (`Traffic.send`). The waits for a flag therefore
    take the messages to the flag in the order of their numbers.
    """
    landing = {flag: deque(numbers) for flag, numbers in plan.landing_on[pe.pe].items()}
    waits = ((i, step) for i, step in enumerate(pe.steps) if isinstance(step, Wait) and step.flag != SENT_FLAG)
    return {i: tuple(landing[step.flag].popleft() for _ in range(step.count)) for i, step in waits}


def _arrivals(messages: Sequence[Message]) -> str:
    """`conv2d_0 from PEs 1, 2; constants of dense_0 from DRAM`"""
    sources: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        sources[_content(message)].append(message.source_pe)
    return "; ".join(f"{content} from {_pes(pes)}" for content, pes in sources.items())


def _content(message: Message) -> str:
    """The tensor, or the plan's name of the streamed constants or the signal."""
    return message.tensor or message.source.buffer


def _pes(pes: Iterable[int]) -> str:
    """`PE 1`, `PEs 1, 2, DRAM`"""
    names = ["DRAM" if pe >= DRAM else str(pe) for pe in sorted(set(pes))]
    if names == ["DRAM"]:
        return "DRAM"
    return f"PE{'' if len(names) == 1 else 's'} {', '.join(names)}"
