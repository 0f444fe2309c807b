"""Builds of mutants: images with a file changed. Only affected files are compiled and linked again, by the Makefile's
commands."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from npukit.emulator import program
from npukit.emulator.process import WorkerProcess
from npukit.measure.cases import Cases, load_cases
from npukit.net.net import Net
from npukit.plan.ir.plan import Plan
from npukit.project.build_folder import GOLDEN, Build, load_build
from npukit.project.images.image import Image, Overlay
from npukit.project.zig import find_zig


class DoesNotCompile(Exception):
    """A changed file does not compile or link."""


@dataclass(frozen=True)
class _Rule:
    """A command of the Makefile for one file."""

    words: tuple[str, ...]

    @property
    def output(self) -> str:
        return self.words[self.words.index("-o") + 1]

    @property
    def source(self) -> str:
        return self.words[self.words.index("-c") + 1]

    def run(self, folder: Path, changed: dict[str, str]) -> None:
        """Run the command. `changed`: replacement paths by original path."""
        words = [changed.get(word, word) for word in self.words]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DoesNotCompile(done.stderr.strip()[:500])


@dataclass(frozen=True)
class Mutated(Build):
    """A build with other images. Net, plan and data are read once for all mutants."""

    original: Workshop | None = None
    loaded: tuple[Image, ...] = ()

    def images(self) -> tuple[Image, ...]:
        return self.loaded

    def plans(self) -> tuple[Plan, ...]:
        assert self.original
        return (self.original.plan,)


@dataclass
class Workshop:
    """A build whose project can be rebuilt with a file changed."""

    build: Build
    scratch: Path
    _rules: list[_Rule] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.rmtree(self.project / "build", ignore_errors=True)
        make = ["make", "-C", str(self.project), "TOOLCHAIN=zig", f"ZIG={find_zig()}"]
        told = subprocess.run([*make, "-n", "-B"], capture_output=True, text=True, check=True).stdout
        lines = (tuple(shlex.split(line)) for line in told.splitlines())
        self._rules = [_Rule(words) for words in lines if "-o" in words]
        subprocess.run([*make, "-j2"], capture_output=True, check=True)
        self.scratch.mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        return self.build.folder / "project"

    @cached_property
    def net(self) -> Net:
        return self.build.net()

    @cached_property
    def plan(self) -> Plan:
        return self.build.plan()

    @cached_property
    def cases(self) -> Cases:
        return load_cases(self.build.folder / GOLDEN, self.net, None)

    @cached_property
    def images(self) -> tuple[Image, ...]:
        """The images as built by the project's Makefile."""
        made = self.project / "build"
        return tuple(replace(image, elf=made / image.elf.name) for image in self.build.images())

    @property
    def sources(self) -> list[str]:
        return sorted({rule.source for rule in self._rules if "-c" in rule.words})

    def text(self, file: str) -> str:
        return (self.project / file).read_text(encoding="utf-8")

    def with_text(self, file: str, text: str) -> Mutated:
        """The build with `text` as the content of a source file."""
        changed = dict[str, str]()
        with self._written(file, text):
            for rule in (rule for rule in self._rules if "-c" in rule.words and rule.source == file):
                changed[rule.output] = str(self.scratch / "changed.o")
                rule.run(self.project, changed)
        for rule in self._rules:
            if "-c" not in rule.words and changed.keys() & set(rule.words):
                linked = {**changed, rule.output: str(self.scratch / Path(rule.output).name)}
                rule.run(self.project, linked)
                changed[rule.output] = linked[rule.output]
        elfs = {self.project / name: Path(path) for name, path in changed.items()}
        return self._with([replace(image, elf=elfs.get(image.elf, image.elf)) for image in self.images])

    def with_byte(self, pe: int, offset: int, value: int) -> Mutated:
        """The build with another byte in a PE's own data."""
        return self._with([_with_byte(image, pe, offset, value) for image in self.images])

    def _with(self, images: Sequence[Image]) -> Mutated:
        return Mutated(self.build.folder, self.build.manifest, (), self, tuple(images))

    @contextmanager
    def _written(self, file: str, text: str) -> Iterator[None]:
        path = self.project / file
        before = path.read_bytes()
        path.write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            path.write_bytes(before)


def _with_byte(image: Image, pe: int, offset: int, value: int) -> Image:
    overlays = [
        replace(each, data=_changed(each.data, offset, value)) if each.pe == pe else each for each in image.overlays
    ]
    return replace(image, overlays=tuple(overlays))


def _changed(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + bytes([value]) + data[offset + 1 :]


def own_data(images: Sequence[Image]) -> list[Overlay]:
    return [overlay for image in images for overlay in image.overlays]


class KeptWorker(WorkerProcess):
    """A worker process for board after board. A start takes most of a mutant's time."""

    _kept: WorkerProcess | None = None

    def __new__(cls, memory: int) -> KeptWorker:
        kept = cls._kept
        if isinstance(kept, cls) and kept._process.poll() is None:  # pyright: ignore[reportPrivateUsage]
            return kept
        cls._kept = made = super().__new__(cls)
        WorkerProcess.__init__(made, memory)
        return made

    def __init__(self, memory: int) -> None:
        """Does nothing: `__new__` starts the process."""

    def close(self) -> None:
        """Does nothing: the worker outlives boards."""

    @classmethod
    def end(cls) -> None:
        if cls._kept:
            WorkerProcess.close(cls._kept)
            cls._kept = None


def code_lines(elf: Path) -> dict[int, tuple[str, ...]]:
    """The `file:line` places at each address, ascending. Files are without folders."""
    found = dict[int, tuple[str, ...]]()
    with program._opened(elf) as file:  # pyright: ignore[reportPrivateUsage]
        for start, _, place in sorted(program._line_ranges(file)):  # pyright: ignore[reportPrivateUsage]
            found[start] = (*found.get(start, ()), place)
    return found


def load_workshop(folder: Path, scratch: Path) -> Workshop:
    return Workshop(load_build(folder), scratch)


def same_program(one: Sequence[Image], other: Sequence[Image]) -> bool:
    """Whether both sets of images load the same bytes into every PE."""

    def loaded(images: Sequence[Image]) -> list[object]:
        return [(program.load_segments(image.elf), image.pes, image.overlays) for image in images]

    return loaded(one) == loaded(other)
