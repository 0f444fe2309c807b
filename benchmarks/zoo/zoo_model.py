"""One model of the zoo: built, run on the emulator, and compared with the format's own runtime.

npukit gets the model unchanged; a float model with `--float` if it is small and fits, else quantised with random
samples, or with `--float` if 8 bits are too few. TFLite models are compared with TFLite Micro, if there is one, and
with LiteRT's reference kernels; ONNX models with ONNX Runtime, and exported programs with PyTorch. On the target
`reference` nothing is built: the model is read, a float model in float, and npukit's own reference is compared, which
the firmware equals bit for bit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from benchmarks.mesh.lonely import lonely

from npukit import api
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.reference import evaluate
from npukit.options import Options
from npukit.plan.predict.frame_table import from_json
from npukit.quantize.models import load_model

REFERENCE = "reference"
MESH, PES = "16-PEs", 16
CHIP = "152-PEs"
"""The target of models that are too large for `MESH`."""
TARGETS: Mapping[str, tuple[str, int | None]] = {
    "1-PE": ("pe-mesh", 1),
    MESH: ("pe-mesh", PES),
    "mps2-an386": ("mps2-an386", None),
    CHIP: ("pe-mesh-152", None),
}
"""Targets of a build: the board, and the limit of PEs."""

CASES = 2
"""Frames of a model with states. Other models get one."""
SAMPLES = 16
SMALL = 64 * 1024
"""Largest file in bytes of a float model that is computed in float."""
AS_IT_IS = "as it is"
NEAR = 3
"""Largest accepted difference in output steps, from different rounding in a whole network."""
ENOUGH = 20.0
"""Least signal over error in decibels if the model was quantised here, or if its runtime quantises during inference."""
MARGIN = 2.0
"""Decibels by which the target of a quantisation is above `ENOUGH`, because the compared frame is not among the frames
held back. If the target is missed, the next is as much below, and then the model is built in float."""
FLOAT = 40.0
"""Least signal over error in decibels if both compute in float."""

FORK = get_context("fork")
SECONDS = 60
"""Time limit in seconds for LiteRT, which aborts on some models."""

Arrays = list[np.ndarray]


def apart(work: Callable[[], Any], seconds: int) -> list[Any]:
    """The result of `work` in a list, run silently in a forked process; empty on failure, crash or timeout. Kills all
    its children."""
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_told, args=(work, sender))
    process.start()
    sender.close()
    try:
        return [receiver.recv()] if receiver.poll(seconds) else []
    except EOFError:
        return []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()


def _told(work: Callable[[], Any], sender: Connection) -> None:
    os.setsid()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sender.send(work())


@dataclass(frozen=True)
class Given:
    """A model, and what a user must state about its inputs."""

    path: Path
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    tflm: str | None = None
    target: str = REFERENCE

    @property
    def said(self) -> dict[str, tuple[int, ...] | float]:
        """Values of the options `--input`: sizes of open shapes, and constants for inputs."""
        return {**self.shapes, **self.values}

    @property
    def options(self) -> Options:
        return Options(input_shapes=tuple(self.said.items()), pes=TARGETS[self.target][1])

    def of(self, runtime: Any) -> Given:
        """The statements about inputs that the model has."""
        names = {each.name for each in runtime.inputs}
        shapes, values = (
            {name: said for name, said in all_.items() if name in names} for all_ in (self.shapes, self.values)
        )
        return replace(self, shapes=shapes, values=values)

    def taken(self, runtime: Any, case: Arrays) -> Arrays:
        """The values of the inputs that the network takes, without inputs replaced by constants."""
        return [value for each, value in zip(runtime.inputs, case, strict=True) if each.name not in self.values]


@dataclass(frozen=True)
class Input:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass
class Found:
    """The result of a model on a target."""

    built: bool = False
    read: bool = False
    how: str = AS_IT_IS
    """The option with which the model was built, or `AS_IT_IS`."""
    why: str = ""
    """The reason for a refusal, or the difference found."""
    too_large: bool = False
    """True if the model was refused for lack of memory."""
    right: bool = False
    against: str = ""
    cycles: int = 0
    lonely: str = ""
    """The ops with more than a third of the frame on at most half of the PEs."""


class TfLite:
    """TFLite Micro, if it accepts the model, and LiteRT with reference kernels, or with its usual kernels if some are
    missing."""

    def __init__(self, given: Given) -> None:
        self._given = given

    @property
    def quantises(self) -> bool:
        """True for dynamic range quantisation: LiteRT quantises the activations of int8 weights during inference."""
        graph: Any = tflite.Model.GetRootAs(self._given.path.read_bytes()).Subgraphs(0)
        ops = (graph.Operators(place) for place in range(graph.OperatorsLength()))
        pairs = (op.InputsAsNumpy()[:2] for op in ops if op.InputsLength() > 1)
        kinds = {tuple(graph.Tensors(index).Type() for index in pair) for pair in pairs if min(pair) >= 0}
        return (tflite.TensorType.FLOAT32, tflite.TensorType.INT8) in kinds

    @property
    def inputs(self) -> list[Input]:
        graph: Any = tflite.Model.GetRootAs(self._given.path.read_bytes()).Subgraphs(0)
        return [self._input(graph.Tensors(index)) for index in graph.InputsAsNumpy()]

    def _input(self, tensor: Any) -> Input:
        name, shape = (tensor.Name() or b"").decode(), tuple(map(int, tensor.ShapeAsNumpy()))
        return Input(name, self._given.shapes.get(name, shape), np.dtype(TYPES[tensor.Type()]))

    def run(self, cases: Sequence[Arrays], remembers: bool) -> dict[str, list[Arrays]]:
        found = {"TFLite Micro": self._on_micro(cases, remembers)} if self._given.tflm else {}
        for kind in ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
            if not found.get("LiteRT"):
                run = partial(self._on_litert, kind, cases, remembers)
                found["LiteRT"] = next(iter(apart(run, SECONDS)), [])
        return {name: outputs for name, outputs in found.items() if outputs}

    def _on_litert(self, kernels: str, cases: Sequence[Arrays], remembers: bool) -> list[Arrays]:
        from ai_edge_litert import interpreter

        kind = interpreter.OpResolverType[kernels]
        run = interpreter.Interpreter(str(self._given.path), experimental_op_resolver_type=kind, num_threads=1)
        for detail in run.get_input_details():
            if detail["name"] in self._given.shapes:
                run.resize_tensor_input(detail["index"], self._given.shapes[detail["name"]])
        run.allocate_tensors()
        found: list[Arrays] = []
        for case in cases:
            for detail, value in zip(run.get_input_details(), case, strict=True):
                run.set_tensor(detail["index"], value)
            if not remembers:
                run.reset_all_variables()
            run.invoke()
            found.append([np.array(run.get_tensor(each["index"])) for each in run.get_output_details()])
        return found

    def _on_micro(self, cases: Sequence[Arrays], remembers: bool) -> list[Arrays]:
        """The outputs of TFLite Micro by `benchmarks/zoo/zoo_tflm.py`; empty if it refuses the model."""
        with tempfile.TemporaryDirectory() as scratch:
            arrays = {f"case{at}_in{place}": value for at, case in enumerate(cases) for place, value in enumerate(case)}
            np.savez(Path(scratch) / "in.npz", **arrays)  # pyright: ignore[reportArgumentType]
            script, place = Path(__file__).with_name("zoo_tflm.py"), str(self._given.path)
            command = [str(self._given.tflm), str(script), place, f"{scratch}/in.npz", f"{scratch}/out.npz"]
            command += ["remembers"] if remembers else []
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return []
            with np.load(f"{scratch}/out.npz") as file:
                count = len(file.files) // len(cases)
                return [[file[f"case{at}_out{place}"] for place in range(count)] for at in range(len(cases))]


TYPES = {
    number: {"bool": "bool_"}.get(name.lower(), name.lower())
    for name, number in vars(tflite.TensorType).items()
    if name in ("FLOAT32", "INT8", "UINT8", "INT16", "INT32", "INT64", "BOOL")
}


class OnnxRuntime:
    """ONNX Runtime without optimisations."""

    quantises = False

    def __init__(self, given: Given) -> None:
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(str(given.path), settings, providers=["CPUExecutionProvider"])
        self._shapes = given.shapes

    @property
    def inputs(self) -> list[Input]:
        return [Input(each.name, self._shape(each), _dtype(each.type)) for each in self._session.get_inputs()]

    def _shape(self, each: Any) -> tuple[int, ...]:
        sizes = (size if isinstance(size, int) else 1 for size in each.shape)
        return tuple(self._shapes.get(each.name, tuple(sizes)))

    def run(self, cases: Sequence[Arrays], remembers: bool) -> dict[str, list[Arrays]]:
        names = [each.name for each in self._session.get_inputs()]
        runs = (self._session.run(None, dict(zip(names, case, strict=True))) for case in cases)
        return {"ONNX Runtime": [list(map(np.asarray, found)) for found in runs]}


def _dtype(spelled: str) -> np.dtype[Any]:
    name = spelled.removeprefix("tensor(").removesuffix(")")
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


_BIAS = 2
"""Place of the bias among a PyTorch layer's arguments, behind data and weights."""


