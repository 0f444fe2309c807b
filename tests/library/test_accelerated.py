"""Libraries with accelerators in customers' projects, on the emulator: bare metal, under an RTOS, in Zephyr."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from end_to_end.builds import DIGITS, shared_build
from helpers import CHECKOUT, needs
from npukit import api
from npukit.accel.engines import plugins_of
from npukit.board.cores import CORTEX_M4F
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.project.build_folder import Build
from npukit.project.images.image import Image
from npukit.project.toolchain import COMMON_FLAGS, LINK_FLAGS, LINK_LIBRARIES, find_toolchain, target_flags

FIRMWARE = Path(__file__).parent / "firmware"
EXAMPLES = CHECKOUT / "examples/accelerators"
ARENA = (96 << 10, 128 << 10)
"""Memory of the network in `link.ld`: start and end address."""

SECTION = '-DDIGITS_INT8_SECTION=".network_arena"'
TASKS = ("tasks.c", "rtos.c")


Made = Callable[[str], Path]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The folder with a build for a board and its library, made once per board."""

    @cache
    def make(board: str) -> Path:
        folder = tmp_path_factory.mktemp("made")
        built = shared_build(DIGITS / "digits_int8.tflite", folder / "build", board, pes=1)
        api.export(built.folder, folder / "lib")
        return folder

    return make


def exported(made: Made, folder: Path, board: str = "pe-mesh") -> Build:
    """Copy the digits library to `lib` and write the customer's test cases."""
    shutil.copytree(made(board) / "lib", folder / "lib")
    built = api.load(made(board) / "build")
    given = built.golden()["in0"].reshape(len(built.golden()["in0"]), -1)
    rows = ",\n".join("{" + ", ".join(map(str, row)) + "}" for row in given)
    text = f"enum {{ CASES = {len(given)} }};\nstatic const int8_t given[CASES][{given.shape[1]}] = {{\n{rows}\n}};\n"
    (folder / "cases.h").write_text(f"#include <stdint.h>\n{text}")
    return built


def flags() -> list[str]:
    toolchain = find_toolchain()
    text = " ".join((target_flags(CORTEX_M4F)[toolchain.name], "-O2", *COMMON_FLAGS))
    return [*toolchain.command, *text.split()]


