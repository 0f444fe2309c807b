"""Images of the rendered project: compile, measure, lay out, link, check."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from npukit.board.board import Board
from npukit.board.cores import CORES
from npukit.codegen.streamed import DramPiece
from npukit.errors import NpukitError
from npukit.plan.ir.plan import MemoryUse
from npukit.progress import Progress, Silent
from npukit.project.check import check_fits, check_image, constant_bytes, free_bytes, program_bytes, variable_bytes
from npukit.project.files import Project, ProjectRole, Unit
from npukit.project.images.elf import Elf
from npukit.project.images.stack import StackReport, stack_bound
from npukit.project.layout import MemoryLayout, memory_layout
from npukit.project.own_data import Addresses, listing, order_pieces, own_bytes, questions_about
from npukit.project.render import neighbours_of, render_link_script
from npukit.project.struct_layouts import NOTHING, Layouts, answers
from npukit.project.toolchain import Toolchain
from npukit.writing import NO_SPACE, disk_full

WORKERS = 2

MEASURING_ROOM = 16 << 20
"""Bytes added to every memory for the first link, to measure and report programs of any size."""

OWN_SUFFIX = ".own"

_HAL = ("hal_", "clock_")
"""Prefixes of functions defined by the board's C."""


class MissingFunction(NpukitError):
    """Code calls `function`, which is missing from the image."""

    def __init__(self, function: str, what: str) -> None:
        of_the_board = ["npukit boards FILE.toml says what the board's C lacks"] if function.startswith(_HAL) else []
        message = f"the toolchain did not {what}: nothing has the function {function}"
        super().__init__(message, tries=[*of_the_board, *_TRIES])
        self.function = function


@dataclass(frozen=True)
class BuiltImage:
    """The linked program of one role."""

    role: int
    pes: tuple[int, ...]
    elf: Path
    binary: Path
    own: Path | None
    """The PEs' own data: for each PE in turn, the bytes at `layout.own`."""
    layout: MemoryLayout
    memory: MemoryUse
    stack: StackReport
    orders: tuple[DramPiece, ...]
    """The PEs' orders that lie in DRAM."""


def build_images(
    project: Project, toolchain: Toolchain, images: Path, progress: Progress | None = None
) -> list[BuiltImage]:
    """Build every role's image into the folder `images`. Adds the linker scripts and own data to the project."""
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        build, progress = _Build(project, toolchain, Path(scratch)), progress or Silent()
        build.compile(progress)
        layouts = {cpu: build.layouts(cpu) for cpu in project.cpus}
        roles = progress.track(project.roles, f"link{toolchain.before_linking}")
        return [_built(build, role, layouts[role.cpu], images) for role in roles]


def _built(build: _Build, role: ProjectRole, layouts: Layouts, images: Path) -> BuiltImage:
    project, elf = build.project, images / f"{role.image}.elf"
    stack = build.measure(role)
    layout = _layout(project.board, role, stack.bytes)
    script = project.folder / role.link_script
    render_link_script(project.board, layout, neighbours_of(project, role), script)
    build.link(role, script, elf)
    linked = Elf(elf)
    check_image(layout, linked, role.image)
    binary = elf.with_suffix(".bin")
    binary.write_bytes(linked.binary()[1])
    own = elf.with_suffix(OWN_SUFFIX) if role.own.bytes else None
    constants = linked.sections.get(".constants")
    addresses = Addresses(layout, constants.address if constants else layout.own.start, project.activations)
    if own:  # beside the image, and in the project for `make`
        in_project = project.folder / role.own_file
        own.write_bytes(own_bytes(role.own, layouts, addresses))
        in_project.write_bytes(own.read_bytes())
        in_project.with_suffix(".txt").write_text(listing(role.own), encoding="utf-8", newline="\n")
    orders, memory = order_pieces(role.own, layouts, addresses), _memory_use(layout, linked)
    return BuiltImage(role.number, role.pes, elf, binary, own, layout, memory, stack, orders)


def _layout(board: Board, role: ProjectRole, stack_bytes: int) -> MemoryLayout:
    sizes = role.constant_bytes, role.activation_bytes, stack_bytes, role.own.bytes, role.bank_bytes
    return memory_layout(board.seen_by(role.pes[0]), *sizes)


def _memory_use(layout: MemoryLayout, elf: Elf) -> MemoryUse:
    variables = variable_bytes(elf)
    return MemoryUse(
        code=program_bytes(layout, elf) + variables,
        constants=constant_bytes(layout, elf) + layout.own.size,
        activations=layout.activations.size,
        stack=layout.stack.size,
        free=free_bytes(layout, elf),
        variables=0 if layout.runs_in_place else variables,
        banks=tuple(bank.size for bank in layout.banks),
    )


