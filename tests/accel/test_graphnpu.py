"""The example of a vendor's own network compiler: subgraphs go out as files, blobs come back and run as single ops."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from accel.boards import with_accelerator
from accel.run_net import run_net
from end_to_end.builds import DIGITS, build
from frontend.tflite_models import run_micro
from helpers import CHECKOUT, needs
from npukit import api
from npukit.accel.cpu import Cpu
from npukit.accel.interface import Accelerator
from npukit.accel.subgraphs.compiler import CompiledBlob, Form, NetworkCompiler, RefusedSubgraph
from npukit.accel.subgraphs.json_file import subgraph_text
from npukit.accel.subgraphs.plugin import NetworkPlugin
from npukit.board.board import Board, load_board
from npukit.cli.next_step import next_step
from npukit.errors import NpukitError
from npukit.net.net import Net, Op, fuse
from npukit.net.reference.interpreter import run_reference
from npukit.passes import OWN, PassOptions, run_passes
from npukit.plan.ir.plan import Compute, PePlan, View
from npukit.quantize.models import load_model
from plan.networks import Builder

EXAMPLE = CHECKOUT / "examples/accelerators/graphnpu"
BOARD = str(EXAMPLE / "graphnpu.toml")


@pytest.mark.exhaustive
def test_digits_but_for_the_softmax_are_one_op(tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", BOARD, pes=1)
    whole, softmax = built.manifest.summary["ops"]
    assert (whole["op"], whole["engine"], whole["macs"]) == ("8 ops", "graphnpu", 108_864)
    assert softmax["reason"] == "the graph NPU has no softmax"
    found = api.validate(built.folder, inputs=DIGITS / "digits.npz")
    assert found.passed, found.mismatches
    measured = api.bench(built.folder)
    assert measured.latency_cycles == pytest.approx(measured.predicted_latency_cycles, rel=0.05)


@needs("qemu-system-arm")
def test_the_blob_on_the_core_computes_the_same(tmp_path: Path) -> None:
    slot = Path(BOARD).read_text().partition("[[accelerator]]")[2].splitlines()
    lines = [line for line in slot if line and not line.startswith(("base", "plugin"))]
    board = with_accelerator(
        tmp_path, "mps2-an386", *lines[:1], f'plugin = "{(EXAMPLE / "graphnpu").as_posix()}"', *lines[1:]
    )
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", board)
    assert built.manifest.summary["ops"][0]["op"] == "8 ops"
    found = api.validate(built.folder)
    assert found.engine == "qemu"
    assert found.passed, found.mismatches


def branches() -> Net:
    """Every op of the NPU, padded and strided; two inputs; a tensor with two readers; an output in the middle."""
    b = Builder("branches", seed=6)
    x, y = b.input(1, 9, 7, 5), b.input(1, 5, 4, 6)
    seen = b.add(b.conv(b.depthwise(x), 6, (3, 2), 2), y)
    pooled = b.pool(b.pool(seen, 3, 2, maximum=True), 2, 1)
    return b.net(b.dense(b.flatten(b.add(pooled, b.conv(seen, 6, 3, 2))), 7), seen)


@pytest.mark.exhaustive
def test_a_tensor_that_is_needed_elsewhere_ends_a_subgraph(tmp_path: Path) -> None:
    ran = run_net(branches(), load_board(BOARD), tmp_path)
    assert [(op.engine, len(op.parts)) for op in ran.net.ops] == [("graphnpu", 3), ("graphnpu", 6)]
    assert ran.validation.passed, ran.validation.mismatches


@pytest.mark.exhaustive
def test_what_is_too_large_for_it_is_cut_and_the_reason_is_told(tmp_path: Path) -> None:
    small = tmp_path / "small.toml"
    small.write_text(Path(BOARD).read_text().replace("scratch_limit = 32768", "scratch_limit = 100"))
    shutil.copytree(EXAMPLE / "graphnpu", tmp_path / "graphnpu")
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", str(small))
    ops = built.manifest.summary["ops"]
    assert len(ops) > 3
    assert {op["engine"] for op in ops} == {"graphnpu", "cpu"}
    assert api.validate(built.folder, cases=2).passed


# --- the file


def one_of_everything() -> tuple[Net, Op]:
    net = branches()
    op = fuse(net.ops[:3], whole=True)
    return net, op


def test_the_file_holds_every_integer() -> None:
    net, op = one_of_everything()
    told = json.loads(subgraph_text(net, op, {"lanes": 4}))
    assert {key: told[key] for key in ("format", "version", "name", "figures", "inputs", "outputs")} == {
        "format": "npukit-subgraph",
        "version": 1,
        "name": op.name,
        "figures": {"lanes": 4},
        "inputs": ["input0", "input1"],
        "outputs": [op.output],
    }
    assert [each["kind"] for each in told["ops"]] == ["depthwise_conv2d", "conv2d", "add"]
    for each in told["ops"]:
        assert len(each["factors"]) == {"add": 3, "conv2d": 6, "depthwise_conv2d": 5}[each["kind"]]
        assert each["attributes"]["clamp"] == [-128, 127]
    for name, text in told["constants"].items():
        assert (
            base64.b64decode(text) == net.constants[name].astype(net.constants[name].dtype.newbyteorder("<")).tobytes()
        )
        assert told["tensors"][name]["shape"] == list(net.constants[name].shape)


def test_the_compiler_is_asked_once_for_each_subgraph(tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import json, pathlib, sys\n"
        f"pathlib.Path(r'{tmp_path / 'asked'}').open('a').write('x')\n"
        "answer = {'format': 'npukit-blob', 'version': 1, 'blob': 'AAEC', 'cycles': 7}\n"
        "pathlib.Path(sys.argv[2]).write_text(json.dumps(answer))\n"
    )
    compiler, (net, op) = NetworkCompiler("npu", (sys.executable, script), {}), one_of_everything()
    answers = [compiler.compiled(net, op) for _ in range(3)]
    assert all(isinstance(each, CompiledBlob) and each.blob == b"\0\1\2" and each.cycles == 7 for each in answers)
    assert (tmp_path / "asked").read_text() == "x"


def test_a_compiler_that_reads_tflite_gets_what_tflite_micro_runs(tmp_path: Path) -> None:
    script = tmp_path / "keep.py"
    answer = json.dumps({"format": "npukit-blob", "version": 1, "blob": "AAEC", "cycles": 7})
    script.write_text(
        "import pathlib, shutil, sys\n"
        f"shutil.copy(sys.argv[1], r'{tmp_path / 'kept.tflite'}')\n"
        f"pathlib.Path(sys.argv[2]).write_text('''{answer}''')\n"
    )
    net = load_model(DIGITS / "digits_int8.tflite").net
    op = fuse(net.ops, whole=True)
    answered = NetworkCompiler("npu", (sys.executable, script), {}, form="tflite").compiled(net, op)
    assert isinstance(answered, CompiledBlob)
    given = np.random.default_rng(0).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)
    (got,) = run_micro((tmp_path / "kept.tflite").read_bytes(), [[given]])
    np.testing.assert_array_equal(got[0], run_reference(net, [given])[0])


class OfCompiler(NetworkPlugin):
    """A plug-in that takes nothing."""

    name, version = "npu", "1"

    def refusal_of_one(self, net: Net, op: Op) -> str | None:
        return "it takes nothing"


@pytest.mark.parametrize(("form", "once"), [("json", True), ("onnx", True), ("tflite", False)])
def test_networks_round_as_the_files_of_a_compiler_mean(form: Form, *, once: bool) -> None:
    net = load_model(DIGITS / "digits_qdq.onnx").net
    assert net.rounds_once
    engine = cast(Accelerator, OfCompiler(NetworkCompiler("npu", (sys.executable,), {}, form=form)))
    assert run_passes(net, OWN, PassOptions({"cpu": Cpu(), "npu": engine})).rounds_once == once


# --- errors

ANSWER = '{"format": "npukit-blob", "version": 1, "blob": "AAEC", "cycles": 7'
WRONG = {
    "it fails": ("sys.exit('no licence')", "failed with status 1: no licence"),
    "it fails without a word": ("sys.exit(3)", "failed with status 3: it said nothing"),
    "it takes too long": ("import time; time.sleep(60)", "has not ended after 1 seconds"),
    "it leaves nothing": ("pass", "has ended well, but left no compiled.json"),
    "no JSON": ("leave('blob')", "left nonsense in compiled.json: the file: Invalid JSON"),
    "another format": ("leave('{\"version\": 1}')", "left nonsense in compiled.json: format: Field required"),
    "no blob": (f"leave('{ANSWER}'.replace('AAEC', '') + '}}')", "compiled.json: blob: "),
    "a blob that is not base64": (f"leave('{ANSWER}'.replace('AAEC', '~~~') + '}}')", "compiled.json: blob: "),
    "a negative cost": (f"leave('{ANSWER}'.replace('7', '-7') + '}}')", "compiled.json: cycles: "),
    "more than that": (f"leave('{ANSWER}, \"speed\": 1}}')", "compiled.json: speed: Extra inputs"),
    "a refusal without words": (
        'leave(\'{"format": "npukit-blob", "version": 1, "refusal": ""}\')', "compiled.json: refusal: "
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_it_is_named_with_the_op(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    body, says = WRONG[what]
    script = tmp_path / "wrong.py"
    script.write_text(f"import sys\ndef leave(text):\n    open(sys.argv[2], 'w').write(text)\n{body}\n")
    seconds = 1 if what == "it takes too long" else 60
    net, op = one_of_everything()
    with pytest.raises(NpukitError) as raised:
        NetworkCompiler("npu", (sys.executable, script), {}, seconds).compiled(net, op)
    assert raised.value.message.startswith("the network compiler of npu ")
    assert says in raised.value.message
    assert f"it had to compile {op.name} (depthwise_conv2d + conv2d + add)" in raised.value.message
    (kept,) = tmp_path.glob("npu-*/subgraph.json")
    assert json.loads(kept.read_text())["name"] == op.name
    assert str(kept.parent) in raised.value.tries[0]


def test_a_compiler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(NpukitError, match="of npu cannot be run: No such file"):
        NetworkCompiler("npu", ("absent-compiler",), {}).compiled(*one_of_everything())


def test_a_refusal_is_its_words(tmp_path: Path) -> None:
    script = tmp_path / "refuse.py"
    answer = {"format": "npukit-blob", "version": 1, "refusal": "too many channels"}
    script.write_text(f"import sys\nopen(sys.argv[2], 'w').write('''{json.dumps(answer)}''')\n")
    told = NetworkCompiler("npu", (sys.executable, script), {}).compiled(*one_of_everything())
    assert isinstance(told, RefusedSubgraph)
    assert told.refusal == "too many channels"


def test_a_build_with_a_broken_compiler_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shutil.copytree(EXAMPLE / "graphnpu", tmp_path / "graphnpu")
    shutil.copy(BOARD, tmp_path / "board.toml")
    (tmp_path / "graphnpu/graphnpuc.py").write_text("raise MemoryError('no room')\n")
    with pytest.raises(
        NpukitError, match=r"(?s)of graphnpu failed with status 1: .*no room.* compile dense_0 \(8 ops\)"
    ):
        build(DIGITS / "digits_int8.tflite", tmp_path / "out", str(tmp_path / "board.toml"))
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_the_model_refuses_what_is_no_blob(tmp_path: Path) -> None:
    """The compiler returns nonsense in the right form: the NPU reports an error, and the host receives it."""
    shutil.copytree(EXAMPLE / "graphnpu", tmp_path / "graphnpu")
    shutil.copy(BOARD, tmp_path / "board.toml")
    answer = {"format": "npukit-blob", "version": 1, "blob": base64.b64encode(bytes(64)).decode(), "cycles": 9}
    (tmp_path / "graphnpu/graphnpuc.py").write_text(
        f"import sys\nopen(sys.argv[2], 'w').write('''{json.dumps(answer)}''')\n"
    )
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", str(tmp_path / "board.toml"))
    inputs = np.zeros((1, *built.net().tensor(built.net().inputs[0]).shape), np.int8)
    np.savez(tmp_path / "in.npz", in0=inputs)
    with pytest.raises(NpukitError, match="3"):
        api.validate(built.folder, inputs=tmp_path / "in.npz")


@pytest.mark.exhaustive
def test_without_a_model_only_hardware_can_validate_which_is_said(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "graphnpu", tmp_path / "graphnpu")
    shutil.copy(BOARD, tmp_path / "board.toml")
    plugin = tmp_path / "graphnpu/plugin.py"
    plugin.write_text(re.sub("    model = .*", "    model = None", plugin.read_text()))
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", str(tmp_path / "board.toml"))
    with pytest.raises(NpukitError, match="only hardware runs this build: graphnpu has no model") as error:
        api.validate(built.folder)
    assert "--on serial" in error.value.tries
    said = next_step(Path("out"), built.board, built.only_on_hardware)
    assert said.startswith("npukit export out -o LIBRARY, or npukit flash out: no emulator has graphnpu")


# --- operands in the arena

BEHIND = """
import itertools, json, math, pathlib, subprocess, sys
here = pathlib.Path(__file__).parent
subprocess.run([sys.executable, here / "graphnpuc.py", *sys.argv[1:]], check=True)
answer = json.loads(pathlib.Path(sys.argv[2]).read_text())
told = json.loads(pathlib.Path(sys.argv[1]).read_text())
if "blob" in answer:
    sizes = [answer["scratch_bytes"], *(math.prod(told["tensors"][name]["shape"]) for name in told["inputs"]), 120]
    *answer["arena"], answer["scratch_bytes"] = itertools.accumulate(-(-size // 16) * 16 for size in sizes)
pathlib.Path(sys.argv[2]).write_text(json.dumps(answer))
"""
"""A compiler that places the operands in order behind the scratch memory."""


@pytest.fixture
def behind(tmp_path: Path) -> Board:
    shutil.copytree(EXAMPLE / "graphnpu", tmp_path / "graphnpu")
    plugin = tmp_path / "graphnpu/plugin.py"
    plugin.write_text(plugin.read_text().replace("graphnpuc.py", "behind.py"))
    (tmp_path / "graphnpu/behind.py").write_text(BEHIND)
    shutil.copy(BOARD, tmp_path / "board.toml")
    return load_board(str(tmp_path / "board.toml"))


@pytest.mark.exhaustive
def test_operands_lie_in_the_arena(behind: Board, tmp_path: Path) -> None:
    b = Builder("alone", seed=6)
    x, y = b.input(1, 9, 7, 5), b.input(1, 5, 4, 6)
    ran = run_net(b.net(b.add(b.conv(b.depthwise(x), 6, (3, 2), 2), y)), behind, tmp_path / "ran")
    assert ran.validation.passed, ran.validation.mismatches
    (pe,) = ran.plan.pes
    (step,) = pe.computes()
    first, second, result = (_distance(pe, step, view) for view in (*step.inputs, step.output))
    assert first >= 16
    assert (second, result, pe.buffer(step.scratch or "").bytes) == (first + 320, first + 448, first + 576)


@pytest.mark.exhaustive
def test_what_others_need_meanwhile_lies_elsewhere(behind: Board, tmp_path: Path) -> None:
    """The second op's input is an output too. It lies at the first op's wanted offset, or outside the arena."""
    ran = run_net(branches(), behind, tmp_path / "ran")
    assert ran.validation.passed, ran.validation.mismatches
    (pe,) = ran.plan.pes
    *_, last = pe.computes()
    assert not 0 <= _distance(pe, last, last.inputs[0]) < pe.buffer(last.scratch or "").bytes


def _distance(pe: PePlan, step: Compute, view: View) -> int:
    return pe.buffer(view.buffer).offset - pe.buffer(step.scratch or "").offset