class PyTorch:
    """The exported program, run by PyTorch."""

    quantises = False

    def __init__(self, given: Given) -> None:
        self._torch = import_module("torch")
        with suppress(ImportError):
            import_module("torchao")  # its operators, without which its programs do not load
        self._program = self._torch.export.load(str(given.path))

    @property
    def inputs(self) -> list[Input]:
        (examples, _), names = self._program.example_inputs, self._program.graph_signature.user_inputs
        arrays = [each.numpy() for each in examples]
        return [Input(name, each.shape, each.dtype) for name, each in zip(names, arrays, strict=True)]

    def run(self, cases: Sequence[Arrays], remembers: bool) -> dict[str, list[Arrays]]:
        """The outputs. Quantised programs keep biases in float, but integer runtimes such as XNNPACK round biases to
        steps of the sums. Therefore these programs run a second time with rounded biases."""
        module = self._program.module()
        runs = {"PyTorch": self._outputs(module, cases)}
        if sum(self._rounds_bias(module, node) for node in module.graph.nodes if len(node.args) > _BIAS):
            runs["PyTorch with integer biases"] = self._outputs(module, cases)
        return runs

    def _outputs(self, module: Any, cases: Sequence[Arrays]) -> list[Arrays]:
        leaves = self._torch.utils._pytree.tree_leaves
        with self._torch.no_grad():
            runs = [leaves(module(*map(self._torch.from_numpy, case))) for case in cases]
        return [[each.numpy() for each in found] for found in runs]

    def _rounds_bias(self, module: Any, node: Any) -> bool:
        """Round the bias of a layer whose data and weights have steps. True if there is such a bias."""
        data, weights, bias = (node.args[place] for place in (0, 1, _BIAS))
        steps = [self._step(module, each) for each in (data, weights)]
        if any(each is None for each in steps) or getattr(bias, "op", "") != "get_attr" or not _is_quantised(node):
            return False
        value, step = module.get_parameter(bias.target).data, steps[0] * steps[1]
        value.copy_(self._torch.round(value / step) * step)
        return True

    @staticmethod
    def _step(module: Any, node: Any) -> Any:
        """The step of a dequantised tensor, or the steps by channel; None for other nodes."""
        kind = str(getattr(node, "target", ""))
        if "dequantize_per_channel" in kind:
            return module.get_buffer(node.args[1].target)
        return node.args[1] if "dequantize_per_tensor" in kind else None