class _Build:
    """Runs of the compiler, with the results in a scratch folder."""

    def __init__(self, project: Project, toolchain: Toolchain, scratch: Path) -> None:
        # Compilers name files by the real path of their working folder.
        self.project = replace(project, folder=project.folder.resolve())
        self.toolchain, self.scratch = toolchain, scratch
        self._toolchains = {cpu: toolchain.of(CORES[cpu]) for cpu in project.cpus}

    def compile(self, progress: Progress) -> None:
        """Compile every file of the project once. Reports the first failure in the files' order."""
        jobs: list[tuple[Unit, PurePosixPath | None]] = []
        for cpu in self.project.cpus:
            jobs += [(unit, None) for unit in self.project.firmware_units(cpu)]
        for role in self.project.roles:
            jobs += [(unit, role.net) for unit in self.project.net_units(role)]
        with ThreadPoolExecutor(WORKERS) as pool:
            running = [pool.submit(self._compile, job) for job in jobs]
            for each in progress.track(running, f"compile with {self.toolchain.title}"):
                each.result()

    def layouts(self, cpu: str) -> Layouts:
        """The compiler's layouts, for one core, of the structs in the PEs' own data."""
        asked = questions_about(role.own for role in self.project.roles)
        if not asked.members:
            return NOTHING
        source = self.scratch / f"layouts-{cpu}.c"
        source.write_text(asked.as_c(), encoding="utf-8", newline="\n")
        output = source.with_suffix(".o")
        command = self.command(Unit(PurePosixPath(source.as_posix()), "size", cpu), None, output)
        self._run(command, "compile the questions about structs")
        return answers(asked, output)

    def measure(self, role: ProjectRole) -> StackReport:
        """Link with extra room, to measure the stack. Checks that the program fits the real memories."""
        script, elf = self.scratch / f"{role.image}.ld", self.scratch / f"{role.image}.elf"
        board = self.project.board
        memories = tuple(m.model_copy(update={"size": m.size + MEASURING_ROOM}) for m in board.memory)
        roomy = board.model_copy(update={"memory": memories, "kind": ()})
        render_link_script(roomy, _layout(roomy, role, 0), neighbours_of(self.project, role), script)
        self.link(role, script, elf)
        stack = stack_bound(elf, self._objects(role), CORES[role.cpu], without_pointers=str(role.net))
        check_fits(_layout(board, role, stack.bytes), Elf(elf), role.image)
        return stack

    def link(self, role: ProjectRole, script: Path, elf: Path) -> None:
        linker, core = self._toolchains[role.cpu], CORES[role.cpu]
        self._run(linker.link_command(core, self._objects(role), script, elf), f"link {role.image}")

    def _compile(self, job: tuple[Unit, PurePosixPath | None]) -> None:
        unit, own_folder = job
        output = self._object(unit)
        output.parent.mkdir(parents=True, exist_ok=True)
        self._run(self.command(unit, own_folder, output), f"compile {unit.source}")

    def command(self, unit: Unit, own_folder: PurePosixPath | None, output: Path) -> list[str]:
        """The command that compiles a file. `own_folder`: headers of a role."""
        includes = [*self.project.include_folders(unit.cpu), *([own_folder] if own_folder else [])]
        compiler, core = self._toolchains[unit.cpu], CORES[unit.cpu]
        return compiler.compile_command(core, unit.source, unit.tuning, includes, self.project.folder, output)

    def _objects(self, role: ProjectRole) -> list[Path]:
        return [self._object(unit) for unit in self.project.image_units(role)]

    def _object(self, unit: Unit) -> Path:
        return self.scratch / unit.object

    def _run(self, command: Sequence[str], what: str) -> None:
        done = self.toolchain.run(command, self.project.folder, what)
        if done.returncode == 0:
            return
        if any(words in done.stderr.lower() for words in NO_SPACE):
            raise disk_full(self.project.folder)
        if missing := _UNDEFINED.search(done.stderr):
            raise MissingFunction(missing[1], what)
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it said nothing")
        raise NpukitError(f"{self.toolchain.title} did not {what}: {why}", tries=_TRIES)


_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`'\"]?(\w+)")
"""The messages of GNU's linker and of LLVM's."""

_TRIES = ("the other compiler: --toolchain gcc or --toolchain zig", "npukit doctor")