def linked(folder: Path, *sources: Path, options: tuple[str, ...] = ()) -> Path:
    """Link the customer's project: its own main, start-up code and linker script."""
    toolchain = find_toolchain()
    include = [f"-I{path}" for path in (folder, folder / "lib", FIRMWARE, CHECKOUT / "firmware/libc")]
    link = [
        *LINK_FLAGS[toolchain.name].split(),
        "-T",
        str(FIRMWARE / "link.ld"),
        *LINK_LIBRARIES[toolchain.name].split(),
    ]
    common = [FIRMWARE / "startup.c", FIRMWARE / "inference.c", CHECKOUT / "firmware/libc/string.c"]
    command = [*flags(), *options, *include, *map(str, (*common, *sources)), *link, "-o", str(folder / "firmware.elf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "firmware.elf"


def of_library(folder: Path) -> list[Path]:
    """Source files of the library without the example."""
    return [path for pattern in ("*.c", "*.S", "drivers/*.c") for path in sorted((folder / "lib").glob(pattern))]


class Ran:
    """Run a firmware until the emulator is idle, and check its answers."""

    def __init__(self, built: Build, elf: Path) -> None:
        self._elf, models = elf, {name: each.model for name, each in plugins_of(built.board).items() if each.model}
        with Emulator(built.board, [Image(elf, (built.board.root_pe,))], models) as emulator:
            assert emulator.read(60) == b""
            self.counters = emulator.counters(built.board.root_pe)
            self._memory = emulator.read_memory(built.board.root_pe, 0, built.board.memory[0].size)
        wanted = built.golden()["out0"]
        assert self.word("finished") == 0
        start, size = self._place("answers")
        answers = np.frombuffer(self._memory[start : start + size], wanted.dtype)
        np.testing.assert_array_equal(answers.reshape(wanted.shape), wanted)

    def word(self, symbol: str, index: int = 0) -> int:
        start = self._place(symbol)[0] + 4 * index
        return int.from_bytes(self._memory[start : start + 4], "little", signed=True)

    def _place(self, symbol: str) -> tuple[int, int]:
        with self._elf.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".symtab")
            assert isinstance(table, SymbolTableSection)
            (found,) = table.get_symbol_by_name(symbol) or [None]
            assert found
            return found["st_value"], found["st_size"]


def from_page(first: str) -> str:
    """The C block of docs/plug-in.md with the first line `first`."""
    page = (CHECKOUT / "docs/plug-in.md").read_text()
    start = page.index(f"    {first}")
    lines = page[start:].splitlines()
    end = next(i for i, line in enumerate(lines) if line and not line.startswith("    "))
    return textwrap.dedent("\n".join(lines[:end]))


@pytest.mark.exhaustive
def test_a_bare_project(made: Made, tmp_path: Path) -> None:
    built = exported(made, tmp_path)
    ran = Ran(built, linked(tmp_path, *of_library(tmp_path), FIRMWARE / "bare.c", options=(SECTION,)))
    assert ran.counters.npu_busy > 0
    assert ran.counters.asleep > 0
    assert ARENA[0] <= ran._place("digits_int8_net_memory")[0] < ARENA[1]


@pytest.mark.exhaustive
def test_hooks_of_the_firmware_s_own_that_poll(made: Made, tmp_path: Path) -> None:
    built = exported(made, tmp_path)
    elf = linked(tmp_path, *of_library(tmp_path), FIRMWARE / "bare.c", options=("-DACCELERATOR_HOOKS",))
    ran = Ran(built, elf)
    runs = 2 * len(built.golden()["in0"])
    assert ran.word("hook_calls", 0) == ran.word("hook_calls", 2) == runs
    assert ran.word("hook_calls", 1) > runs


@pytest.mark.exhaustive
def test_under_freertos_s_functions_the_network_blocks_on_a_semaphore(made: Made, tmp_path: Path) -> None:
    built = exported(made, tmp_path)
    (tmp_path / "hooks.c").write_text(from_page('#include "FreeRTOS.h"'))
    own = [tmp_path / "hooks.c", *(FIRMWARE / name for name in TASKS)]
    elf = linked(tmp_path, *of_library(tmp_path), *own, options=("-DACCELERATOR_HOOKS",))
    shows_that_others_run(Ran(built, elf), built)


def shows_that_others_run(ran: Ran, built: Build) -> None:
    """Check that the array's interrupts arrived, and that another task ran while the network slept."""
    runs = 2 * len(built.golden()["in0"])
    assert ran.word("interrupts_relayed") >= runs
    assert ran.word("blinks_meanwhile") > runs / 2


ZEPHYR = """
cmake_minimum_required(VERSION 3.20)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(zephyr C ASM)
macro(zephyr_library_named name)
  set(library ${name})
  add_library(${name} STATIC)
endmacro()
macro(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGN})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${library} PRIVATE ${ARGN})
endmacro()
macro(zephyr_compile_definitions)
  target_compile_definitions(${library} PUBLIC ${ARGN})
endmacro()
macro(zephyr_include_directories)
  target_include_directories(${library} PUBLIC ${ARGN})
endmacro()
add_subdirectory(lib)
"""
CONNECTED = """
void set_up(void)
{
}

void NPU_IRQHandler(void)
{
    npu_isr(0);
}
"""
"""The expansion of IRQ_CONNECT."""


@needs("cmake", "ar")
def test_as_a_zephyr_module_the_network_blocks_on_a_semaphore(made: Made, tmp_path: Path) -> None:
    """CMake's own functions replace Zephyr's. The folder is the exported module."""
    built = exported(made, tmp_path)
    assert "cmake: ." in (tmp_path / "lib/zephyr/module.yml").read_text()
    (tmp_path / "CMakeLists.txt").write_text(ZEPHYR)
    words = len(find_toolchain().command)
    compiler, rest = ";".join(flags()[:words]), flags()[words:]
    include = f"-I{CHECKOUT / 'firmware/libc'}"
    (tmp_path / "hooks.c").write_text(from_page("#include <zephyr/kernel.h>") + CONNECTED)
    words = [f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_ASM_COMPILER={compiler}", "-DACCELERATOR_HOOKS=ON"]
    words += [f"-DCMAKE_{language}_FLAGS={' '.join([*rest, include])}" for language in ("C", "ASM")]
    words += ["-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_SYSTEM_PROCESSOR=arm"]
    for command in (["-S", ".", "-B", "made", *words], ["--build", "made"]):
        done = subprocess.run(["cmake", *command], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    own = [tmp_path / "hooks.c", *(FIRMWARE / name for name in TASKS)]
    elf = linked(tmp_path, *own, tmp_path / "made/lib/libdigits_int8.a", options=("-DACCELERATOR_HOOKS",))
    shows_that_others_run(Ran(built, elf), built)


@pytest.mark.exhaustive
@pytest.mark.parametrize("plugin", ["systolic8x8", "graphnpu"])
def test_a_plug_in_s_driver_and_instances_of_the_caller_s(made: Made, plugin: str, tmp_path: Path) -> None:
    built = exported(made, tmp_path, str(EXAMPLES / f"{plugin}/{plugin}.toml"))
    assert plugin in {op.engine for op in built.net().ops}
    assert "digits_int8_use" in (tmp_path / "lib/digits_int8.h").read_text()
    ran = Ran(built, linked(tmp_path, *of_library(tmp_path), FIRMWARE / "bare.c"))
    assert ran.counters.npu_busy > 0


def test_another_base_address(made: Made, tmp_path: Path) -> None:
    """An address without an array on the emulated board: the driver finds none."""
    built = exported(made, tmp_path)
    moved = linked(
        tmp_path, *of_library(tmp_path), FIRMWARE / "bare.c", options=("-DBOARD_MAC_ARRAY_BASE=0xEA000000U",)
    )
    with pytest.raises(NpukitError, match="ea000000"):
        Ran(built, moved)


def test_steps_are_named_by_their_layers(made: Made) -> None:
    header = (made("pe-mesh") / "lib/digits_int8.h").read_text()
    assert '"conv2d_0, depthwise_conv2d_0, conv2d_1, add_0, conv2d_2, average_pool_0, dense_0", "softmax_0"' in header


@pytest.mark.exhaustive
def test_several_pes_are_refused_with_what_to_do(tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", pes=4)
    with pytest.raises(NpukitError, match="runs on 4 PEs; a library runs on one core") as error:
        api.export(built.folder, tmp_path / "lib")
    assert error.value.tries == ("npukit build MODEL --pes 1", "npukit export BUILD --portable")
