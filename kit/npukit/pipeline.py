"""The stages of a build, from a model file to a build folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from npukit import __version__
from npukit.accel.choices import TunedChoice
from npukit.accel.core_kernels import USUAL, CostPreference
from npukit.accel.cpu import Cpu
from npukit.accel.engines import own_passes, plugins_of, relax_patterns, with_core
from npukit.accel.interface import Accelerator, Plugin
from npukit.application.declared import declared_for, file_beside
from npukit.board.board import Board
from npukit.codegen.generate import generate
from npukit.codegen.render import TIR
from npukit.codegen.sources import Sources
from npukit.codegen.streamed import dram_image
from npukit.dump import CANDIDATES, dumped
from npukit.emulator.renode.render import Dram, objection, render_renode
from npukit.emulator.renode.suite import GoldenFrame, render_suite
from npukit.errors import DoesNotFit, NpukitError
from npukit.host.budget import MODEL
from npukit.host.parallel import apart
from npukit.measure.cases import Cases, expecting, filled, rounds
from npukit.measure.check import checked
from npukit.measure.golden import golden
from npukit.net.importer.loops import LoopKernel, Scheduling, load_kernels, save_kernels, scheduling
from npukit.net.net import CORE, Net, State
from npukit.net.ops import TvmCode
from npukit.net.ops.table import macs
from npukit.net.passes.at_link import around
from npukit.net.passes.dead_channels import removed_channels
from npukit.net.receptive import cuttable_axes
from npukit.net.store import save_net
from npukit.net.tensor import Tensor
from npukit.net.text import print_net
from npukit.options import Options
from npukit.passes import OWN, PLACING, SIMPLIFYING, PassOptions, run_passes
from npukit.plan.ir.plan import Plan
from npukit.plan.ir.store import save_plan
from npukit.plan.ir.text import print_plan
from npukit.plan.layout.tuned_choices import preference_for, tuned_choice
from npukit.plan.least_energy import ENERGY, described, least_energy
from npukit.plan.planner import Planned, best_of, plan_around, plan_with_kernels
from npukit.plan.predict.energy import predicted_energies
from npukit.plan.predict.floors import floors_of
from npukit.plan.predict.frame_table import predicted_frame, to_json
from npukit.plan.predict.memory import fullest_regions
from npukit.plan.predict.utilisation import refuse_missed_rate
from npukit.plan.search.candidate import summary_of
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem, Work
from npukit.plan.tensors.routes import pes_in_order, pes_of_chips, pes_to_use
from npukit.plan.user_mapping import pins_for, with_sums
from npukit.progress import Progress
from npukit.project.accelerators import explain_missing, record_of
from npukit.project.build_folder import (
    DRAM_IMAGE,
    GOLDEN,
    PLAN,
    Build,
    load_build,
    new_build_folder,
    note,
    write_manifest,
    write_spans,
)
from npukit.project.check import LinkedTooLarge
from npukit.project.compile import BuiltImage, MissingFunction, build_images
from npukit.project.files import Coresident
from npukit.project.folder_files import file_digest
from npukit.project.images.regions import with_digests
from npukit.project.manifest import PLANNED_FOR, CoresidentRecord, Manifest, image_record
from npukit.project.render import About, render_project
from npukit.project.source_lines import source_lines
from npukit.project.toolchain import Toolchain, find_toolchain
from npukit.quantize.models import Loaded, OwnImport, load_model
from npukit.report.page import write_report
from npukit.tuning import default_path, load_database
from npukit.uncollected import uncollected

BUILD_ID_BYTES = 16
PLANS, MORE_MISSING = 3, 512
"""`PLANS`: plans of a network whose linked programs are larger than predicted. `MORE_MISSING`: bytes that each further
plan leaves free beyond the shortage of the first failing image, as another image may lack more."""
TOLD = ("dead_channels", "remarks", "quantization", "reached", "accuracy", PLANNED_FOR)
"""Keys of the summary about the import of the model, kept when a folder is built again from its net."""


@dataclass(frozen=True)
class Prepared:
    """A network after the choice of engines, before the choice of PEs.

    `told`: the summary's entries about the import of the model. `loops`: the kernels that TVM schedules. `shared`: the
    net with more ops on accelerators, even ops that the core computes faster. PEs can share an accelerator's ops. None
    if this net would be the same.
    """

    net: Net
    plugins: Mapping[str, Plugin]
    engines: Mapping[str, Accelerator]
    model_sha256: str
    told: Mapping[str, Any]
    loops: Mapping[str, LoopKernel]
    shared: Net | None = None

    def of(self, net: Net) -> Prepared:
        """The same with the net of a plan, between the conversions at the link."""
        return replace(self, net=around(net, self.net), shared=None)

    @property
    def nets(self) -> tuple[Net, ...]:
        """The nets to plan and compare."""
        return (self.net, self.shared) if self.shared else (self.net,)


@dataclass(frozen=True)
class Compiled:
    """A network with its plan for a board."""

    prepared: Prepared
    board: Board
    planned: Planned
    options: Options
    coresident: Coresident | None = None
    preference: CostPreference = USUAL
    """The cost preference of the core's kernels."""

    @property
    def net(self) -> Net:
        return self.prepared.net

    @property
    def plan(self) -> Plan:
        return self.planned.plan


