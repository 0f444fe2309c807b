"""The kit as Python functions. Each command of the command line calls one function of this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from npukit.board.board import load_board
from npukit.display import Told
from npukit.errors import NpukitError, extra_packages
from npukit.measure.cases import Cases, Inputs
from npukit.net.net import Net
from npukit.options import Network, Options
from npukit.progress import Progress, visible
from npukit.project.build_folder import Build, load_build

if TYPE_CHECKING:
    from torch.export import ExportedProgram  # pyright: ignore[reportMissingImports]
    from tvm.ir import IRModule

    from npukit.emulator.debugged import Debugger
    from npukit.emulator.fault_plan import FaultPlan
    from npukit.farm.client import FarmBench
    from npukit.farm.server import Server
    from npukit.library.write import Exported
    from npukit.link.emulated_line import EmulatedLine
    from npukit.link.programmer import Programmed
    from npukit.link.update import Flashed
    from npukit.measure.bench import Bench
    from npukit.measure.coresident import CoresidentBench
    from npukit.measure.trace import Traced
    from npukit.measure.validate import Validation
    from npukit.pipeline import Compiled
    from npukit.tuner.session import Tuned

__all__ = ["Network", "NpukitError", "Options"]
__all__ += ["build", "build_networks", "fit", "fit_networks", "load", "load_linked", "load_networks"]
__all__ += ["bench", "bench_networks", "dump_tensors", "generate", "networks_summary", "run", "trace"]
__all__ += ["validate", "validate_networks", "write_report"]
__all__ += ["emulate", "export", "export_spec", "farm_bench", "flash", "ops", "serve", "sign", "tune"]

Model: TypeAlias = "Path | str | ExportedProgram | IRModule"
"""A model file, a program of `torch.export`, or a Relax module: float, or in QDQ form."""

Folder: TypeAlias = Path | str | Build
"""A build folder, or the `Build` from `load`."""

Following: TypeAlias = Callable[[tuple[np.ndarray, ...]], Sequence[np.ndarray] | None]
"""A function from the outputs of one frame to the inputs of the next. None ends the stream."""

Networks: TypeAlias = Path | str | Mapping[str, Build]
"""A folder with the builds of several networks, or the builds from `load_networks`."""


def build(
    model: Model,
    *,
    board: str = "pe-mesh",
    output: Path | str,
    options: Options = Options(),
    dump: Path | str | None = None,
    check: bool | None = None,
    progress: Progress | None = None,
) -> Build:
    """Compile a model for a board into the folder `output`.

    `model`: a file, a program of `torch.export`, or a Relax module. `board`: a name of `npukit boards`, or a TOML file.
    `dump`: a new folder for intermediate results, namely the Relax module, the net after each pass, the plan, and the
    rejected plans.

    A check precedes the folder: the built-in emulator, or QEMU, runs a round of the build and compares it as `validate`
    does. A difference raises `Differs`. `check`: None checks if the prediction is a matter of seconds, True checks
    however long it takes, False never checks.

    >>> build = npukit.build("examples/digits/digits_int8.tflite", output="out/digits", options=npukit.Options(pes=1))
    >>> build
    <Build out/digits: digits_int8 on pe-mesh, 1 PEs>
    """
    from npukit.dump import dumping
    from npukit.frontend.models import model_file
    from npukit.pipeline import build_folder

    with model_file(model) as path, dumping(Path(dump) if dump else None):
        return build_folder(path, load_board(board), Path(output), options, visible(progress), check)


def build_networks(
    networks: Sequence[Network],
    *,
    board: str = "pe-mesh",
    output: Path | str,
    options: Options = Options(),
    check: bool | None = None,
    progress: Progress | None = None,
) -> dict[str, Build]:
    """Compile several models side by side for one board: one build for each network, in the folder `output`/NAME.

    `check` as for `build`; all networks run together while each is compared.
    """
    from npukit.networks import build_networks as compile_all

    return compile_all(networks, load_board(board), Path(output), options, visible(progress), check)


def fit_networks(
    networks: Sequence[Network],
    *,
    board: str = "pe-mesh",
    options: Options = Options(),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Predict a build of several networks without compiling anything. Raises a `DoesNotFit` that names the network."""
    from npukit.networks import compile_networks

    compiled = compile_networks(networks, load_board(board), options, visible(progress))
    return _side_by_side({name: _told(each) for name, each in compiled.items()})


