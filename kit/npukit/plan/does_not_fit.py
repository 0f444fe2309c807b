"""The refusal of a network that does not fit: the missing bytes, their cause, and remedies with their effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count as count_from
from itertools import takewhile
from typing import NoReturn

from npukit.accel.engines import AS_ASKED, with_core
from npukit.board.board import Board, known_boards
from npukit.errors import DoesNotFit
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Conv2d, Dense, DepthwiseConv2d, Dequantize, Quantize, TransposeConv2d
from npukit.net.receptive import cuttable_axes
from npukit.plan.batch.channel_bands import in_bands, narrowed
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import crowded_region, memory_use, program_bytes
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Line, Tried, summary_of
from npukit.plan.search.search import Search
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem, Work
from npukit.plan.tensors.routes import pes_to_use

FILTERS = Conv2d | DepthwiseConv2d | Dense | TransposeConv2d

Retry = Callable[[Problem], Search]
"""A search on other PEs or another board, for the outcome of a remedy."""


def refusal(problem: Problem, nearest: Tried | None, log: Sequence[Line], retry: Retry) -> DoesNotFit:
    """The refusal of a network, from the candidate with the fewest missing bytes."""
    if nearest and isinstance(nearest.outcome, Lacks):
        pes, missing = nearest.candidate.batch.pes, nearest.outcome.missing
        message = _fault(nearest.candidate, nearest.outcome)
        refused = DoesNotFit(message, tries=partial(_remedies, problem, pes, missing, retry))
    else:
        reason = log[-1].text if log else "no mapping exists"
        message = f"{problem.net.name} does not fit {problem.board.name}: {reason}"
        refused = DoesNotFit(message, tries=partial(_other_ways, problem, retry))
    refused.tried = summary_of(log)
    return refused


def refuse_what_is_no_dram(board: Board, plan: Plan) -> None:
    """DoesNotFit if the memory shared by cores lacks room for a batch's frames, or if the plan streams weights from
    shared memory, because no loader puts weights there."""
    used = max((buffer.offset + buffer.bytes for buffer in plan.dram), default=0)
    if board.noc and board.shares_memory and (used > board.noc.dram_bytes or plan.streams):
        raise DoesNotFit(
            f"the plan keeps {used:,} bytes in the memory that the cores of {board.name} share, which has room for the "
            f"{board.noc.dram_bytes:,} bytes of a batch's frames",
            tries=["--objective latency", "a smaller network"],
        )


def refuse_what_none_carries(problem: Problem) -> None:
    """DoesNotFit if no allowed PE carries an engine of some op."""
    if problem.fewest <= len(problem.order):
        return
    name = next(name for name, places in problem.places.items() if not places)
    op = next(op.name for op in problem.graph.ops if op.engine == name)
    on_all = problem.on(pes_to_use(problem.board, problem.board.pe_count, problem.engines_in_use)).fewest
    listed = ", ".join(map(str, problem.order))
    raise DoesNotFit(
        f"none of the PEs that may be used carries {name}, which {op} runs on: {listed}",
        tries=[f"--pes {on_all}", "--engine cpu"],
    )


def refuse_what_cannot_fit(problem: Problem, retry: Retry) -> None:
    """DoesNotFit, before any search, if all PEs of a board together are too small for the tensors between two ops, or
    for the weights of ops on the core (never streamed)."""
    net, board = problem.net, problem.board
    pes = max(len(problem.order), len(pes_to_use(board, None)))
    weights, room = weight_bytes(net, CORE), pes * board.memory_for("constants").size
    if weights > room:
        what = f"weights of {weights:,} bytes that its core computes with"
        _refuse_on_all(problem, pes, what, weights - room, f"{room:,} in {board.memory_for('constants').name}", retry)
    index, held = most_between_ops(problem)
    room = room_for_tensors(board, pes)
    if held > room:
        what = f"tensors of {held:,} bytes once {problem.graph.ops[index].name} is done"
        where = "" if board.noc else f" in {' and '.join(bank.name for bank in board.banks)}"
        _refuse_on_all(problem, pes, what, held - room, f"{room:,}{where}", retry)


def _refuse_on_all(problem: Problem, pes: int, what: str, missing: int, room: str, retry: Retry) -> NoReturn:
    """DoesNotFit for a need above the room of all PEs together."""
    board = problem.board
    smaller = f"a smaller network, or a board with more memory: {missing:,} bytes"
    where = f"all {pes} PEs of {board.name} have" if pes > 1 else f"{board.name} has"
    raise DoesNotFit(
        f"{problem.net.name} has {what}, {where} room for {room}",
        tries=lambda: [*_other_ways(problem, retry), smaller],
    )


def most_between_ops(problem: Problem) -> tuple[int, int]:
    """The index of the op after which the live tensors take most bytes, and a lower bound on these bytes.

    Tensors that may be in bands do not count, nor do inputs, because inputs may lie in DRAM.
    """
    graph = problem.graph
    elsewhere = {*problem.net.inputs, *narrowed(graph)}
    sizes = {name: 0 if name in elsewhere else graph.net.tensor(name).bytes for name in graph.consumers}
    held = [sum(sizes[name] for name in live) for live in graph.live_after()]
    return max(enumerate(held), key=lambda each: each[1], default=(0, 0))


def room_for_tensors(board: Board, pes: int) -> int:
    """Bytes of `pes` PEs for tensors, beside the smallest program of a mesh."""
    if board.noc is None:
        return sum(bank.size for bank in board.banks)
    return pes * memory_use(board, 0, 0, *program_bytes(pes)).free


def weight_bytes(net: Net, engine: str) -> int:
    """Bytes of the weights of an engine's ops: a lower bound on the constants of the core."""
    filters = (op for op in net.ops if op.engine == engine and isinstance(op.attributes, FILTERS))
    read = {name for op in filters for name in op.inputs if name in net.constants and net.tensor(name).dtype == "int8"}
    return sum(net.tensor(name).bytes for name in read)


