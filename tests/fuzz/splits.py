"""Random networks, split at random or by the planner over random PEs, built and run. Every tile of every layer must
equal the reference.

PYTHONPATH=kit:tests python -m fuzz.splits [--seconds 600] [--first SEED] [--states]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import monotonic

import numpy as np

from codegen.random_ops import MAKERS, Bundle, random_inputs
from fuzz.states import remembering
from npukit.accel.engines import plugins_of, with_core
from npukit.accel.interface import Accelerator
from npukit.board.board import Board, load_board
from npukit.codegen.generate import generate
from npukit.codegen.streamed import dram_image
from npukit.emulator.builtin import Emulator
from npukit.errors import DoesNotFit
from npukit.link.session import Session
from npukit.measure.golden import golden
from npukit.measure.target import Target
from npukit.measure.validate import Validation, validate
from npukit.net.net import Net
from npukit.net.passes.at_link import inside
from npukit.net.receptive import cuttable_axes
from npukit.net.reference import evaluate
from npukit.passes import PLACING, PassOptions, run_passes
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_around, sequential
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.strategies.list_schedules import list_schedules
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.user_mapping import pins_for
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.manifest import image_record
from npukit.project.render import About, render_project
from npukit.project.toolchain import find_toolchain
from object_cache import share_objects
from oracles.plan_execution import Execution
from plan.networks import Builder
from plan.planning import best_plan, searched

BUILD_ID = "5a" * 16
BOARD = load_board("pe-mesh")


@dataclass(frozen=True)
class Example:
    """The network, board and plan of a seed."""

    net: Net
    board: Board
    plan: Plan
    engines: Mapping[str, Accelerator]

    def __str__(self) -> str:
        tiles = sum(len(list(pe.computes())) for pe in self.plan.pes)
        kinds = ", ".join(op.kind for op in self.net.ops)
        return f"{tiles} tiles on {len(self.plan.pes)} PEs, {self.plan.frames} frames: {kinds}"


def example(seed: int, *, states: bool = False) -> Example:
    """A chain of layers, a mix of ops, or with `states` a network with states. It is split at random, with one frame or
    rounds of frames, or by the planner."""
    random = np.random.default_rng(seed)
    board = _with_dead_pes(random)
    states = states or random.random() < 0.25
    net = remembering(random) if states else _chain(random) if random.random() < 0.75 else _bundle(random)
    engines = with_core(plugins_of(board))
    placed = run_passes(net, PLACING, PassOptions(engines))
    live = [pe for pe in range(board.pe_count) if pe not in board.mesh.dead_pes]
    pes = random.permutation(live)[: random.integers(1, len(live) + 1)].tolist()
    if random.random() < 0.3:
        return Example(placed, board, _planned(random, placed, board, engines, len(pes)), engines)
    if random.random() < 0.3:
        return Example(placed, board, _batch(random, placed, board, engines, live), engines)
    return _pinned(placed, board, engines, _assignment(random, placed, pes))


def outcome(given: Example, folder: Path) -> Validation:
    """Compare the built example on the emulator with the reference."""
    with emulated(given, folder) as target:
        return validate(target, given.net, given.plan, golden(given.net).cases, Silent())


def first_difference(given: Example, turns: int) -> str | None:
    """The first difference between the plan in numpy and the reference over six frames, or None. The states are reset
    after the third frame. `turns` seeds the order of PEs and messages."""
    net, random = inside(given.net), np.random.default_rng(turns)
    execution, values = Execution(net, given.plan, turns), None
    for number in range(6):
        if number == 3:
            execution.reset()
        inputs = random_inputs(net, random)
        values = evaluate(net, inputs, None if number == 3 else values)
        for name, got in zip(net.outputs, execution.run(inputs), strict=True):
            if not np.array_equal(got, values[name]):
                return f"{name} of frame {number}"
    return None


@contextmanager
def emulated(given: Example, folder: Path) -> Iterator[Target]:
    """The built example on the emulator."""
    board, plan = given.board, given.plan
    sources = generate(given.net, plan, board, given.engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, board, About(given.net.name, BUILD_ID), folder / "project")
    built = build_images(project, find_toolchain(), folder / "images")
    records = [image_record(each, folder).image(folder) for each in built]
    orders = (piece for each in built for piece in each.orders)
    dram = dram_image(plan, chain((piece for each in sources for piece in each.streamed), orders))
    emulator = Emulator(board, records, {}, dram, strict=True)
    with Session(emulator, bytes.fromhex(BUILD_ID)) as session:
        yield Target("emulator", session, board)


def _with_dead_pes(random: np.random.Generator) -> Board:
    """Mostly the unchanged board, else with dead PEs, perhaps the first."""
    dead = random.choice(BOARD.pe_count, random.integers(0, 6), replace=False) if random.random() < 0.3 else []
    mesh = BOARD.mesh.model_copy(update={"dead_pes": tuple(sorted(int(pe) for pe in dead))})
    return BOARD.model_copy(update={"mesh": mesh})


def _chain(random: np.random.Generator) -> Net:
    """Convolutions, poolings, residuals, perhaps with a classifier at the end."""
    b = Builder("chain", seed=int(random.integers(1 << 30)))
    x = b.conv(b.input(1, *random.integers(1, 12, 2).tolist(), _pick(random, 1, 3, 5)), _pick(random, 4, 7, 16, 33), 3)
    for kind in random.choice(["conv", "depthwise", "residual", "max", "average"], random.integers(0, 6)):
        channels = b.tensors[x].shape[-1]
        if kind == "conv":
            kernel = (_pick(random, 1, 2, 3, 5), _pick(random, 1, 3))
            x = b.conv(x, _pick(random, 2, 8, 17, 40), kernel, _pick(random, 1, 2))
        elif kind == "depthwise":
            x = b.depthwise(x, _pick(random, 1, 3), _pick(random, 1, 2))
        elif kind == "residual":
            inside = b.conv(x, _pick(random, 4, 16), 1) if random.random() < 0.5 else x
            x = b.add(x, b.conv(inside, channels, _pick(random, 1, 3)))
        else:
            x = b.pool(x, 2, _pick(random, 1, 2), maximum=kind == "max")
    if random.random() < 0.4:
        return b.net(x)
    y = b.softmax(b.dense(b.flatten(b.global_pool(x)), _pick(random, 2, 12, 40)))
    return b.net(y, x) if random.random() < 0.3 else b.net(y)


def _bundle(random: np.random.Generator) -> Net:
    """Ops without common tensors."""
    bundle = Bundle(random, rounds_once=random.random() < 0.5)
    for kind in random.choice(sorted(MAKERS), 4, replace=False):
        MAKERS[kind](bundle)
    return bundle.net()


def _assignment(random: np.random.Generator, net: Net, pes: Sequence[int]) -> Assignment:
    """Cut each op at random along its allowed axes, with tiles on random PEs."""
    found: dict[str, tuple[Tile, ...]] = {}
    for op in Graph(net).ops:
        shape = net.tensor(op.output).shape
        parts = [1] * len(shape)
        axes = cuttable_axes(net, op)
        for axis in random.permutation(np.array(axes, int)).tolist():
            parts[axis] = int(random.integers(1, min(shape[axis], len(pes) // int(np.prod(parts))) + 1))
        boxes = to_boxes(grid(shape, tuple(parts), (1,) * len(shape)))
        places = random.permutation(pes)[: len(boxes)].tolist()
        found[op.name] = tuple(Tile(pe, box) for pe, box in zip(places, boxes, strict=True))
    return found


def _pinned(net: Net, board: Board, engines: Mapping[str, Accelerator], assignment: Assignment) -> Example:
    """A plan made through a user's mapping file."""
    pins = {
        name: {"tiles": [{"pe": tile.pe, "start": tile.box.start, "stop": tile.box.stop} for tile in tiles]}
        for name, tiles in assignment.items()
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"ops": pins}, file)
        file.flush()
        problem = Problem(Graph(net), board, engines)
        planned = plan_around(problem, pins_for(problem, file.name, "latency"))
    return Example(net, board, planned.plan, planned.engines)