def networks_summary(folder: Path | str) -> dict[str, Any]:
    """The summary of a build of several networks: the summary of each network, and the number of PEs of all."""
    return _side_by_side({name: build.manifest.summary for name, build in load_networks(folder).items()})


def _side_by_side(told: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "board": next(iter(told.values()))["board"],
        "fits": True,
        "pes_used": sum(each["pes_used"] for each in told.values()),
        "networks": [{"name": name, **each} for name, each in told.items()],
    }


def _told(compiled: Compiled) -> dict[str, Any]:
    """The JSON of `fit` for a plan."""
    from npukit.pipeline import summary
    from npukit.plan.predict.utilisation import kinds_of, load_of

    load = load_of(compiled.net, compiled.board, compiled.plan)
    fullest = min(compiled.plan.pes, key=lambda pe: pe.memory.free)
    told = {"pe": fullest.pe, **kinds_of(compiled.plan, fullest)}
    return {**summary(compiled, compiled.plan), "load": asdict(load), "fullest": told}


def fit(
    model: Model, *, board: str = "pe-mesh", options: Options = Options(), progress: Progress | None = None
) -> Told:
    """Predict a build without compiling anything: engines, PEs, memory, cycles and utilisation.

    Returns the JSON of `npukit fit`, accessible by key or by attribute, or raises `DoesNotFit`. Parameters as of
    `build`.

    >>> npukit.fit("examples/digits/digits_int8.tflite", board="stm32f4-disco").regions[0]["name"]
    'Flash'
    """
    from npukit.frontend.models import model_file
    from npukit.pipeline import compile_network

    with model_file(model) as path:
        return Told(_told(compile_network(path, load_board(board), options, visible(progress))))


def load(folder: Folder, *, modified: bool = False) -> Build:
    """Read a build folder. `modified`: accept a project that was edited by hand and built with its own `make`."""
    return folder.unchanged() if isinstance(folder, Build) else load_build(Path(folder), modified=modified)


def load_networks(folder: Networks, *, modified: bool = False) -> Mapping[str, Build]:
    """The builds of networks side by side in a folder, by name. Empty for the build of a single network."""
    from npukit.project.build_folder import load_networks as read

    return folder if isinstance(folder, Mapping) else read(Path(folder), modified=modified)


def load_linked(folder: Folder, *, modified: bool = False) -> Build:
    """The build whose firmware serves the board's link, in a folder of one network or of several."""
    if isinstance(folder, Build):
        return folder.unchanged()
    several = load_networks(folder, modified=modified)
    return next(iter(several.values())) if several else load(folder, modified=modified)


def validate_networks(
    folder: Networks,
    *,
    on: str | None = None,
    cases: int | None = None,
    schedule: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Validation]:
    """Validate each network of a folder as `validate` does, while all other networks run too."""
    from npukit.measure.coresident import validate_coresident
    from npukit.report.page import keep_results

    builds, shown = load_networks(folder), visible(progress)
    found = validate_coresident(builds, on, cases, schedule, shown)
    for name, each in found.items():
        keep_results(builds[name], shown, validation=each.to_json())
    return found


def bench_networks(
    folder: Networks, *, on: str | None = None, frames: int = 3, progress: Progress | None = None
) -> dict[str, CoresidentBench]:
    """Measure each network of a folder alone, and all networks at the same time."""
    from npukit.measure.coresident import bench_coresident
    from npukit.report.page import keep_bench

    builds, shown = load_networks(folder), visible(progress)
    found = bench_coresident(builds, on, frames, shown)
    for name, each in found.items():
        keep_bench(builds[name], each.alone, shown)
    return found


