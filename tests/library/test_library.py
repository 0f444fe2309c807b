"""The network as a C library: compiled on the host and run, compiled for Cortex-M, archived reproducibly."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from unittest import mock
from xml.etree import ElementTree

import pytest

from end_to_end.builds import build, shared_build
from frontend.tflite_models import ring
from helpers import CHECKOUT, GCC, HOST_COMPILER, first_of, needs
from npukit import api
from npukit.accel.core_kernels import CostPreference
from npukit.board.cores import CORES
from npukit.errors import NpukitError
from npukit.library.sources import CORTEX_M, EXAMPLE, PORTABLE, library
from npukit.project.build_folder import Build
from npukit.project.toolchain import find_toolchain, target_flags

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
STRICT = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
STRICT += ["-fno-strict-aliasing", "-ffp-contract=off", "-I."]


@pytest.fixture(scope="module")
def accelerated(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS, tmp_path_factory.mktemp("npu") / "out", pes=1)


@pytest.fixture(scope="module")
def on_core(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS, tmp_path_factory.mktemp("cpu") / "out", "mps2-an386")


def test_the_example_says_on_the_host_what_the_network_says(accelerated: Build, tmp_path: Path) -> None:
    exported = api.export(accelerated.folder, tmp_path / "lib", portable=True)
    sources = [name for name in exported.files if name.endswith(".c")]
    subprocess.run([*HOST_COMPILER, *STRICT, *sources, "-lm", "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 0


def test_the_example_notices_a_wrong_weight(accelerated: Build, tmp_path: Path) -> None:
    exported = api.export(accelerated.folder, tmp_path / "lib", portable=True)
    file = tmp_path / "lib" / EXAMPLE
    before, wanted = file.read_text().split("wanted_", 1)
    declaration, values = wanted.split("{\n", 1)
    first = values.split(",", 1)[0].strip()
    file.write_text(f"{before}wanted_{declaration}{{\n{values.replace(first, str(int(first) ^ 1), 1)}")
    sources = [name for name in exported.files if name.endswith(".c")]
    subprocess.run([*HOST_COMPILER, *STRICT, *sources, "-lm", "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 2


@pytest.mark.parametrize("board", first_of(["pe-mesh", "mps2-an386"]))
def test_a_library_remembers_until_it_is_reset(board: str, tmp_path: Path) -> None:
    """The example is a stream, run twice."""
    (tmp_path / "ring.tflite").write_bytes(ring(begins=5).bytes(["all"]))
    built = build(tmp_path / "ring.tflite", tmp_path / "out", board, engine="cpu", pes=1)
    exported = api.export(built.folder, tmp_path / "lib", portable=True)
    command = [*HOST_COMPILER, *STRICT, *(name for name in exported.files if name.endswith(".c")), "-lm"]
    subprocess.run([*command, "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 0
    file = tmp_path / "lib" / EXAMPLE
    file.write_text(file.read_text().replace("ring_reset();", ""))
    subprocess.run([*command, "-o", "example"], cwd=tmp_path / "lib", check=True)
    assert subprocess.run([tmp_path / "lib/example"], check=False).returncode == 2


@pytest.mark.exhaustive
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


@needs("cmake")
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


@needs("cmake")
def test_in_zephyr_it_is_a_module_with_the_sources(on_core: Build, tmp_path: Path) -> None:
    """Stand-ins for Zephyr's functions print their arguments."""
    api.export(on_core.folder, tmp_path / "lib")
    assert "cmake: ." in (tmp_path / "lib/zephyr/module.yml").read_text()
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR)
    said = subprocess.run(["cmake", "-S", ".", "-B", "made"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "zephyr_library_named: digits_int8" in said.stderr
    assert "zephyr_library_sources: digits_int8.c;constants.c;kernels.c;routines.S" in said.stderr


def test_as_an_arduino_library_it_has_no_main(on_core: Build, tmp_path: Path) -> None:
    """Arduino compiles all C files of a library's folder, but none of its examples."""
    api.export(on_core.folder, tmp_path / "lib")
    properties = dict(line.split("=", 1) for line in (tmp_path / "lib/library.properties").read_text().splitlines())
    assert properties["name"] == "digits_int8"
    assert properties["includes"] == "digits_int8.h"
    assert "stm32" in properties["architectures"].split(",")
    api.export(on_core.folder, tmp_path / "portable", portable=True)
    assert "architectures=*\n" in (tmp_path / "portable/library.properties").read_text()
    assert all("int main(" not in file.read_text() for file in (tmp_path / "lib").glob("*.c"))
    assert "int main(" in (tmp_path / "lib" / EXAMPLE).read_text()


@pytest.mark.exhaustive
def test_a_tuned_build_is_exported_with_the_kernels_it_has(on_core: Build, tmp_path: Path) -> None:
    """The build holds the tuning records used for it. The records of this machine may differ by now."""
    small = CostPreference({op.name: 30.0 for op in on_core.net().ops})
    with mock.patch("npukit.pipeline.preference_for", return_value=small):
        tuned = api.build(DIGITS, output=tmp_path / "tuned", options=api.Options(engine="cpu", pes=1))
    plain = shared_build(DIGITS, tmp_path / "plain", engine="cpu", pes=1)
    assert tuned.plan().pes[0].steps != plain.plan().pes[0].steps
    assert library(tuned, portable=False).files["kernels.h"] != library(plain, portable=False).files["kernels.h"]


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


@pytest.mark.exhaustive
def test_an_archive_is_the_same_every_time_and_safe_to_unpack(accelerated: Build, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tar", tmp_path / "second.tar"
    api.export(accelerated.folder, first, portable=True)
    api.export(accelerated.folder, second, portable=True)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(first.read_bytes())) as tar:
        members = tar.getmembers()
        assert all(member.isreg() and member.mtime == 0 and ".." not in member.name for member in members)
        tar.extractall(tmp_path / "mlf")
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


def compiled(folder: Path, program: str, *flags: str) -> Path:
    """Compile a customer's program with the library in `folder`."""
    (folder / "own.c").write_text(program)
    sources = [name.name for name in folder.glob("*.c")]
    subprocess.run([*HOST_COMPILER, *STRICT, *flags, *sources, "-lm", "-o", "own"], cwd=folder, check=True)
    return folder / "own"


TWO = """
#include "digits_int8.h"
#include <string.h>

static int32_t order[DIGITS_INT8_STEPS + 1];
static int seen;
void seen_step(int32_t step);
void seen_step(int32_t step) { order[seen++ % (DIGITS_INT8_STEPS + 1)] = step; }

static digits_int8_memory first, second;

static int8_t run(digits_int8_memory *instance, float pixel)
{
    digits_int8_use(instance);
    digits_int8_init();
    memset(digits_int8_input_image(), digits_int8_quantize_input_image(pixel), DIGITS_INT8_INPUT_IMAGE_ELEMENTS);
    return digits_int8_run() == 0 ? digits_int8_output_probabilities()[3] : 0;
}

int main(void)
{
    const int8_t dark = run(&first, 0.0F), light = run(&second, 1.0F);
    digits_int8_use(&first);
    if (digits_int8_output_probabilities()[3] != dark || run(&first, 1.0F) != light || dark == light) {
        return 1;
    }
    for (int32_t i = 0; i <= DIGITS_INT8_STEPS; i++) {
        if (order[i] != i) {
            return 2;
        }
    }
    return seen == 3 * (DIGITS_INT8_STEPS + 1) ? 0 : 3;
}
"""


@pytest.mark.exhaustive
def test_two_instances_in_memory_of_the_caller_s_and_a_hook(accelerated: Build, tmp_path: Path) -> None:
    api.export(accelerated.folder, tmp_path / "lib", portable=True)
    program = compiled(tmp_path / "lib", TWO, "-DDIGITS_INT8_NO_MEMORY", "-DDIGITS_INT8_HOOK=seen_step")
    assert subprocess.run([program], check=False).returncode == 0


ENDS = """
#include "digits_int8.h"
#include <stdio.h>

int main(void)
{
    static const int shape[] = DIGITS_INT8_INPUT_IMAGE_SHAPE;
    static const char *const labels[] = DIGITS_INT8_LABELS, *const steps[] = DIGITS_INT8_STEP_NAMES;
    static const float given[] = {-9e9F, -0.1F, 0.0F, 0.25F, 1.0F, 9e9F, 0.0F / 0.0F};
    for (int i = 0; i < DIGITS_INT8_INPUT_IMAGE_RANK; i++) {
        printf("%d ", shape[i]);
    }
    for (int i = 0; i < 7; i++) {
        printf("%d ", digits_int8_quantize_input_image(given[i]));
    }
    printf("%g ", (double)digits_int8_dequantize_output_probabilities(-64));
    printf("%s %s\\n", labels[7], steps[DIGITS_INT8_STEPS - 1]);
    return 0;
}
"""


@pytest.mark.exhaustive
def test_shapes_scales_and_labels_are_constants(accelerated: Build, tmp_path: Path) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_text("".join(f'the "{digit}"\n' for digit in range(10)))
    api.export(accelerated.folder, tmp_path / "lib", portable=True, labels=labels)
    said = subprocess.run([compiled(tmp_path / "lib", ENDS)], check=True, capture_output=True, text=True).stdout
    assert said == '1 8 8 1 -128 -128 -128 -64 127 127 -128 0.25 the "7" softmax_0\n'
    labels.write_text("one\ntwo\n")
    with pytest.raises(NpukitError, match="has 2 labels, probabilities 10 values"):
        api.export(accelerated.folder, tmp_path / "other", portable=True, labels=labels)


def _has_newlib() -> bool:
    """True if gcc is installed with the C library's headers, which are a separate package."""
    command = [GCC, "-E", "-x", "c", "-include", "string.h", "/dev/null"]
    return bool(shutil.which(GCC)) and subprocess.run(command, check=False, capture_output=True).returncode == 0


needs_gcc = pytest.mark.skipif(not _has_newlib(), reason=f"{GCC} with newlib is not here")


@needs_gcc
@pytest.mark.parametrize("source", ["routines.S", "digits_int8.c"])
def test_a_core_without_dsp_is_refused_by_its_name(on_core: Build, tmp_path: Path, source: str) -> None:
    api.export(on_core.folder, tmp_path / "lib")
    command = [GCC, "-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-c", source, "-o", "x.o"]
    done = subprocess.run(command, cwd=tmp_path / "lib", check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "need the DSP instructions of Armv7E-M: npukit export --portable" in done.stderr


def test_force_replaces_an_earlier_export_and_nothing_else(accelerated: Build, tmp_path: Path) -> None:
    library, thesis = tmp_path / "lib", tmp_path / "thesis"
    api.export(accelerated.folder, library, portable=True)
    (library / "left.c").touch()
    with pytest.raises(NpukitError, match="is there already") as error:
        api.export(accelerated.folder, library, portable=True)
    assert "--force" in error.value.tries
    api.export(accelerated.folder, library, portable=True, force=True)
    assert not (library / "left.c").exists()
    thesis.mkdir()
    (thesis / "chapter.txt").touch()
    with pytest.raises(NpukitError, match="is there already") as error:
        api.export(accelerated.folder, thesis, portable=True, force=True)
    assert "--force" not in error.value.tries


def test_the_descriptions_name_files_that_are_there(on_core: Build, tmp_path: Path) -> None:
    """The descriptions are those of PlatformIO and CMSIS-Pack."""
    api.export(on_core.folder, tmp_path)
    described = json.loads((tmp_path / "library.json").read_text())
    assert (described["name"], described["headers"]) == ("digits_int8", "digits_int8.h")
    pack = ElementTree.parse(tmp_path / "npukit.digits_int8.pdsc").getroot()
    files = {str(file.get("name")) for file in pack.iter("file")}
    assert {"digits_int8.c", "kernels.c", "constants.c", "routines.S", "digits_int8.h"} <= files
    assert all((tmp_path / name).exists() for name in files)
    assert [each.get("Ddsp") for each in pack.iter("require")] == ["DSP"]


@needs_gcc
def test_a_firmware_is_built_of_what_the_pack_lists_alone(on_core: Build, tmp_path: Path) -> None:
    """A project's own main, with the component's sources and include folders copied to the usual place of packs."""
    library, project = tmp_path / "lib", tmp_path / "project"
    api.export(on_core.folder, library)
    pack = ElementTree.parse(library / "npukit.digits_int8.pdsc").getroot()
    listed = [(str(file.get("category")), str(file.get("name"))) for file in pack.iter("file")]
    for name in (name for category, name in listed if category != "include"):
        (project / "packs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library / name, project / "packs" / name)
    sources = [f"packs/{name}" for category, name in listed if category.startswith("source")]
    folders = [f"-Ipacks/{name}" for category, name in listed if category == "include"]
    shutil.copy(library / "selftest/main.c", project / "main.c")
    core = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-std=c11", "-Wall", "-Werror"]
    linked = ["--specs=nosys.specs", "-Wl,--no-warnings", "-lm", "-o", "firmware.elf"]
    subprocess.run([GCC, *core, *folders, "main.c", *sources, *linked], cwd=project, check=True)
    assert (project / "firmware.elf").stat().st_size > 10_000


@needs("pio")
def test_platformio_packs_the_library(on_core: Build, tmp_path: Path) -> None:
    """PlatformIO's packer parses the description like the registry does. PlatformIO's build systems are not tested,
    because only the registry offers them."""
    api.export(on_core.folder, tmp_path / "lib")
    command = ["pio", "pkg", "pack", "-o", str(tmp_path / "packed.tar.gz"), str(tmp_path / "lib")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if "Could not load SPDX licenses" in done.stderr:
        pytest.skip("pio finds no list of licenses, which it loads from the network")
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "packed.tar.gz") as packed:
        assert {"library.json", "digits_int8.c", "digits_int8.h", "routines.S"} <= set(packed.getnames())


ARDUINO = """
#include <stdint.h>
#include <string.h>
struct Port { void begin(long); void print(int); void print(const char *); void println(unsigned long); };
extern Port Serial;
unsigned long micros();
void delay(int);
"""


def test_arduino_s_sketch_is_cplusplus(accelerated: Build, tmp_path: Path) -> None:
    """Declarations of Arduino's functions, as in an Arduino core."""
    api.export(accelerated.folder, tmp_path, portable=True)
    sketch = (tmp_path / "examples/sketch/sketch.ino").read_text()
    (tmp_path / "sketch.cpp").write_text(ARDUINO + sketch)
    command = [sys.executable, "-m", "ziglang", "c++", "-Wall", "-Wextra", "-I.", "-c", "sketch.cpp", "-o", "sketch.o"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