def _planned(random: np.random.Generator, net: Net, board: Board, engines: Mapping[str, Accelerator], pes: int) -> Plan:
    """The best plan on several PEs, or the list schedule used for larger networks."""
    problem = Problem(Graph(net), board, engines, max_pes=pes)
    if random.random() < 0.5 and searched(problem, list_schedules).best:
        return best_plan(problem, list_schedules)
    return best_plan(problem, objective=sequential(net, ("latency", "throughput", "memory")[random.integers(3)]))


def _batch(
    random: np.random.Generator, net: Net, board: Board, engines: Mapping[str, Accelerator], live: Sequence[int]
) -> Plan:
    """Groups of PEs with their own frames, some constants streamed; one frame if several do not fit. A network with
    states has one group and one frame."""
    size = int(random.integers(1, 5))
    count = 1 if net.states else int(random.integers(1, len(live) // size + 1))
    first = _assignment(random, net, live[:size])
    groups = []
    for group in range(count):
        moved = dict(zip(live[:size], live[group * size :], strict=False))
        groups.append({op: tuple(Tile(moved[t.pe], t.box) for t in tiles) for op, tiles in first.items()})
    filtered = [op.name for op in net.ops if op.engine == "mac_array" and len(op.parts[0].inputs) == 3]
    streamed = frozenset(name for name in filtered if random.random() < 0.3)
    low_memory = random.random() < 0.3
    interleaved, micro_batches = (1, 1) if net.states else random.integers(1, 4, 2).tolist()
    wanted = Batch(tuple(groups), interleaved, micro_batches, StreamWeights(streamed, 1024), low_memory=low_memory)
    try:
        plan = emit_batch(Problem(Graph(net), board, engines), wanted)
    except DoesNotFit:  # the PEs have too few flags for all the frames
        plan = emit_batch(Problem(Graph(net), board, engines), replace(wanted, interleaved=1, micro_batches=1))
    assert not missing_bytes(board, plan)
    return plan


def _pick(random: np.random.Generator, *choices: int) -> int:
    return int(random.choice(choices))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--states", action="store_true", help="networks that remember, and no others")
    given = parser.parse_args()
    until, seed, wrong = monotonic() + given.seconds, given.first, 0
    with tempfile.TemporaryDirectory() as scratch:
        share_objects(Path(scratch) / "objects")
        while monotonic() < until:
            wrong += _told(seed, Path(scratch) / str(seed), states=given.states)
            seed += 1
    print(f"{seed - given.first} examples, {wrong} wrong")
    return int(wrong > 0)


def _told(seed: int, folder: Path, *, states: bool) -> bool:
    """Print the outcome of a seed. Returns True for a fault."""
    what = "no plan"
    try:
        what = str(made := example(seed, states=states))
        fault = next(filter(None, (first_difference(made, turns) for turns in range(3 * states))), "")
        found = outcome(made, folder)
        fault += "" if found.passed else f"DIFFERS {found.mismatches[0]}"
    except Exception as error:
        fault = f"FAILS {type(error).__name__}: {error}"
    print(f"seed {seed}: {fault or 'exact'}; {what}", flush=True)
    return bool(fault)


if __name__ == "__main__":
    sys.exit(main())