def validate(
    folder: Folder,
    *,
    on: str | None = None,
    inputs: Inputs | None = None,
    expect: str | None = None,
    cases: int | None = None,
    stream: bool = False,
    faults: Path | str | None = None,
    schedule: int | None = None,
    waves: str | None = None,
    progress: Progress | None = None,
) -> Validation:
    """Run the build as deployed and as observed. Compare outputs and layers with the integer reference, bit for bit.

    `inputs`: an npz file, its arrays by name, or the array of the first input, with cases along the first axis. In a
    network with states each case starts from the initial states, and may have several frames along a second axis. With
    `stream`, the cases are the frames of one sequence. `faults`: a plan of injected faults (docs/emulators.md).

    The built-in emulator is strict here: it faults on reads of memory that was never written. It also repeats deployed
    frames under schedules that delay messages and PEs. With `schedule`, the seed of one schedule, frames run under that
    schedule alone. The results go into the build's report.

    `waves`, with `on="rtl"`: "PE:LAYER" writes the waveform of a layer's work on a PE in an observed frame of case 0
    ("@CASE" behind: of another) that runs first. "PE:FIRST-LAST" writes the cycles of this run.

    >>> found = npukit.validate("out/digits", inputs=pictures["in0"][:5])
    >>> found.passed, found.cases
    (True, 5)
    """
    from npukit.measure import waves as waveforms
    from npukit.measure.memory import check_memory
    from npukit.measure.schedules import compare
    from npukit.measure.stopped import located
    from npukit.measure.target import Emulation, open_target
    from npukit.report.page import keep_results

    built, shown = load(folder), visible(progress)
    net = built.net()
    chosen = _cases(built, net, inputs, expect, cases, stream=stream)
    in_run, files = waveforms.begin(built, chosen, waves, on, shown)
    emulation = Emulation(strict=True, faults=_plan_of_faults(faults), waves=in_run)
    with waveforms.naming(built, in_run), open_target(built, on, emulation, shown) as target:
        found = compare(target, net, built.plan(), chosen, schedule, shown)
        check_memory(target.session, built)
        found = located(target, net, built.plan(), chosen, found).with_rtl(target.in_rtl)
    found = replace(found, waves=(files or waveforms.written(built, in_run)) if waves else None)
    keep_results(built, shown, validation=found.to_json())
    return found


def run(
    folder: Folder,
    *,
    on: str | None = None,
    inputs: Inputs | None = None,
    stream: bool = False,
    faults: Path | str | None = None,
    debugger: Debugger | None = None,
    progress: Progress | None = None,
) -> tuple[np.ndarray, ...]:
    """The outputs of all cases: one array for each output, with the leading axes of the inputs.

    `inputs`, `stream` and `faults` as for `validate`.

    >>> scores = npukit.run("out/digits", inputs=pictures["in0"][:5])[0]
    >>> scores.argmax(axis=-1).ravel(), pictures["labels"][:5]
    (array([7, 6, 3, 7, 7]), array([7, 6, 3, 7, 7], dtype=uint8))
    """
    from npukit.measure.cases import rounds, stack
    from npukit.measure.memory import check_memory
    from npukit.measure.target import Emulation, open_target
    from npukit.measure.validate import run_round

    built = load(folder)
    net = built.net()
    chosen, shown = _cases(built, net, inputs, None, stream=stream), visible(progress)
    with open_target(built, on, Emulation(faults=_plan_of_faults(faults), debugger=debugger), shown) as target:
        each = shown.track(rounds(chosen.count, built.plan().frames_of_all), f"run on {target.name}")
        outputs = [frame for cases in each for frame in run_round(target.session, net, chosen, cases, observe=False)]
        check_memory(target.session, built)
        return tuple(map(chosen.given, stack(outputs[: chosen.count])))


