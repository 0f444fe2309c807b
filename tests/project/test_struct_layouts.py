"""Data is laid out by the compiler's own struct layouts."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from helpers import toolchain
from npukit.board.board import load_board
from npukit.codegen.sources import OwnData, PeData, Row, Spot
from npukit.project.layout import memory_layout
from npukit.project.own_data import MANY_PES, Addresses, listing, own_bytes, questions_about
from npukit.project.struct_layouts import Layouts, Member, answers

HEADER = """#include <stddef.h>
struct thing { unsigned char kind; short count; const void *next; int far; };
enum { KIND = 7 };
"""
ROWS = (
    Row(0, "thing", ("kind", "count", "next", "far"), ("KIND", -2, Spot("own", 16), Spot("activations", 8, 5))),
    Row(16, "", ("word", "place"), (0x01020304, Spot("constants", 4))),
)
OWN = OwnData(32, (PeData(3, ((24, b"\xaa\xbb"),), ROWS),), ("thing.h",))


def asked(folder: Path, compiler: str) -> Layouts:
    (folder / "thing.h").write_text(HEADER)
    questions = questions_about([OWN])
    (folder / "layouts.c").write_text(questions.as_c())
    here = PurePosixPath(".")
    command = toolchain(compiler).compile_command(
        load_board("pe-mesh").core.type, PurePosixPath("layouts.c"), "size", [here], folder, folder / "layouts.o"
    )
    subprocess.run(command, cwd=folder, check=True, timeout=200)
    return answers(questions, folder / "layouts.o")


def test_the_data_of_many_pes_follow_each_other(tmp_path: Path) -> None:
    layouts = asked(tmp_path, "zig")
    layout = memory_layout(load_board("pe-mesh"), 64, 256, 512, OWN.bytes)
    addresses = Addresses(layout, 0x1000, {5: 0x2000})
    many = replace(OWN, pes=tuple(PeData(pe, ((24, bytes([pe])),), ROWS) for pe in range(MANY_PES + 1)))
    one_by_one = [own_bytes(replace(many, pes=(pe,)), layouts, addresses) for pe in many.pes]
    assert own_bytes(many, layouts, addresses) == b"".join(one_by_one)


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_the_data_of_a_pe_byte_by_byte(tmp_path: Path, compiler: str) -> None:
    layouts = asked(tmp_path, compiler)
    assert (layouts.members[Member("thing", "count")].offset, layouts.constants["KIND"]) == (2, 7)
    layout = memory_layout(load_board("pe-mesh"), 64, 256, 512, OWN.bytes)
    found = own_bytes(OWN, layouts, Addresses(layout, 0x1000, {5: 0x2000}))
    near = (layout.own.start + 16).to_bytes(4, "little")
    thing = b"\x07\x00\xfe\xff" + near + (0x2008).to_bytes(4, "little")
    words = (0x01020304).to_bytes(4, "little") + (0x1004).to_bytes(4, "little")
    assert found == thing.ljust(16, b"\0") + words + b"\xaa\xbb" + bytes(6)


def test_a_reader_is_told_what_lies_where() -> None:
    assert listing(OWN).splitlines()[2:] == [
        "0x00000  struct thing: kind = KIND, count = -2, next = own + 0x10, far = activations + 0x8 of PE 5",
        "0x00010  words of struct net_own: word = 16909060, place = constants + 0x4",
        "0x00018  2 bytes of weights or parameters",
    ]
