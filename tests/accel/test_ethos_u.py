"""The Arm Ethos-U example: Vela compiles TFLite files; images and libraries contain the command streams."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import DIGITS, build
from frontend.tflite_models import run_micro
from helpers import CHECKOUT, first_of, models
from npukit import api
from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.subgraphs.compiler import CompiledBlob, NetworkCompiler
from npukit.board.board import load_board
from npukit.cli.next_step import next_step
from npukit.errors import NpukitError
from npukit.net.net import fuse
from npukit.net.reference.interpreter import run_reference
from npukit.project.build_folder import Build
from npukit.quantize.models import load_model

EXAMPLE = CHECKOUT / "examples/accelerators/ethos_u"
BOARD = str(EXAMPLE / "ethos_u.toml")
MAGIC, STOP = 0x554F4854, 0xFFFF0000

with_vela = pytest.mark.skipif(find_spec("ethosu") is None, reason="Vela (ethos-u-vela) is not here")


def blob_of(folder: Path) -> bytes:
    """The blob in the C of a library or a build."""
    text = (folder / "constants.c").read_text()
    values = text.split("_blob = {\n", 1)[1].split("}", 1)[0].replace("\n", "").split(",")
    return bytes(int(value) for value in values if value.strip())


@pytest.mark.exhaustive
@with_vela
def test_a_network_is_one_op_and_goes_into_a_library_with_its_stream(tmp_path: Path) -> None:
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", BOARD)
    (op,) = built.manifest.summary["ops"]
    assert (op["op"], op["engine"]) == ("9 ops", "ethos_u")
    api.export(built.folder, tmp_path / "lib")
    blob = blob_of(tmp_path / "lib")
    magic, start, size, weights, inputs, outputs, *_ = struct.unpack_from("<16I", blob)
    assert (magic, inputs, outputs) == (MAGIC, 1, 1)
    assert start % 16 == weights % 16 == 0
    assert struct.unpack_from("<I", blob, start + size - 4) == (STOP,)
    assert {path.name for path in (tmp_path / "lib/drivers").iterdir()} >= {"ethos_u.c", "ethos_u.h", "accelerator.h"}
    assert offsets_in_the_arena(built) == [struct.unpack_from("<I", blob, at)[0] for at in (24, 32)]


def offsets_in_the_arena(built: Build) -> list[int]:
    """Offsets in the arena of the only op's inputs, then of its output."""
    (pe,) = built.plan().pes
    (step,) = pe.computes()
    arena = pe.buffer(step.scratch or "")
    places = [pe.buffer(view.buffer) for view in (*step.inputs, step.output)]
    return [place.offset - arena.offset for place in places]


@pytest.mark.exhaustive
@with_vela
def test_only_hardware_can_validate_it_which_is_said(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "ethos_u", tmp_path / "ethos_u")
    (tmp_path / "board.toml").write_text(Path(BOARD).read_text().replace('["serial"]', '["emulator"]'))
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "out", str(tmp_path / "board.toml"))
    with pytest.raises(NpukitError, match="only hardware runs this build: ethos_u has no model") as error:
        api.validate(built.folder)
    assert "--on serial" in error.value.tries
    said = next_step(Path("out"), built.board, built.only_on_hardware)
    assert said.startswith("npukit export out -o LIBRARY, or npukit flash out: no emulator has ethos_u")


@with_vela
@pytest.mark.parametrize("name", first_of(["kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "vww_96_int8"]))
def test_mlperf_tiny_networks_become_images(name: str, tmp_path: Path) -> None:
    built = build(models() / f"{name}.tflite", tmp_path / "out", BOARD)
    assert [op["engine"] for op in built.manifest.summary["ops"] if op["op"] != "softmax"] == ["ethos_u"]
    (image,) = built.manifest.images
    assert blob_of(built.folder / "project/net") in (built.folder / image.elf).read_bytes()


def test_without_vela_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ethosu'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    net = load_model(DIGITS / "digits_int8.tflite").net
    with pytest.raises(NpukitError, match="Vela is not here: pip install ethos-u-vela"):
        assign_engines(net, engines_of(load_board(BOARD)))


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