def build_folder(
    model: Path, board: Board, output: Path, options: Options, progress: Progress, check: bool | None = None
) -> Build:
    """The work of `npukit build`. `check` as in `measure/check.py`."""
    toolchain = find_toolchain(options.toolchain, board.core.type)
    with toolchain.warmed_up(board.core.type):
        compiled = compile_network(model, board, options, progress)
        _fill_new_folder(output, compiled, toolchain, progress, board, PLANS - 1, check)
    return load_build(output)


def _fill_new_folder(
    output: Path,
    compiled: Compiled,
    toolchain: Toolchain,
    progress: Progress,
    room: Board,
    more: int,
    check: bool | None,
) -> None:
    """Fill the folder, and check the build before the folder becomes visible.

    If linked programs are larger than predicted, plan again, at most `more` times, for the board `room` with less
    memory by the missing bytes.
    """
    dumped(PLAN, lambda: print_plan(compiled.plan))
    dumped(CANDIDATES, lambda: "".join(f"{line}\n" for line in compiled.planned.log))
    try:
        with new_build_folder(output) as folder:
            fill_folder(folder, compiled, toolchain, progress)
            note_check({"": load_build(folder)}, check, progress)
    except LinkedTooLarge as found:
        if not more:
            raise
        progress.stage(f"{found}: plan again")
        try:
            room = room.with_less(found.memory, found.missing + MORE_MISSING)
            again = plan_on(room, compiled.prepared, compiled.options, progress)
        except DoesNotFit:
            raise found from None
        _fill_new_folder(output, replace(again, board=compiled.board), toolchain, progress, room, more - 1, check)


def note_check(builds: Mapping[str, Build], check: bool | None, progress: Progress) -> None:
    """Check builds on a shared board, and record the outcome in their manifests. A wrong build is an error."""
    outcome = checked(builds, check, progress).to_json()
    for build in builds.values():
        note(build, "checked", outcome)


def build_again(build: Build, net: Net, preference: CostPreference, output: Path, progress: Progress) -> Build:
    """Build the network again with a preference. `net`: the build's own, or one that differs in TVM's code alone."""
    options, planned_for = Options.from_json(build.manifest.options), build.manifest.planned_for
    plugins, told = plugins_of(build.board), build.manifest.summary
    kept = {key: value for key, value in told.items() if key in TOLD}
    engines, loops = with_core(plugins, build.board), load_kernels(build.folder)
    prepared = Prepared(net, plugins, engines, build.manifest.model_sha256, kept, loops)
    progress.stage(f"plan for {build.board.name}")
    problem = Problem(Graph(net), build.board, engines, max_pes=planned_for.pes)
    planned = plan_with_kernels(problem, planned_for.objective, preference)
    with new_build_folder(output) as folder:
        compiled = Compiled(prepared, build.board, planned, options, preference=preference)
        fill_folder(folder, compiled, find_toolchain(options.toolchain, build.board.core.type), progress)
        note_check({"": load_build(folder)}, None, progress)
    return load_build(output)


def compile_network(model: Path, board: Board, options: Options, progress: Progress) -> Compiled:
    """Plan a model file: everything before C is generated."""
    options = within_chips(board, options)
    return plan_on(board, prepare(model, board, options, progress), options, progress)