def _is_quantised(node: Any) -> bool:
    """True if the results of a node of a PyTorch program are quantised, perhaps behind limits."""
    kinds = [str(user.target) for user in node.users]
    if len(kinds) == 1 and any(word in kinds[0] for word in ("relu", "hardtanh", "clamp")):
        return _is_quantised(next(iter(node.users)))
    return all(".quantize_per_tensor" in kind for kind in kinds)


RUNTIMES = {".tflite": TfLite, ".onnx": OnnxRuntime, ".pt2": PyTorch}


def examined(given: Given) -> Found:
    """The result of a model built, run and compared. Any exception becomes the reason `why`."""
    found = Found()
    try:
        _examine(given, found)
    except NpukitError as error:
        found.why, found.too_large = error.message, isinstance(error, DoesNotFit)
    except Exception as fault:
        found.why = f"{type(fault).__name__}: {fault}".splitlines()[0]
    return found


def _examine(given: Given, found: Found) -> None:
    runtime = RUNTIMES[given.path.suffix](given)
    given = given.of(runtime)
    random = np.random.default_rng(7)
    cases = [[drawn(each, given.values, random) for each in runtime.inputs] for _ in range(CASES)]
    if given.target == REFERENCE:
        _read(given, runtime, cases, found)
        return
    with tempfile.TemporaryDirectory() as scratch:
        build = built(given, runtime, Path(scratch), found)
        found.built = found.read = True
        found.cycles = build.manifest.summary["predicted"]["latency_cycles"]
        net = build.net()
        if given.target == MESH:
            table = from_json(build.manifest.summary["frame"])
            alone = lonely(net, build.plan(), table, PES)
            found.lonely = ", ".join(f"{each.op.name} {each.part:.0%} on {each.pes}" for each in alone)
        cases = cases_for(net, cases)
        got = ran(build, [given.taken(runtime, case) for case in cases])
        compare(given, runtime, cases, got, net, found)


