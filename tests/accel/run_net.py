"""A net on a single PE, from engine assignment to the emulator: the steps of `npukit build`, `validate` and `bench`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from npukit.accel.engines import assign_engines, plugins_of, with_core
from npukit.board.board import Board
from npukit.codegen.generate import generate
from npukit.codegen.streamed import dram_image
from npukit.emulator.builtin import Emulator
from npukit.emulator.trace_records import RecordKind
from npukit.link.session import Session
from npukit.measure.bench import Bench, bench
from npukit.measure.cases import rounds
from npukit.measure.golden import golden
from npukit.measure.target import Target
from npukit.measure.validate import Validation, run_round, validate
from npukit.net.net import Net
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.op_order import in_overlapping_order
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent
from npukit.project.compile import build_images
from npukit.project.images.image import Image
from npukit.project.render import About, render_project
from npukit.project.toolchain import find_toolchain

BUILD_ID = "29" * 16


@dataclass(frozen=True)
class Ran:
    """The net with its engines, and the results of the run. `c` is the C of the frame.

    `worked`: cycles of all accelerators in a frame, from the emulator's own record.
    """

    net: Net
    plan: Plan
    c: str
    validation: Validation
    bench: Bench
    worked: int


def run_net(net: Net, board: Board, folder: Path, order: Callable[..., Net] = in_overlapping_order) -> Ran:
    plugins = plugins_of(board)
    engines = with_core(plugins)
    placed = order(assign_engines(net, engines), engines)
    planned = plan_with_kernels(Problem(Graph(placed), board, engines, max_pes=1), "latency")
    sources = generate(placed, planned.plan, board, planned.engines, bytes.fromhex(BUILD_ID))
    project = render_project(sources, board, About(net.name, BUILD_ID), folder / "project")
    (image,) = build_images(project, find_toolchain(), folder / "images")
    models = {name: plugin.model for name, plugin in plugins.items() if plugin.model}
    dram = dram_image(planned.plan, (piece for each in sources for piece in each.streamed))
    emulator = Emulator(board, [Image(image.elf, image.pes)], models, dram)
    with Session(emulator, bytes.fromhex(BUILD_ID)) as session:
        target = Target("emulator", session, board)
        cases = golden(placed).cases
        found = validate(target, placed, planned.plan, cases, Silent())
        measured = bench(target, placed, planned.plan, cases, board.core.clock_hz, 1, Silent())
        run_round(session, placed, cases, rounds(cases.count, 1)[0], observe=False)
        emulator.trace(True)
        session.run()
        work = emulator.traced().of(RecordKind.WORK)
    emulator.close()
    worked = int((work["end"] - work["start"]).sum())
    return Ran(placed, planned.plan, sources[0].files["net.c"], found, measured, worked)