def _fault(candidate: Candidate, lacks: Lacks) -> str:
    problem, pe = candidate.problem, lacks.pe
    board = problem.board.seen_by(pe)
    region, number = crowded_region(board, lacks.use), candidate.batch.pes
    least = "" if lacks.plan else "at least "
    streamed = "; those of accelerators are streamed" if candidate.batch.stream.ops else ""
    most = {
        "constants": f" (most: {_most_constants(candidate, pe)}{streamed})",
        "activations": f" (most: {_most_held(candidate, pe)})",
    }
    parts = ", ".join(f"{kind} {size:,}{most.get(kind, '')}" for kind, size in region.parts.items())
    if board.banks[1:]:
        used, size = lacks.use.activations + sum(lacks.use.banks), sum(bank.size for bank in board.banks)
        names = " and ".join(bank.name for bank in board.banks)
        parts += f"; activations in {names} are {used:,} bytes of {size:,}"
    return (
        f"{problem.net.name} on {number} PE{'s' if number > 1 else ''} needs {least}{region.missing:,} bytes more than "
        f"PE {pe} of {board.name} has in its {region.name} of {region.size:,}: {parts}"
    )


def _tiles(candidate: Candidate, pe: int) -> list[tuple[Op, Box]]:
    """The tiles of a candidate on a PE."""
    graph, batch = candidate.problem.graph, candidate.batch
    group = in_bands(graph, batch.groups[-1], batch.bands)
    return [(op, tile.box) for op in graph.ops for tile in group[op.name] if tile.pe == pe]


def _most_constants(candidate: Candidate, pe: int) -> str:
    """The largest constants on a PE."""
    problem, streamed = candidate.problem, candidate.batch.stream.ops
    sizes = [
        (problem.cost(op, box, pe).constant_bytes, op.name)
        for op, box in _tiles(candidate, pe)
        if op.name not in streamed
    ]
    size, name = max(sizes, key=lambda each: each[0], default=(0, "none"))
    return f"{name}, {size:,}"


def _most_held(candidate: Candidate, pe: int) -> str:
    """The largest part of a tensor that a PE reads or writes."""
    graph = candidate.problem.graph
    held = {
        (box.elements * graph.element_bytes(name), name)
        for op, output in _tiles(candidate, pe)
        for name, box in ((op.output, output), *graph.needs_of(op, output))
    }
    size, name = max(held, default=(0, "none"))
    return f"{name}, {size:,}, for {_readers(graph.net, name)}"


def _readers(net: Net, tensor: str) -> str:
    consumers = [op.name for op in net.ops if tensor in op.inputs]
    more = f" and {len(consumers) - 3} more" if consumers[3:] else ""
    return f"{', '.join(consumers[:3])}{more}" if consumers else "the output"


def _remedies(problem: Problem, pes: int, missing: int, retry: Retry) -> Iterator[str]:
    """Remedies for `missing` bytes on `pes` PEs, with the outcome of each tried remedy."""
    problem.tell("what would make it fit")
    yield from _more_pes(problem, pes, retry)
    yield from _other_ways(problem, retry)
    yield f"a smaller network, or a board with more memory a PE: {missing:,} bytes"


def _other_ways(problem: Problem, retry: Retry) -> Iterator[str]:
    """Remedies other than more PEs of the board."""
    if problem.board.accelerator and any(op.reason == AS_ASKED for op in problem.graph.ops):
        yield f"without {AS_ASKED}: an accelerator's ops are cut, and their constants streamed"
    yield from _integer_ends(problem.net)
    yield from _integers(problem)
    yield from _larger_mesh(problem)
    yield from _other_board(problem, retry)


