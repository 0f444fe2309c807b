"""A self-contained C project, rendered from generated sources."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment

from npukit import __version__
from npukit.board.board import Board
from npukit.board.cores import CORES
from npukit.codegen.names import comment_text, foreign_arena, macro, ranges
from npukit.codegen.sources import Sources
from npukit.data import data_folder
from npukit.project import toolchain
from npukit.project.files import Coresident, Project, ProjectRole, roles_of
from npukit.project.hal import FOLDER, copy_hal
from npukit.project.layout import MemoryLayout
from npukit.templates import templates_in

ALWAYS = ("include", "libc", "rpc", "startup")
"""Folders of the firmware in every image."""

SELF_TEST = "self_test"


@dataclass(frozen=True)
class About:
    """The project's description of itself. `build_id` is hexadecimal."""

    model: str
    build_id: str
    npukit: str = __version__


def render_project(
    sources: Sequence[Sources],
    board: Board,
    about: About,
    folder: Path,
    coresident: Coresident | None = None,
    *,
    self_test: bool = False,
) -> Project:
    """Render the C project in `folder`, except for the linker scripts, whose figures come from the first link."""
    network_pe = coresident.network_pe if coresident else board.root_pe
    project = Project(folder, board, roles_of(sources, board, network_pe))
    _copy_firmware(project)
    if self_test:  # frames then also check the memory
        _copy_folder(SELF_TEST, folder / "firmware")
        (folder / "firmware/rpc/net_frame.c").unlink()
    if coresident:
        _serve_coresident(project, coresident)
    _copy_drivers(sorted({driver for each in sources for driver in each.drivers}), folder / "firmware")
    for each, role in zip(sorted(sources, key=lambda s: s.role), project.roles, strict=True):
        (folder / role.net).mkdir(parents=True, exist_ok=True)
        for name, text in sorted(each.files.items()):
            (folder / role.net / name).write_text(text, encoding="utf-8", newline="\n")
    render_board_header(board, folder / "board/board.h", network_pe, [pe for each in sources for pe in each.pes])
    _write(
        folder / "Makefile",
        "Makefile.j2",
        project=project,
        cores={cpu: CORES[cpu] for cpu in project.cpus},
        flags=SimpleNamespace(
            target={cpu: toolchain.target_flags(CORES[cpu]) for cpu in project.cpus},
            tuning=toolchain.TUNING_FLAGS,
            link=toolchain.LINK_FLAGS,
            libraries=toolchain.LINK_LIBRARIES,
        ),
        common_flags=toolchain.COMMON_FLAGS,
    )
    _write(folder / "README.md", "README.md.j2", **_readme_values(project, about))
    return project


def render_board_header(
    board: Board, path: Path, network_pe: int | None = None, pes: Sequence[int] | None = None
) -> None:
    """Write the board's figures for the firmware. `network_pe`: the PE that talks to the host, by default the PE with
    the link. `pes`: the PEs with programs, by default all."""
    root, all_pes = board.root_pe, range(board.pe_count)
    others = sorted({*(all_pes if pes is None else pes)} - {root})
    _write(path, "board.h.j2", board=board, network_pe=root if network_pe is None else network_pe, pes=others)


def render_flash_header(board: Board, path: Path) -> None:
    """Write the board's figures for the loader."""
    _write(path, "flash_board.h.j2", board=board)


def render_link_script(board: Board, layout: MemoryLayout, neighbours: Mapping[str, int], path: Path) -> None:
    """Write the linker script of one layout. `neighbours`: addresses of other PEs' activations, by name."""
    _write(path, "link.ld.j2", board=board, layout=layout, neighbours=neighbours)


def neighbours_of(project: Project, role: ProjectRole) -> dict[str, int]:
    """The addresses of other PEs' activations that the role's program refers to by name."""
    return {foreign_arena(pe): project.activations[pe] for pe in role.foreign_pes}


def _copy_firmware(project: Project) -> None:
    board, origin, target = project.board, data_folder("firmware"), project.folder / "firmware"
    for name in (*ALWAYS, *_families(project), *(["noc"] if board.noc else [])):
        _copy_folder(name, target)
    if board.shares_memory:
        shutil.copyfile(origin / "shared_memory/noc.c", target / "noc/noc.c")
    copy_hal(board, target / FOLDER)
    for path in sorted(origin.glob("*.c")):
        shutil.copyfile(path, target / path.name)


def _families(project: Project) -> tuple[str, ...]:
    """The folders of the firmware for the architectures of the project's cores."""
    return tuple(dict.fromkeys(CORES[cpu].architecture.firmware for cpu in project.cpus))


def _copy_folder(name: str, firmware: Path) -> None:
    """Copy a folder of npukit's firmware into the project's."""
    shutil.copytree(data_folder("firmware") / name, firmware / name, ignore=shutil.ignore_patterns(".*"))


def _serve_coresident(project: Project, coresident: Coresident) -> None:
    """Replace the main by one that forwards requests to other networks, or answers forwarded requests."""
    firmware, linked = project.folder / "firmware", coresident.network_pe == project.board.root_pe
    name = "relay" if linked else "mailbox"
    _copy_folder(name, firmware)
    (firmware / "main.c").unlink()
    if linked:
        (role,) = (role for role in project.roles if role.serves_host)
        _write(project.folder / role.net / "relays.c", "relays.c.j2", relays=coresident.relays)
    else:
        (firmware / "rpc/break.c").unlink()


def _copy_drivers(drivers: Iterable[Path], target: Path) -> None:
    """Copy drivers and the headers beside them: npukit's own into the same folder as in the firmware, drivers of a
    plug-in into `engines/`, in a folder with the name of the first."""
    folders, firmware = dict[Path, Path](), data_folder("firmware")
    for driver in drivers:
        own = driver.is_relative_to(firmware)
        place = driver.parent.relative_to(firmware) if own else Path("engines") / driver.stem
        folder = target / folders.setdefault(driver.parent, place)
        folder.mkdir(parents=True, exist_ok=True)
        for path in (driver, *sorted(driver.parent.glob("*.h"))):
            shutil.copyfile(path, folder / path.name)


def _readme_values(project: Project, about: About) -> dict[str, Any]:
    firmware = project.folder / "firmware"
    engines = [name for name in ("mac_array", "engines") if (firmware / name).is_dir()]
    model = " ".join("".join(c if c.isprintable() else " " for c in about.model).split()) or "a model"
    return {
        "project": project,
        "board": project.board,
        "about": replace(about, model=model),
        "gcc": ", ".join(dict.fromkeys(CORES[cpu].architecture.gcc for cpu in project.cpus)),
        "families": ", ".join(f"`{name}/`" for name in _families(project)),
        "engines": ", ".join(f"`firmware/{name}/`" for name in engines),
        "coresident": next((name for name in ("relay", "mailbox") if (firmware / name).is_dir()), None),
        "libm": (firmware / "libm").is_dir(),
        "noc": (firmware / "noc").is_dir(),
    }


def _write(path: Path, template: str, **values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = _environment().get_template(template).render(**values)
    path.write_text(text, encoding="utf-8", newline="\n")


@cache
def _environment() -> Environment:
    environment = templates_in("project")
    addresses = {"hex": "0x{:08X}U".format, "address": "0x{:08X}".format}
    environment.filters |= {"comment": comment_text, "ranges": ranges, "macro": macro, **addresses}
    return environment