def dump_tensors(
    folder: Folder,
    names: Sequence[str],
    *,
    on: str | None = None,
    inputs: Inputs | None = None,
    stream: bool = False,
    progress: Progress | None = None,
) -> dict[str, np.ndarray]:
    """The outputs of layers in all cases, assembled from the tiles of the PEs. `names` as in the model or in the net.

    Each tensor of each case takes one observed frame, which stops after the layer.

    >>> npukit.dump_tensors("out/digits", ["stem_out"])["stem_out"].shape
    (8, 1, 8, 8, 16)
    """
    from npukit.measure.stopped import dumped, op_of
    from npukit.measure.target import open_target

    built, net = load(folder), load(folder).net()
    ops = {name: op_of(net, name) for name in names}
    chosen, shown = _cases(built, net, inputs, None, stream=stream), visible(progress)
    with open_target(built, on) as target:
        shown.stage(f"fetch {', '.join(names)}")
        made = dumped(target, net, built.plan(), chosen, list(ops.values()))
    return {name: made[op] for name, op in ops.items()}


def generate(folder: Folder, following: Following, *, on: str | None = None) -> list[tuple[np.ndarray, ...]]:
    """The outputs of one stream of frames, each computed from the previous frame: one token after another.

    `following`: receives the outputs of the last frame (none at first) and returns the inputs of the next frame as the
    network takes them, or None to end. The first frame starts from the initial states. The caller handles tokens,
    embeddings and sampling.

    >>> outputs = npukit.generate("out/llama", lambda outputs: None if outputs == END else frame_of(outputs))
    """
    from npukit.measure.target import open_target
    from npukit.measure.validate import run_frame

    built, found = load(folder), list[tuple[np.ndarray, ...]]()
    net, frames = built.net(), built.plan().frames_of_all
    if frames > 1:
        raise NpukitError(f"the build takes {frames} frames at once", tries=["--objective latency"])
    with open_target(built, on) as target:
        if net.states:
            target.session.reset_states()
        while inputs := following(found[-1] if found else ()):
            found.append(run_frame(target.session, net, inputs))
    return found


def bench(
    folder: Folder,
    *,
    on: str | None = None,
    frames: int = 3,
    inputs: Inputs | None = None,
    stream: bool = False,
    progress: Progress | None = None,
) -> Bench:
    """Measure frames on the target: cycles and instructions, whole and layer by layer. Wrong outputs are an error.

    `inputs` and `stream` as for `validate`. An op with branches needs representative inputs, not noise. The results go
    into the build's report.

    >>> npukit.bench("out/digits", frames=1).layers[0].title
    'stem_out'
    """
    from npukit.measure.target import C_MODELS, RTL
    from npukit.report.page import keep_bench

    built, shown = load(folder), visible(progress)
    count = None if inputs is None else max(frames, 2)
    cases = _cases(built, built.net(), inputs, None, count, stream=stream)
    measured = _bench(built, cases, on, frames, shown)
    if on == RTL:
        measured = replace(measured, manual=_bench(built, cases, C_MODELS, frames, shown))
    keep_bench(built, measured, shown)
    return measured


def _bench(built: Build, cases: Cases, on: str | None, frames: int, shown: Progress) -> Bench:
    from npukit.measure.bench import bench as measure
    from npukit.measure.target import open_target
    from npukit.measure.trace import timeline_of

    net, plan, clock = built.net(), built.plan(), built.board.core.clock_hz
    with open_target(built, on, progress=shown) as target:
        one_chip = plan.frames_of_all == plan.frames
        seen = timeline_of(built, cases, 1, target.name) if target.emulator and one_chip else None
        rate = built.manifest.options["frames_per_second"]
        return measure(target, net, plan, cases, clock, frames, shown, seen, rate)


def trace(
    folder: Folder,
    output: Path | str,
    *,
    on: str | None = None,
    frames: int = 1,
    pes: str | None = None,
    progress: Progress | None = None,
) -> Traced:
    """Record frames to the cycle, and write the trace for ui.perfetto.dev. `pes`: "0-3,8".

    The built-in emulator records every event of any build. On other targets the build needs `Options.trace`, whose
    firmware records when each step of a frame began on each PE.
    """
    from npukit.emulator.here import usual
    from npukit.measure.trace import write_trace

    built, shown = load(folder), visible(progress)
    name = on or usual(built.board)
    shown.stage(f"trace on {name}")
    return write_trace(built, _cases(built, built.net(), None, None), frames, pes, Path(output), name)