def within_chips(board: Board, options: Options) -> Options:
    """The options with `pes` limited to the PEs of the permitted chips."""
    if options.chips is None:
        return options
    most = pes_of_chips(board, options.chips)
    return replace(options, pes=min(options.pes or most, most))


def prepare(model: Path, board: Board, options: Options, progress: Progress) -> Prepared:
    """Import a model file, and choose the engine of each op."""
    beside = file_beside(model)
    progress.stage(f"import {model.name}{f' with {beside.name}' if beside else ''}")
    plugins = plugins_of(board)
    loaded, loops = apart(partial(_imported, model, board, options, plugins), model.name, MODEL, told=progress.stage)
    engines = with_core(plugins, board)
    dumped("net-00-imported.txt", lambda: print_net(loaded.net))
    whole = run_passes(loaded.net, OWN, PassOptions(engines))
    pruned = run_passes(whole, SIMPLIFYING, PassOptions(engines))
    net, *shared = _placed(pruned, engines, options, partial(tuned_choice, load_database(default_path()), board))
    removed = removed_channels(whole, pruned)
    told = {"dead_channels": [{"name": op, "removed": n, "of": m} for op, (n, m) in removed.items()]}
    told |= loaded.report.to_json() if loaded.report else {}
    told |= {"remarks": list(loaded.remarks)} if loaded.remarks else {}
    return Prepared(net, plugins, engines, file_digest(model), told, loops.kernels_of(whole), *shared)


def _placed(net: Net, engines: Mapping[str, Accelerator], options: Options, chosen: TunedChoice) -> Iterator[Net]:
    """The net with each op on its fastest engine. A second net follows if it differs: accelerators also take ops that
    the core computes faster as a whole, because PEs can share an accelerator's op but not the core's."""
    slower_too = PassOptions(engines, options.engine, slower_too=True, strict=options.strict, chosen=chosen)
    willing = run_passes(net, PLACING, slower_too, "-shared")
    if not (options.engine or options.strict):
        fastest = run_passes(net, PLACING, PassOptions(engines, chosen=chosen))
        yield fastest
        if {(op.name, op.engine) for op in fastest.ops} == {(op.name, op.engine) for op in willing.ops}:
            return
    yield willing


def _imported(model: Path, board: Board, options: Options, plugins: Mapping[str, Plugin]) -> tuple[Loaded, Scheduling]:
    """The model as a net, with TVM's kernels."""
    passes, patterns = partial(own_passes, plugins.values()), relax_patterns(plugins.values())
    with scheduling(board.name, load_database(default_path()), passes("tir")) as loops:
        loaded = load_model(
            model,
            input_shapes=dict(options.input_shapes),
            states=options.states,
            custom=dict(options.custom),
            calibration=options.calibration,
            ranges=options.ranges,
            declared=declared_for(model, options.preprocess, options.postprocess),
            in_file_types=options.io == "file",
            in_float=options.in_float,
            keep_float=options.keep_float,
            keep_int16=options.keep_int16,
            weights=options.weights,
            target_db=options.target_db,
            own=OwnImport(passes("relax"), passes("quantizer"), patterns),
        )
    return loaded, loops


@uncollected()
def plan_on(board: Board, prepared: Prepared, options: Options, progress: Progress) -> Compiled:
    """The prepared network's plan on the board. Raises an error if the plan misses the required frame rate."""
    compiled = _planned(board, prepared, options, progress, Work())
    if options.frames_per_second:
        refuse_missed_rate(compiled.net, board, compiled.plan, options.frames_per_second)
    return compiled


