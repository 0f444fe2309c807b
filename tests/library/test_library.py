"""The network as a C library: compiled on the host and run, compiled for Cortex-M, archived the same every time."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from unittest import mock

import pytest

from end_to_end.builds import build, shared_build
from frontend.tflite_models import ring
from helpers import CHECKOUT
from npukit import api
from npukit.accel.core_kernels import CostPreference
from npukit.board.cores import CORES
from npukit.errors import NpukitError
from npukit.library.sources import CORTEX_M, EXAMPLE, PORTABLE, library
from npukit.plan.search.tuned_choices import Advice
from npukit.project.build_folder import Build
from npukit.project.toolchain import find_toolchain, target_flags

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
STRICT += ["-fno-strict-aliasing", "-ffp-contract=off", "-I."]


def host_compiler() -> list[str]:
    found = shutil.which("cc")
    return [found] if found else [sys.executable, "-m", "ziglang", "cc"]


@pytest.fixture(scope="module")
def accelerated(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS, tmp_path_factory.mktemp("npu") / "out", pes=1)


@pytest.fixture(scope="module")
def on_core(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS, tmp_path_factory.mktemp("cpu") / "out", "mps2-an386")


def test_the_example_says_on_the_host_what_the_network_says(accelerated: Build, tmp_path: Path) -> None:
    exported = api.export(accelerated.folder, tmp_path / "lib", portable=True)
    sources = [name for name in exported.files if name.endswith(".c")]
    subprocess.run([*host_compiler(), *STRICT, *sources, "-lm", "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 0


def test_the_example_notices_a_wrong_weight(accelerated: Build, tmp_path: Path) -> None:
    exported = api.export(accelerated.folder, tmp_path / "lib", portable=True)
    file = tmp_path / "lib" / EXAMPLE
    before, wanted = file.read_text().split("wanted_", 1)
    declaration, values = wanted.split("{\n", 1)
    first = values.split(",", 1)[0].strip()
    file.write_text(f"{before}wanted_{declaration}{{\n{values.replace(first, str(int(first) ^ 1), 1)}")
    sources = [name for name in exported.files if name.endswith(".c")]
    subprocess.run([*host_compiler(), *STRICT, *sources, "-lm", "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 2


@pytest.mark.parametrize("board", ["pe-mesh", "mps2-an386"])
def test_a_library_remembers_until_it_is_reset(board: str, tmp_path: Path) -> None:
    """The example is a stream, run twice."""
    (tmp_path / "ring.tflite").write_bytes(ring(begins=5).bytes(["all"]))
    built = build(tmp_path / "ring.tflite", tmp_path / "out", board, engine="cpu", pes=1)
    exported = api.export(built.folder, tmp_path / "lib", portable=True)
    command = [*host_compiler(), *STRICT, *(name for name in exported.files if name.endswith(".c")), "-lm"]
    subprocess.run([*command, "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 0
    file = tmp_path / "lib" / EXAMPLE
    file.write_text(file.read_text().replace("ring_reset();", ""))
    subprocess.run([*command, "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 2


@pytest.mark.parametrize("portable", [False, True])
def test_it_compiles_for_cortex_m(on_core: Build, tmp_path: Path, portable: bool) -> None:
    made = library(on_core, portable)
    assert made.kind == (PORTABLE if portable else CORTEX_M)
    assert ("routines.S" in made.files) != portable
    for name, text in made.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    toolchain = find_toolchain()
    flags = [
        *target_flags(CORES["cortex-m4f"])[toolchain.name].split(),
        *STRICT,
        "-ffreestanding",
        f"-I{CHECKOUT / 'firmware/libc'}",
    ]
    for source in (name for name in made.files if name.endswith((".c", ".S"))):
        subprocess.run(
            [*toolchain.command, *flags, "-c", source, "-o", f"{Path(source).stem}.o"], cwd=tmp_path, check=True
        )


@pytest.mark.skipif(not shutil.which("cmake"), reason="there is no cmake")
def test_cmake_makes_the_library_and_its_example_passes(on_core: Build, tmp_path: Path) -> None:
    api.export(on_core.folder, tmp_path / "lib", portable=True)
    for words in (["-S", "lib", "-B", "made"], ["--build", "made"]):
        subprocess.run(["cmake", *words], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "made/libdigits_int8.a").is_file()
    subprocess.run(["ctest", "--test-dir", "made"], cwd=tmp_path, check=True, capture_output=True)


ZEPHYR = """
cmake_minimum_required(VERSION 3.20)
project(app C ASM)
foreach(name zephyr_library_named zephyr_library_sources zephyr_library_compile_options zephyr_include_directories)
  function(${name})
    message("${CMAKE_CURRENT_FUNCTION}: ${ARGN}")
  endfunction()