def write_report(folder: Folder, *, compare: Folder | None = None, output: Path | None = None) -> Path:
    """Write the report of a build with all known results. `compare`: write a page of both builds instead."""
    from npukit.report.compare import write_comparison
    from npukit.report.page import write_report as write

    if compare is None:
        return write(load(folder))
    return write_comparison(load(folder), load(compare), output)


def farm_bench(folder: Path | str, *, tracker: str, key: str | None = None, frames: int = 3) -> FarmBench:
    """Measure frames on all boards that the TVM tracker at `HOST:PORT` lists under the key, side by side."""
    from npukit.farm.tracker import HostPort

    with extra_packages("farm", "a farm of boards"):
        from npukit.farm.client import farm_bench as measure

    built = load(folder)
    return measure(HostPort.parse(tracker), key or built.board.name, built.manifest.build_id, frames)


@contextmanager
def serve(
    folder: Path | str,
    *,
    on: str | None = None,
    host: str = "127.0.0.1",
    port: int = 9090,
    key: str | None = None,
    tracker: str | None = None,
    trials: bool = False,
    progress: Progress | None = None,
) -> Iterator[Server]:
    """The build on its board as a TVM RPC server, at `port` or the next free port, until the context ends.

    Clients run and time this network. `trials`: clients may also load other builds onto the board (`npukit tune`).
    Clients must be other processes: a waiting TVM client holds Python's lock, and the server is a thread.
    """
    from npukit.farm.served import ServedBoard
    from npukit.farm.server import Server
    from npukit.farm.tracker import HostPort
    from npukit.measure.target import open_target

    built, registry = load(folder), HostPort.parse(tracker) if tracker else None
    if registry:
        registry.check()
    with open_target(built, on, progress=visible(progress)):
        pass  # check that the board is present and runs this build
    board = ServedBoard(built.folder, on)
    server = Server(board, host, port, key or built.board.name, registry, trials=trials)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def emulate(
    folder: Folder,
    *,
    port: int | None = None,
    flash: Path | str | None = None,
    new: bool = False,
    progress: Progress | None = None,
) -> Iterator[EmulatedLine]:
    """The build on an emulated board, behind a pseudo-terminal or behind the TCP port number `port`, until the context
    ends.

    Hosts open the `port` of the yielded line like a board's. `flash`: a file that keeps the board's flash. `new`: start
    with the empty flash of a board from the factory.
    """
    from npukit.measure.emulated import emulated_line

    kept = Path(flash) if flash else None
    with emulated_line(load_linked(folder), port, kept, new, visible(progress)) as line:
        yield line