def _planned(board: Board, prepared: Prepared, options: Options, progress: Progress, work: Work) -> Compiled:
    """The best plan of the prepared nets by the objective."""
    progress.stage(f"plan for {board.name}{_if_sequential(prepared.net, options) or _if_long(board, options)}")
    begun = monotonic()

    def tell(text: str) -> None:
        work.seconds = monotonic() - begun
        progress.stage(f"plan for {board.name}: {text}{work.left}")

    if options.plan:
        return _as_pinned(board, prepared, options)

    def problems(pes: int | None) -> list[Problem]:
        graphs = map(Graph, prepared.nets)
        return [Problem(each, board, prepared.engines, tell=tell, work=work, max_pes=pes) for each in graphs]

    tuned = preference_for(load_database(default_path()), prepared.net, board, options.objective, options.pes)
    if options.objective != ENERGY:
        planned = best_of(problems(options.pes), options.objective, tuned)
        return Compiled(prepared.of(planned.net), board, planned, options, preference=tuned)

    def plan(pes: int, objective: str) -> Planned:
        return best_of(problems(pes), objective, tuned)

    objectives = ("latency",) if prepared.net.states or board.noc is None else ("latency", "throughput")
    most = len(pes_to_use(board, options.pes))
    (best, _), *_ = trials = least_energy(board, most, options.frames_per_second, objectives, plan)
    made_by = {"objective": best.plan.objective, "pes": best.plan.pes_used}
    told = {**prepared.told, "energy_trials": list(map(described, trials)), PLANNED_FOR: made_by}
    return Compiled(replace(prepared.of(best.net), told=told), board, best, options, preference=tuned)


def _as_pinned(board: Board, prepared: Prepared, options: Options) -> Compiled:
    """The faster plan of the prepared nets, with ops where the user's file or mapper pins them."""
    assert options.plan
    found, fault = list[Compiled](), None
    for net in prepared.nets:
        try:
            cut = prepared.of(with_sums(net, prepared.engines, options.plan))
            problem = Problem(Graph(cut.net), board, cut.engines, max_pes=options.pes)
            planned = plan_around(problem, pins_for(problem, options.plan, options.objective))
            found.append(Compiled(cut, board, planned, options))
        except NpukitError as error:
            fault = error
    if fault and not found:
        raise fault
    return min(found, key=lambda each: each.plan.predicted.latency_cycles)


def _if_sequential(net: Net, options: Options) -> str:
    """A remark if frames cannot run side by side."""
    asked = net.states and options.objective == "throughput"
    return ": each frame needs what the one before left, so that latency is what counts" if asked else ""


def _if_long(board: Board, options: Options) -> str:
    """A remark before a long search. Equal chips are planned once."""
    pes = min(options.pes or board.pe_count, board.mesh.pes.count)
    if options.objective != "throughput" or pes <= 20:
        return ""
    return f": batches on {pes} PEs are compared, which may take minutes; --pes N compares fewer"


def summary(compiled: Compiled, plan: Plan) -> dict[str, Any]:
    """The JSON of `npukit build` and `npukit fit`."""
    rate = compiled.options.frames_per_second
    return {
        "model": compiled.net.name,
        "board": compiled.board.name,
        "fits": True,
        "pes_used": plan.pes_used,
        "pes_allowed": compiled.options.pes,
        "input_bytes": sum(compiled.net.tensor(name).bytes for name in compiled.net.inputs),
        "kernel_constants": _kernel_constants(compiled, plan),
        "pes_of_board": len(pes_in_order(compiled.board)),
        "undivided": _undivided(compiled.net),
        "inputs": _ends(compiled.net, compiled.net.inputs),
        "outputs": _ends(compiled.net, compiled.net.outputs),
        "states": [_state(compiled.net, each) for each in compiled.net.states],
        "ops": _op_rows(compiled, plan),
        "memory": [{"pe": pe.pe, **asdict(pe.memory)} for pe in plan.pes],
        "regions": [
            {"name": each.name, "used": each.used, "size": each.size} for each in fullest_regions(compiled.board, plan)
        ],
        "clock_hz": compiled.board.core.clock_hz,
        "predicted": asdict(plan.predicted),
        "frame": to_json(predicted_frame(compiled.net, compiled.board, plan)),
        "floors": floors_of(compiled.net, compiled.board, plan, compiled.planned.engines),
        "frames": plan.frames_of_all,
        "chips": len(plan.chips),
        "dram_bytes": sum(buffer.bytes for buffer in plan.dram),
        "frames_per_second": rate,
        "energy": [asdict(each) for each in predicted_energies(compiled.board, compiled.net, plan, rate)],
        "tried": summary_of(compiled.planned.log),
        **compiled.prepared.told,
    }


