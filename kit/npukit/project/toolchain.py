"""The cross compilers: how to find one, and equivalent flags for each."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.errors import NpukitError
from npukit.host.programs import find_program, find_zig, run, start
from npukit.project.files import Tuning
from npukit.project.zig import PACKAGE, zig_cache

Choice = Literal["gcc", "zig"]
_VERSION_SECONDS = 60
SECONDS = 300
"""Time limit of a compilation in seconds, including the first by a new zig."""

COMMON_FLAGS = (
    "-std=c11 -ffreestanding -g -Wall -Wextra -Wconversion -Wshadow -Werror",
    # Leave unreferenced sections out of the image.
    "-ffunction-sections -fdata-sections -fno-unwind-tables -fno-asynchronous-unwind-tables -fomit-frame-pointer",
    # Tensors of different types share bytes of the arena over time.
    "-fno-strict-aliasing",
    # Get the same float results from every compiler.
    "-fno-math-errno -ffp-contract=off",
)

PREFIX_MAPS = ("-ffile-prefix-map={}", "-fdebug-prefix-map={}")
"""Keep build paths out of images. The second option is for assembly, where GCC ignores the first."""


def target_flags(core: CoreType) -> dict[str, str]:
    """The target flags of each compiler for the core."""
    return {"gcc": f"{core.gcc} -gno-record-gcc-switches", "zig": f"{core.zig} -gdwarf-aranges"}


TUNING_FLAGS: dict[str, dict[Tuning, str]] = {
    "gcc": {"speed": "-O2", "size": "-Os", "libc": "-O2 -fno-builtin -fno-tree-loop-distribute-patterns"},
    "zig": {
        "speed": "-O2 -fno-unroll-loops -fno-vectorize -fno-slp-vectorize",
        "size": "-Os",
        "libc": "-O2 -fno-builtin -fno-unroll-loops -fno-vectorize",
    },
}

LINK_FLAGS = {
    # LLVM names a file's local functions .L..., and the bound of the stack needs these names.
    "gcc": "-nostdlib -Wl,--gc-sections -Wl,--discard-none -Wl,--build-id=none -Wl,-e,reset_handler",
    # No sanitizer: zig would compile its runtime library.
    "zig": "-g -fno-sanitize=undefined -Wl,--gc-sections -Wl,--build-id=none -Wl,-e,reset_handler",
}

LINK_LIBRARIES = {"gcc": "-lgcc", "zig": ""}
"""Zig links compiler_rt without a flag."""


@dataclass(frozen=True)
class Toolchain:
    """A cross compiler on this machine. Commands run in the project's folder, with relative paths."""

    name: Choice
    version: str
    command: tuple[str, ...]
    is_new: bool = False
    """True if the compiler has not linked anything yet."""

    @property
    def title(self) -> str:
        return f"{Path(self.command[0]).name} {self.version}" if self.name == "gcc" else f"zig cc {self.version}"

    def of(self, core: CoreType) -> Toolchain:
        """The same compiler for another core: GCC has a program for each architecture."""
        program = core.architecture.gcc
        return self if self.name == "zig" or program in self.command[0] else find_toolchain("gcc", core)

    def compile_command(
        self,
        core: CoreType,
        source: PurePosixPath,
        tuning: Tuning,
        includes: Sequence[PurePosixPath],
        project: Path,
        output: Path,
    ) -> list[str]:
        """`source` and `includes` are relative to the folder `project`."""
        flags = " ".join((target_flags(core)[self.name], TUNING_FLAGS[self.name][tuning], *COMMON_FLAGS)).split()
        flags += [option.format(f"{project}=.") for option in PREFIX_MAPS]
        return [*self.command, *flags, *(f"-I{folder}" for folder in includes), "-c", str(source), "-o", str(output)]

    def run(self, command: Sequence[str], folder: Path, task: str) -> subprocess.CompletedProcess[str]:
        """The outcome of a compiler's command. An error if the compiler does not start or takes too long."""
        try:
            return run(command, folder, seconds=SECONDS)
        except OSError as error:
            raise NpukitError(f"{self.title} did not {task}: {error}", tries=["npukit doctor"]) from error

    @property
    def before_linking(self) -> str:
        """A remark on the delay before the very first link."""
        return "; first zig compiles its runtime library, which takes a minute, once" if self.is_new else ""

    def link_command(self, core: CoreType, objects: Sequence[Path], script: Path, output: Path) -> list[str]:
        libraries = LINK_LIBRARIES[self.name].split()
        return [*self._linker(core), "-T", str(script), *map(str, objects), *libraries, "-o", str(output)]

    def _linker(self, core: CoreType) -> list[str]:
        return [*self.command, *f"{target_flags(core)[self.name]} {LINK_FLAGS[self.name]}".split()]

    @contextmanager
    def warmed_up(self, core: CoreType) -> Iterator[None]:
        """Compile zig's runtime library in parallel with other work. Every image needs it. It takes seconds, once for
        all builds, and a link waits until it is ready."""
        if self.name != "zig":
            yield
            return
        with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
            empty = [*self._linker(core), "-x", "c", os.devnull, "-o", str(Path(scratch) / "empty.elf")]
            process = start(empty, Path(scratch), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                yield
            finally:
                process.terminate()
                process.wait()


def find_toolchain(choice: str | None = None, core: CoreType = CORTEX_M4F) -> Toolchain:
    """The core's compiler of this name. Default: GCC if it is on the PATH, else the compiler installed with npukit."""
    gcc = core.architecture.gcc
    finders = {"gcc": partial(_find_gcc, gcc), "zig": _find_zig}
    if choice is not None and choice not in finders:
        raise NpukitError(f"toolchain {choice} is not known", tries=[f"--toolchain {name}" for name in finders])
    for name in [choice] if choice else list(finders):
        found = finders[name]()
        if found:
            return found
    package = core.architecture.gcc_package
    names = {"gcc": gcc, "zig": "the Python package ziglang"}
    remedies = {"gcc": f"install {gcc} (Debian: apt install {package})", "zig": PACKAGE}
    missing = [choice] if choice else list(names)
    raise NpukitError(
        f"no cross compiler: {' and '.join(names[name] for name in missing)} not found",
        tries=[*(remedies[name] for name in missing), "npukit doctor"],
    )


def _find_gcc(program: str) -> Toolchain | None:
    path = find_program(program)
    return Toolchain("gcc", _first_line([path, "-dumpfullversion"]), (path,)) if path else None


def _find_zig() -> Toolchain | None:
    zig = find_zig()
    return Toolchain("zig", _first_line([zig, "version"]), (zig, "cc"), not zig_cache().is_dir()) if zig else None


def _first_line(command: list[str]) -> str:
    try:
        result = run(command, seconds=_VERSION_SECONDS)
        result.check_returncode()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NpukitError(f"the compiler {command[0]} does not run: {error}", tries=["npukit doctor"]) from error
    return result.stdout.strip().splitlines()[0]