def export(
    folder: Path | str,
    output: Path | str,
    *,
    portable: bool = False,
    labels: Path | str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write the network as a C library: a folder of sources, or a Model Library Format archive (`.tar`).

    `labels`: a file with one name a line for the values of the first output. `force`: replace an earlier export.
    """
    from npukit.library.write import export as write

    visible(progress).stage("export")
    return write(load(folder), Path(output), portable, Path(labels) if labels else None, force=force)


def export_spec(folder: Folder, output: Path | str, *, force: bool = False) -> tuple[str, ...]:
    """Write the memory image of each PE, and a `spec.json` that lists the bytes to send and to read (`docs/link.md`).

    The bytes to send are the build's golden inputs. Returns the names of the written files.
    """
    from npukit.library.write import export_spec as write

    return write(load(folder), Path(output), force=force)


def tune(
    folder: Path | str,
    *,
    on: str | None = None,
    budget_seconds: float = 300,
    database: Path | str | None = None,
    merge: Sequence[Path | str] = (),
    tracker: str | None = None,
    key: str | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Measure alternative kernels, loops and layouts, keep the faster ones, and rebuild the folder with them.

    `database`: the file of tuning records (builds look in `$NPUKIT_TUNED` or the user's cache). `merge`: files of
    records to start from. `tracker`: a TVM tracker at `HOST:PORT`; all boards of the key measure side by side.
    """
    from npukit.farm.tracker import HostPort
    from npukit.farm.trials import local, on_farm
    from npukit.pipeline import build_again
    from npukit.tuner.session import Tuner
    from npukit.tuning import default_path, load_database

    built, path, shown = load(folder), Path(database) if database else default_path(), visible(progress)
    if built.manifest.coresident:  # the other networks refer to its addresses
        raise NpukitError(
            f"{built.folder} shares its board with other networks, and cannot be built again alone",
            tries=["tune a build of this network alone; builds to come find what was found"],
        )
    for each in merge:
        load_database(path).merged(load_database(Path(each))).save(path)
    farm = on_farm(HostPort.parse(tracker), key or built.board.name) if tracker else local(on)
    with farm as measurer:
        return Tuner(built, path, measurer, build_again, shown).run(budget_seconds)


def ops(*, board: str = "pe-mesh") -> list[dict[str, Any]]:
    """The kinds of op: for each kind the board's engines that run it, the types, and the names in model formats."""
    from npukit.accel.engines import engines_of
    from npukit.net.examples import examples
    from npukit.net.ops.table import SPECS

    engines = engines_of(load_board(board))
    return [
        {
            "name": net.name,
            "engines": [name for name, engine in engines.items() if engine.refusal(net, net.ops[-1]) is None],
            "types": sorted({net.tensor(name).dtype for name in (*net.inputs, *net.outputs)}),
            "formats": asdict(SPECS[net.name].names),
        }
        for net in examples()
    ]


def flash(
    folder: Folder,
    *,
    port: str = "serial",
    key: Path | str | None = None,
    version: str = "0.0.0",
    security_counter: int = 0,
    allow_older: bool = False,
    provision: bool = False,
    dry_run: bool = False,
    trust: bool = False,
    passphrase: Callable[[Path], str] | None = None,
    progress: Progress | None = None,
) -> Flashed | Programmed:
    """Write the build, signed with `key`, into the flash of the board at `port`. `dry_run`: only report the changes.

    `port`: a serial device, `serial` for the only connected one, `emulator`, or `emulator:FILE`.

    NPUKIT_KEY_PASSPHRASE, or the result of `passphrase`, opens an encrypted key. `provision`: bind a new board to this
    key for good. Without a key, let the board take any image for good. A board without npukit's loader is written with
    the tool of its board file, and takes no key and no version. A build that its maker signed needs `trust` once
    (docs/link.md).
    """
    from npukit.boot.keys import load_key
    from npukit.boot.maker import check_maker
    from npukit.link import update
    from npukit.link.flash_port import open_board, update_of
    from npukit.link.programmer import program

    built, shown = load_linked(folder), visible(progress)
    for each in built.coresident:
        check_maker(each, trust=trust)
    if built.board.programmer:
        if key or allow_older or provision or security_counter:
            raise NpukitError(f"board {built.board.name} has no loader that would check a signature or a version")
        return program(built, port, shown, dry_run=dry_run)
    signer = load_key(Path(key), passphrase) if key else None
    wanted = update_of(
        built, signer, version, security_counter=security_counter, may_be_older=allow_older, provisions=provision
    )
    with open_board(built, port, signer, shown) as transport:
        return update.dry_run(transport, wanted) if dry_run else update.flash(transport, wanted, shown)


def sign(folder: Folder, key: Path | str, passphrase: Callable[[Path], str] | None = None) -> None:
    """Sign a build, or each of several networks, to let hosts verify the maker before flashing."""
    from npukit.boot.keys import load_key
    from npukit.boot.maker import sign_build

    signer = load_key(Path(key), passphrase)
    for each in load_linked(folder).coresident:
        sign_build(each, signer)


def _plan_of_faults(path: Path | str | None) -> FaultPlan | None:
    from npukit.emulator.fault_plan import load_fault_plan

    return load_fault_plan(Path(path)) if path else None


def _cases(
    built: Build,
    net: Net,
    inputs: Inputs | None,
    expect: str | None,
    count: int | None = None,
    *,
    stream: bool = False,
) -> Cases:
    from npukit.measure.cases import as_stream, first_cases, load_cases
    from npukit.project.build_folder import GOLDEN

    cases = first_cases(load_cases(built.folder / GOLDEN if inputs is None else inputs, net, expect), count)
    return as_stream(cases, net) if stream else cases
