"""Tools and packages for npukit, and the search for them on this machine."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from npukit.board.cores import ARCHITECTURES
from npukit.emulator.here import INSTALL
from npukit.errors import NpukitError
from npukit.host.programs import find_program, run

VERSION_TIMEOUT_S, COMPILE_TIMEOUT_S = 20, 300
EMULATED_BOARD = "pe-mesh"


@dataclass(frozen=True)
class Tool:
    """A tool. `required`: npukit does not work without the tool. Otherwise only the feature `needed_for` is
    unavailable. `how_to_get`: how to install the tool, or the failure, where this says more."""

    name: str
    found: bool
    version: str
    needed_for: str
    how_to_get: str
    required: bool


@dataclass(frozen=True)
class _Program:
    name: str
    needed_for: str
    how_to_get: str


PROGRAMS = (
    *(_Program(each.gcc, f"compiling for {each.title}", f"apt install {each.gcc_package}") for each in ARCHITECTURES),
    *(_Program(each.qemu, f"--on qemu for {each.title}", f"apt install {each.qemu_package}") for each in ARCHITECTURES),
    _Program("verilator", "--on rtl", "apt install verilator"),
    _Program("renode", "--on renode", "https://renode.io"),
    _Program("renode-test", "tests of project/renode", "https://renode.io"),
    _Program("openocd", "npukit flash", "apt install openocd"),
    _Program("pyocd", "npukit flash", "pip install pyocd"),
    _Program("picotool", "npukit flash", "github.com/raspberrypi/picotool"),
    _Program("esptool", "npukit flash", "pip install esptool"),
    _Program("bossac", "npukit flash", "apt install bossa-cli"),
    _Program("gdb-multiarch", "stepping through firmware", "apt install gdb-multiarch"),
)

PACKAGES = {
    "apache-tvm": "importing models, generating C",
    "apache-tvm-ffi": "apache-tvm",
    "capstone": "the bound of each stack",
    "cobs": "frames on the link",
    "cryptography": "keys and signed images",
    "jinja2": "C projects and reports",
    "numpy": "everything",
    "pydantic": "board and build files",
    "pyelftools": "reading images",
    "pyserial": "boards on a serial port",
    "rich": "this output",
    "tflite": "TFLite models",
    "typer": "this command line",
    "wasmtime": "the reference of float ops",
    "ziglang": "compiling firmware",
}
"""The purpose of every dependency of npukit."""

EXTRAS = {
    "npukit-emulator": ("emulator", "the built-in emulator"),
    "onnx": ("onnx", "ONNX models"),
    "cloudpickle": ("farm", "npukit bench --tracker"),
    "psutil": ("farm", "npukit bench --tracker"),
    "tornado": ("farm", "npukit bench --tracker"),
    "torch": ("torch", "PyTorch models"),
}
"""Optional packages: the extra of npukit that installs each, and the purpose."""


def find_tools() -> list[Tool]:
    """The state of all tools, first the required."""
    pins = _pins()
    packages, extras = list[Tool](), list[Tool]()
    for name, purpose in PACKAGES.items():
        version, pin = _installed(name), pins.get(name)
        how = f"pip install {name}=={pin}" if pin else f"pip install {name}"
        packages.append(Tool(name, version == pin if pin else bool(version), version, purpose, how, required=True))
    for name, (extra, purpose) in EXTRAS.items():
        version, how = _installed(name), INSTALL if extra == "emulator" else f"pip install 'npukit[{extra}]'"
        extras.append(Tool(name, bool(version), version, purpose, how, required=False))
    return [*packages, _compiler(), _emulator(), *extras, *map(_program, PROGRAMS)]


def _installed(package: str) -> str:
    """The installed version of a package, or an empty text."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _compiler() -> Tool:
    """The cross compiler: found if an empty file compiles for a PE with the flags of a build."""
    from npukit.board.board import load_board
    from npukit.project.toolchain import find_toolchain

    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        folder = Path(scratch)
        (folder / "empty.c").touch()
        try:
            toolchain = find_toolchain()
            core, source = load_board(EMULATED_BOARD).core.type, PurePosixPath("empty.c")
            command = toolchain.compile_command(core, source, "size", (), folder, folder / "empty.o")
            done = run(command, folder, seconds=COMPILE_TIMEOUT_S)
        except (NpukitError, OSError) as error:
            return Tool("cross compiler", False, "", "compiling firmware", str(error), required=True)
    trouble = (done.stderr.strip() or f"{command[0]} fails") if done.returncode else ""
    return Tool("cross compiler", not trouble, toolchain.title, "compiling firmware", trouble, required=True)


def _emulator() -> Tool:
    """The built-in emulator: found if it starts. The first start compiles the emulator's core."""
    from npukit.board.board import load_board
    from npukit.emulator.builtin import Emulator

    trouble = ""
    try:
        Emulator(load_board(EMULATED_BOARD), ()).close()
    except NpukitError as error:
        trouble = error.message
    return Tool("built-in emulator", not trouble, "", "--on emulator, the default", trouble, required=False)


def _pins() -> dict[str, str]:
    """The exact versions required by npukit, by package."""
    try:
        requirements = metadata.requires("npukit") or []
    except metadata.PackageNotFoundError:
        return {}
    pinned = (requirement.partition("==") for requirement in requirements if ";" not in requirement)
    return {name: version for name, equals, version in pinned if equals}


def _program(program: _Program) -> Tool:
    path = find_program(program.name)
    version = _version(path) if path else ""
    return Tool(program.name, path is not None, version, program.needed_for, program.how_to_get, required=False)


def _version(path: str) -> str:
    """The first version number in the output of the program's `--version`."""
    try:
        said = run([path, "--version"], seconds=VERSION_TIMEOUT_S).stdout
    except OSError:
        return ""
    # A compiler prints its package's version first, in brackets.
    number = re.search(r"\d+(\.\d+)+", re.sub(r"\([^)]*\)", "", said))
    return number.group() if number else ""