def cases_for(net: Any, cases: list[Arrays]) -> list[Arrays]:
    """All cases for a model with states, in sequence; else the first."""
    return cases if net.states else cases[:1]


def ran(build: Any, cases: Sequence[Arrays]) -> list[Arrays]:
    """The outputs of the cases on the emulator. A model with states keeps them from case to case."""
    net = build.net()
    columns = zip(*cases, strict=True)
    arrays = {
        f"in{place}": np.stack([_as_taken(net, place, value) for value in column])
        for place, column in enumerate(columns)
    }
    outputs = api.run(build, inputs=arrays, stream=bool(net.states))
    return [[each[case] for each in outputs] for case in range(len(cases))]


def net_of(given: Given) -> tuple[Any, str]:
    """The imported network and the option for it: a float model is read in float."""
    read = partial(load_model, given.path, input_shapes=given.said, in_file_types=True)
    try:
        return read().net, AS_IT_IS
    except NpukitError as error:
        if "is a float model" not in error.message:
            raise
        return read(in_float=True).net, "--float"


def _read(given: Given, runtime: Any, cases: list[Arrays], found: Found) -> None:
    """Compare the cases on the reference."""
    net, found.how = net_of(given)
    found.read, frame, got = True, None, list[Arrays]()
    cases = cases_for(net, cases)
    for case in cases:
        taken = given.taken(runtime, case)
        frame = evaluate(net, [_as_taken(net, place, value) for place, value in enumerate(taken)], frame)
        got.append([frame[name] for name in net.outputs])
    compare(given, runtime, cases, got, net, found)


def built(given: Given, runtime: Any, folder: Path, found: Found) -> Any:
    """The build of the unchanged model; of a float model in float, or quantised with samples of noise if large."""
    to_build = partial(api.build, given.path, board=TARGETS[given.target][0], output=folder / "build")
    try:
        return to_build(options=given.options)
    except NpukitError as error:
        if "is a float model" not in error.message:
            raise
    if given.path.stat().st_size <= SMALL:
        with suppress(DoesNotFit):
            found.how = "--float"
            return to_build(options=replace(given.options, in_float=True))
    found.how, random = "--calibration", np.random.default_rng(8)
    inputs = [each for each in runtime.inputs if each.name not in given.values]
    samples = [[drawn(each, given.values, random) for each in inputs] for _ in range(SAMPLES)]
    arrays = {f"in{place}": np.stack(column) for place, column in enumerate(zip(*samples, strict=True))}
    np.savez(folder / "samples.npz", **arrays)  # pyright: ignore[reportArgumentType]
    calibrated = replace(given.options, calibration=folder / "samples.npz")
    for target_db in (ENOUGH + MARGIN, ENOUGH - MARGIN):
        try:
            return to_build(options=replace(calibrated, target_db=target_db))
        except NpukitError as error:
            if "from the float model" not in error.message:
                raise
    found.how = "--float"
    return to_build(options=replace(given.options, in_float=True))


def drawn(wanted: Input, values: Mapping[str, float], random: np.random.Generator) -> np.ndarray:
    """A random input: normally distributed floats, 8- and 16-bit integers of any value, wider integers and booleans 0
    or 1, and first 1, because masks hide no whole text; or the input's constant."""
    if wanted.name in values:
        return np.full(wanted.shape, values[wanted.name], wanted.dtype)
    if wanted.dtype.kind == "f":
        return random.normal(0, 1, wanted.shape).astype(wanted.dtype)
    if wanted.dtype.itemsize > 2 or wanted.dtype.kind == "b":
        bits = random.integers(0, 2, wanted.shape)
        bits.flat[:1] = 1
        return bits.astype(wanted.dtype)
    limits = np.iinfo(wanted.dtype)
    return random.integers(limits.min, limits.max + 1, wanted.shape).astype(wanted.dtype)