@uncollected()
def fill_folder(
    folder: Path, compiled: Compiled, toolchain: Toolchain, progress: Progress, others: Sequence[str] = ()
) -> None:
    """Generate, compile and write everything after the plan. `others`: the networks that share the board, if any."""
    net, board = compiled.net, compiled.board
    save_net(net, folder)
    save_kernels(compiled.prepared.loops, folder)
    build_id = _build_id(folder, compiled, toolchain)
    progress.stage("generate C")
    engines, traces = compiled.planned.engines, compiled.options.trace
    sources = generate(net, compiled.plan, board, engines, build_id=bytes.fromhex(build_id), traces=traces)
    for each in sources:
        dumped(f"role-{each.role}.{TIR}", partial(each.files.__getitem__, TIR))
    about, self_test = About(net.name, build_id), compiled.options.self_test
    project = render_project(sources, board, about, folder / "project", compiled.coresident, self_test=self_test)
    try:
        images = build_images(project, toolchain, folder / "images", progress)
    except MissingFunction as error:
        raise explain_missing(error, sources) from error
    measured = {pe: image.memory for image in images for pe in image.pes}  # as linked
    plan = replace(compiled.plan, pes=tuple(replace(pe, memory=measured[pe.pe]) for pe in compiled.plan.pes))
    progress.stage("write the plan")
    save_plan(plan, folder / PLAN)
    progress.stage("evaluate the reference")
    chosen = golden(net)
    cases = chosen.cases
    _write_golden(cases, folder)
    dram = _write_dram(folder, plan, sources, images)
    no_renode = _write_renode(folder, compiled, partial(_golden_frame, compiled, cases, build_id), images, dram)
    if traces:
        write_spans(folder, {pe: spans for each in sources for pe, spans in each.spans.items()})
    told, lines = summary(compiled, plan), source_lines(project, sources, plan)
    ops = [{**row, "sources": lines.get(row["name"], [])} for row in told["ops"]]
    told |= {"ops": ops, "no_renode": no_renode, "golden": chosen.to_json()}
    write_manifest(folder, _manifest(folder, compiled, plan, images, toolchain, build_id, told))
    write_report(load_build(folder), plan)