def _more_pes(problem: Problem, pes: int, retry: Retry) -> Iterator[str]:
    """More PEs of the board than allowed, with the outcome, or the reason why more PEs do not help."""
    order = pes_to_use(problem.board, None, problem.engines_in_use)
    if stuck := _too_large_for_any_pe(problem.graph, problem.board):
        yield f"more PEs would not help: {stuck}"
        return
    search = None
    doubled = takewhile(lambda count: count < len(order), (pes << power for power in count_from(1)))
    for count in (*doubled, len(order)) if len(order) > len(problem.order) else ():
        search = retry(replace(problem, order=order[:count], work=Work()))
        if search.best and isinstance(search.best.outcome, Fits):
            plan = search.best.outcome.plan
            yield f"more PEs: --pes {plan.pes_used}: fits, {plan.predicted.latency_cycles:,} cycles a frame"
            return
    if search and any(op.engine == CORE and not cuttable_axes(problem.net, op) for op in problem.graph.ops):
        yield "--plan FILE (docs/mesh.md): PEs for ops of the core: npukit has them all on one"
    elif search and search.nearest and isinstance(search.nearest.outcome, Lacks):
        yield f"more PEs do not help: {search.nearest.outcome.missing:,} bytes are still missing"


def _integer_ends(net: Net) -> Iterator[str]:
    """A remedy if inputs or outputs are float outside and integers inside the network."""
    ends = [op.inputs[0] for op in net.ops if op.kind == Quantize.kind and op.inputs[0] in net.inputs]
    ends += [op.output for op in net.ops if op.kind == Dequantize.kind and op.output in net.outputs]
    if saved := sum(net.tensor(name).bytes for name in ends):
        yield f"--io int8: inputs and outputs as integers, without {saved:,} bytes of float"


def _integers(problem: Problem) -> Iterator[str]:
    """A remedy if most constants are float: constants and activations in int8 take a fourth."""
    net, graph = problem.net, problem.graph
    sizes = {name: tensor.bytes for name, tensor in net.tensors.items() if tensor.dtype == "float32"}
    constants = sum(sizes.get(name, 0) for name in net.constants)
    if 2 * constants > sum(array.nbytes for array in net.constants.values()):
        activations = max((sum(sizes.get(name, 0) for name in live) for live in graph.live_after()), default=0)
        yield (
            f"--calibration SAMPLES.npz instead of --float: int8 takes {3 * constants // 4:,} bytes of constants less, "
            f"and {3 * activations // 4:,} of what is between two layers"
        )


def _larger_mesh(problem: Problem) -> Iterator[str]:
    """The smallest mesh of more PEs with room for the tensors between any two ops."""
    board, (_, held) = problem.board, most_between_ops(problem)
    larger = [each for each in known_boards() if each.noc and each.pe_count > board.pe_count]
    for mesh in sorted(larger, key=lambda each: each.pe_count) if board.noc else ():
        if held <= room_for_tensors(mesh, mesh.pe_count):
            yield f"--board {mesh.name}: {mesh.pe_count} PEs instead of {board.pe_count}"
            break


def _other_board(problem: Problem, retry: Retry) -> Iterator[str]:
    """The board of one PE with the least memory for the network on its core."""
    ops = tuple(part.placed(CORE) for op in problem.net.ops for part in op.parts)
    graph = Graph(problem.net.with_ops(ops))
    others = [board for board in known_boards() if board.noc is None and board.name != problem.board.name]
    weights, (_, held) = weight_bytes(graph.net, CORE), most_between_ops(problem)
    for board in sorted(others, key=lambda board: sum(memory.size for memory in board.memory)):
        if weights > board.memory_for("constants").size or held > room_for_tensors(board, 1):
            continue
        search = retry(Problem(graph, board, with_core({}, board)))
        if search.best and isinstance(search.best.outcome, Fits):
            plan = search.best.outcome.plan
            yield f"--board {board.name}: fits, {plan.pes[0].memory.free:,} bytes of its memory are left"
            break


def _too_large_for_any_pe(graph: Graph, board: Board) -> str:
    """A description of an op whose smallest tile has a larger input or output than a PE's memory; empty if none."""
    room = board.memory_for("activations").size
    for op in graph.ops:
        axes, shape = cuttable_axes(graph.net, op), graph.shape(op.output)
        stop = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        least = Box(tuple(0 for _ in shape), stop)
        going_in = sum(box.elements * graph.element_bytes(name) for name, box in graph.needs_of(op, least))
        largest = max(going_in, least.elements * graph.element_bytes(op.output))
        if largest > room:
            what = f"some of {op.name} ({op.title})" if axes else f"{op.name} ({op.title}) whole"
            return f"one PE must compute {what}, with {largest:,} bytes in {room:,}"
    return ""