endforeach()
add_subdirectory(lib)
"""


@pytest.mark.skipif(not shutil.which("cmake"), reason="there is no cmake")
def test_in_zephyr_it_is_a_module_with_the_sources(on_core: Build, tmp_path: Path) -> None:
    """Zephyr's own functions are played; they say what they were called with."""
    api.export(on_core.folder, tmp_path / "lib")
    assert "cmake: ." in (tmp_path / "lib/zephyr/module.yml").read_text()
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR)
    said = subprocess.run(["cmake", "-S", ".", "-B", "made"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "zephyr_library_named: digits_int8" in said.stderr
    assert "zephyr_library_sources: digits_int8.c;kernels.c;constants.c;routines.S" in said.stderr


def test_as_an_arduino_library_it_has_no_main(on_core: Build, tmp_path: Path) -> None:
    """All C of a library's folder is compiled, that of its examples is not."""
    api.export(on_core.folder, tmp_path / "lib")
    properties = dict(line.split("=", 1) for line in (tmp_path / "lib/library.properties").read_text().splitlines())
    assert properties["name"] == "digits_int8"
    assert properties["includes"] == "digits_int8.h"
    assert properties["architectures"] == "*"
    assert all("int main(" not in file.read_text() for file in (tmp_path / "lib").glob("*.c"))
    assert "int main(" in (tmp_path / "lib" / EXAMPLE).read_text()


def test_a_tuned_build_is_exported_with_the_kernels_it_has(on_core: Build, tmp_path: Path) -> None:
    """The tuning records that it was built with are in the build: those of this machine may be others by now."""
    small = CostPreference({op.name: 30.0 for op in on_core.net().ops})
    with mock.patch("npukit.pipeline.advice_for", return_value=Advice(small)):
        tuned = api.build(DIGITS, output=tmp_path / "tuned", options=api.Options(engine="cpu", pes=1))
    plain = shared_build(DIGITS, tmp_path / "plain", engine="cpu", pes=1)
    assert tuned.plan().pes[0].steps != plain.plan().pes[0].steps
    assert library(tuned, portable=False).files["kernels.h"] != library(plain, portable=False).files["kernels.h"]


def test_a_driver_is_not_torn_out_of_its_firmware(accelerated: Build, tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="runs on mac_array, whose driver belongs to the firmware") as error:
        api.export(accelerated.folder, tmp_path / "lib")
    assert "npukit export BUILD --portable" in error.value.tries
    assert not (tmp_path / "lib").exists()


def test_two_libraries_share_no_name(accelerated: Build, on_core: Build) -> None:
    files = library(accelerated, True).files
    names = [
        line.split()[2]
        for line in files["names.h"].splitlines()
        if line.startswith("#define") and len(line.split()) == 3
    ]
    assert names
    assert all(name.startswith("digits_int8_") for name in names)
    assert library(on_core, True).files["kernels.c"] == files["kernels.c"]


def test_an_archive_is_the_same_every_time_and_safe_to_unpack(accelerated: Build, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tar", tmp_path / "second.tar"
    api.export(accelerated.folder, first, portable=True)
    api.export(accelerated.folder, second, portable=True)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(first.read_bytes())) as tar:
        members = tar.getmembers()
        tar.extractall(tmp_path / "mlf", filter="data")
    assert all(member.isreg() and member.mtime == 0 and ".." not in member.name for member in members)
    metadata = json.loads((tmp_path / "mlf/metadata.json").read_text())
    main = metadata["modules"]["digits_int8"]["memory"]["functions"]["main"][0]
    assert main["inputs"] == {"image": {"dtype": "int8", "shape": [1, 8, 8, 1], "size": 64}}
    assert main["workspace_size_bytes"] == library(accelerated, True).arena_bytes
    assert (tmp_path / "mlf/codegen/host/include/digits_int8.h").is_file()


def test_nothing_is_overwritten(accelerated: Build, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/mine.c").write_text("int mine;\n")
    with pytest.raises(NpukitError, match="is there already"):
        api.export(accelerated.folder, tmp_path / "lib", portable=True)
    assert [path.name for path in tmp_path.iterdir()] == ["lib"]