def _as_taken(net: Any, place: int, value: np.ndarray) -> np.ndarray:
    """The file's input, quantised if the network takes another type."""
    tensor = net.tensor(net.inputs[place])
    if value.dtype == tensor.dtype or tensor.quantization is None:
        return value
    limits = np.iinfo(tensor.dtype)
    steps = np.rint(value.astype(np.float32) / np.float32(tensor.quantization.scale)) + tensor.quantization.zero_point
    return np.clip(steps, limits.min, limits.max).astype(tensor.dtype)


def compare(given: Given, runtime: Any, cases: Sequence[Arrays], got: Sequence[Arrays], net: Any, found: Found) -> None:
    """Compare with all runtimes. Record the best match and its accuracy."""
    wanted = runtime.run(cases, bool(net.states))
    if not wanted:
        raise NpukitError("no runtime here takes it, to compare with")
    least = ENOUGH if found.how == "--calibration" or runtime.quantises else FLOAT
    judged = {name: _judged(outputs, got, net, found.how, least) for name, outputs in wanted.items()}
    name, (found.right, told) = max(judged.items(), key=lambda each: (each[1][0], each[1][1].startswith("exact")))
    found.against = f"{name}: {told}"


def _judged(wanted: Sequence[Arrays], got: Sequence[Arrays], net: Any, how: str, least: float) -> tuple[bool, str]:
    """Whether all outputs of all cases are right, and the accuracy of the worst."""
    if len(wanted[0]) != len(got[0]):
        return False, f"{len(got[0])} outputs for {len(wanted[0])}"
    worst: list[tuple[int, bool, str]] = []
    for want, ours in zip(wanted, got, strict=True):
        for place, (expected, value) in enumerate(zip(want, ours, strict=True)):
            worst.append(_difference(expected.ravel(), value.ravel(), _meaning(net, place), how, least))
    _, right, told = max(worst)
    return right, told


def _meaning(net: Any, place: int) -> Any:
    """The quantisation of an output, or of the input of its final dequantise op; None for a float."""
    tensor = net.tensor(net.outputs[place])
    maker = next((op for op in net.ops if op.output == tensor.name), None)
    if maker is not None and maker.attributes.kind == "dequantize":
        tensor = net.tensor(maker.inputs[0])
    return tensor.quantization


def _difference(want: np.ndarray, got: np.ndarray, given: Any, how: str, least: float) -> tuple[int, bool, str]:
    """The severity for sorting, whether the output is right, and the accuracy as text."""
    if want.size != got.size:
        return 9, False, f"{got.size} numbers for {want.size}"
    if np.array_equal(want, got) and want.dtype == got.dtype:
        return 0, True, "exact"
    if want.dtype.kind == "f" and got.dtype.kind != "f" and given is not None:
        got = (got.astype(np.float32) - given.zero_point) * np.float32(given.scale)
        if np.array_equal(want, got):
            return 0, True, "exact"
    if want.dtype.kind in "iub" or (given is not None and how == AS_IT_IS):
        step = given.scale if given is not None and want.dtype.kind == "f" else 1.0
        off = round(float(np.abs(want.astype(np.float64) - got.astype(np.float64)).max(initial=0)) / step)
        return (1 if off <= NEAR else 5), off <= NEAR, f"within {off}"
    want, got = (np.where(np.isnan(want) & np.isnan(got), 0, each) for each in (want, got))
    noise = float(np.square(want.astype(np.float64) - got).sum())
    signal = float(np.square(want.astype(np.float64)).sum())
    decibels = 10 * np.log10(max(signal, 1e-30) / max(noise, 1e-30))
    near = bool(np.allclose(want, got, rtol=1e-3, atol=1e-4 * (1 + np.abs(want).max(initial=0))))
    enough = near or decibels >= least
    return (2 if near else 3 if enough else 6), bool(enough), f"{min(decibels, 200):.0f} dB"