def _build_id(folder: Path, compiled: Compiled, toolchain: Toolchain) -> str:
    """The build's digest, of the network, the board, the plan and the compiler."""
    parts = [file_digest(path) for path in sorted(folder.iterdir())]
    parts += [
        compiled.board.model_dump_json(),
        *([file_digest(compiled.board.hal_file)] if compiled.board.hal_file else []),
        str(compiled.plan),
        toolchain.title,
        __version__,
    ]
    parts += [str(compiled.coresident)] if compiled.coresident else []
    parts += ["traces"] if compiled.options.trace else []
    parts += ["tests itself"] if compiled.options.self_test else []
    parts += [f"{plugin.name} {plugin.version}" for plugin in compiled.prepared.plugins.values()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[: 2 * BUILD_ID_BYTES]


def _write_golden(cases: Cases, folder: Path) -> None:
    arrays = {f"in{i}": cases.given(array) for i, array in enumerate(cases.inputs)}
    arrays |= {f"out{i}": cases.given(array) for i, array in cases.expected.items()}
    np.savez(folder / GOLDEN, **arrays)  # pyright: ignore[reportArgumentType]


def _write_dram(folder: Path, plan: Plan, sources: Sequence[Sources], images: Sequence[BuiltImage]) -> Dram | None:
    """Write `images/dram.bin`, if the plan has data in DRAM."""
    if not plan.dram:
        return None
    pieces = (piece for each in sources for piece in each.streamed)
    orders = (piece for image in images for piece in image.orders)
    data = dram_image(plan, chain(pieces, orders))
    (folder / DRAM_IMAGE).write_bytes(data)
    return Dram(data, plan.chips)


def _golden_frame(compiled: Compiled, cases: Cases, build_id: str) -> GoldenFrame:
    """The first round of the cases: a single case, unless the device takes several frames at once."""
    frames = compiled.plan.frames_of_all
    whole = filled(compiled.net, cases, frames)
    cases = cases if whole is cases else expecting(compiled.net, whole)
    (chosen, *_) = rounds(cases.count, frames)
    outputs = [cases.expected[i] for i in range(len(compiled.net.outputs))]
    inputs, expected = (
        tuple(array[case].tobytes() for case in chosen for array in arrays) for arrays in (cases.inputs, outputs)
    )
    return GoldenFrame(compiled.net.name, build_id, inputs, expected)


def _write_renode(
    folder: Path,
    compiled: Compiled,
    golden: Callable[[], GoldenFrame],
    built: Sequence[BuiltImage],
    dram: Dram | None,
) -> str | None:
    """Write `project/renode/`. Returns the reason if a board that Renode supports gets none."""
    images, target = [image_record(each, folder).image(folder) for each in built], folder / "project/renode"
    images = list(map(with_digests, images)) if compiled.options.self_test else images
    if "renode" not in compiled.board.runs_on:
        return None
    if compiled.coresident:
        return "networks side by side have none of their own; --on renode runs them together"
    if (refusal := objection(compiled.board, images)) is not None:
        return refusal.message
    render_renode(compiled.board, images, target, dram)
    render_suite(compiled.board, images, golden(), target)
    return None


def _manifest(
    folder: Path,
    compiled: Compiled,
    plan: Plan,
    images: list[BuiltImage],
    toolchain: Toolchain,
    build_id: str,
    told: Mapping[str, Any],
) -> Manifest:
    coresident = compiled.coresident and CoresidentRecord(network_pe=compiled.coresident.network_pe)
    return Manifest(
        model=compiled.net.name,
        model_sha256=compiled.prepared.model_sha256,
        build_id=build_id,
        board=compiled.board.as_stored,
        accelerators=tuple(map(record_of, compiled.prepared.plugins.values())),
        toolchain=toolchain.title,
        options=compiled.options.to_json(),
        images=tuple(image_record(image, folder) for image in images),
        dram=DRAM_IMAGE if plan.dram else None,
        chips=plan.chips,
        coresident=coresident,
        preference=compiled.preference,
        summary=dict(told),
        sha256={},
    )


def _ends(net: Net, names: Sequence[str]) -> list[dict[str, Any]]:
    """The inputs or outputs of the network."""
    tensors = [net.tensor(name) for name in names]
    return [{"name": each.name, "type": each.dtype, "shape": list(each.shape), **_scale(each)} for each in tensors]


def _state(net: Net, state: State) -> dict[str, Any]:
    """A state tensor, with the output for the next frame, and the initial value."""
    (told,) = _ends(net, (state.input,))
    return {**told, "becomes": state.output, "begins": state.begins}


def _scale(tensor: Tensor) -> dict[str, Any]:
    """The scale and zero point of an integer tensor without scales by channel."""
    given = tensor.quantization
    return {} if given is None or given.axis is not None else {"scale": given.scale, "zero_point": given.zero_point}


def _kernel_constants(compiled: Compiled, plan: Plan) -> dict[str, int] | None:
    """Bytes of the constants of assembly kernels, and of these in the model. None if several PEs divide them."""
    core = compiled.planned.engines.get(CORE)
    if plan.pes_used > 1 or not isinstance(core, Cpu):
        return None
    net, kernels = compiled.net, core.kernels
    read = {name for op in net.ops if op.name in kernels.ops for name in op.inputs if name in net.constants}
    return {"kernels": kernels.constant_bytes, "model": sum(net.tensor(name).bytes for name in read)}


def _undivided(net: Net) -> list[str]:
    """The ops for a single PE: TVM's code without a loop over rows."""
    return [op.name for op in net.ops if isinstance(op.attributes, TvmCode) and not cuttable_axes(net, op)]


def _op_rows(compiled: Compiled, plan: Plan) -> list[dict[str, Any]]:
    """The rows of the summary: each op's PEs, and the cycles of its slowest PE in a frame."""
    spent: dict[str, Counter[tuple[int, int]]] = {op.name: Counter() for op in compiled.net.ops}
    for pe in plan.pes:
        for step in pe.computes():
            spent[step.op][pe.pe, step.frame] += step.predicted_cycles
    return [
        {
            "name": op.name,
            "title": compiled.net.tensor(op.output).title,
            "op": op.title,
            "engine": op.engine,
            "reason": op.reason,
            "choice": op.choice,
            "kernel": compiled.planned.kernels.get(op.name),
            "macs": macs(compiled.net, op),
            "pes": sorted({pe for pe, _ in spent[op.name]}),
            "predicted_cycles": max(spent[op.name].values(), default=0),
        }
        for op in compiled.net.ops
    ]
