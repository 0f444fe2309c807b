"""Code blocks of the documentation: each is parsed in its language, and a complete block runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

import pytest

from docs.test_adding_an_op import steps
from docs.wrap import pages
from helpers import CHECKOUT
from npukit import api
from npukit.application.declared import load_declared
from npukit.board.board import load_board
from npukit.emulator.fault_plan import load_fault_plan
from npukit.plan.user_mapping import PinFile

TYPED = re.compile(r"(\$|npukit|python|pip|make|git|\.venv|PYTHONPATH=|gdb|\(gdb\)|west|cmake|openssl|renode) ?")
"""First words of commands. `test_docs.py` runs these."""
MODULE = re.compile(r"^\s*(from [\w.]+ import|import \w|def \w+\()", re.MULTILINE)
CALLS = re.compile(r"^(\w+ = \w+\(|\w+\.\w[\w.]*\()", re.MULTILINE)
TOML = re.compile(r"^\[.*\]\s*(#.*)?$|\A[\w.-]+ = (\"|\[|\{|\d|true|false)", re.MULTILINE)
C = re.compile(r"[;{]\s*(/\*.*)?$|#include", re.MULTILINE)
COMPILED_ELSEWHERE = {
    "plug-in.md": "tests/library/test_accelerated.py",
    "boards.md": "tests/end_to_end/test_own_board.py",
}
"""Pages whose C is compiled and run by another test."""
EXPORTERS = {path.read_text(encoding="utf-8").rstrip() for path in CHECKOUT.glob("examples/exporters/*.py")}
"""Scripts for packages that npukit does not need. `benchmarks/tutorial.py` runs them."""
ADDED = {code.rstrip() for code in steps().values()} | EXPORTERS
"""The files that a page adds. `test_adding_an_op.py` runs the tests of an op's files."""


@dataclass(frozen=True)
class Block:
    """An indented block of a page; `line` is the number of its first line."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"

    @property
    def language(self) -> str:
        """The first language whose pattern matches; empty for the output of programs."""
        if TYPED.match(self.text) or self.text.startswith(">>> "):
            return "typed"
        for name, looks in (("c", C), ("python", MODULE), ("toml", TOML), ("python", CALLS)):
            if looks.search(self.text):
                return name
        return ""


def blocks(page: Path) -> Iterator[Block]:
    """Indented blocks after an empty line, outside lists."""
    lines = page.read_text(encoding="utf-8").splitlines()
    held: list[str] = []
    for number, line in enumerate([*lines, "end"], 1):
        if line.startswith("    ") and (held or not lines[number - 2].strip()):
            held.append(line)
        elif held and not line.strip():
            held.append("")
        elif held:
            yield Block(page, number - len(held), dedent("\n".join(held)).strip("\n"))
            held = []


EVERY = [block for page in pages() for block in blocks(page)]


def of_language(name: str) -> list[Block]:
    return [block for block in EVERY if block.language == name]


def test_the_pages_have_blocks_of_each_language() -> None:
    assert min(len(of_language(name)) for name in ("python", "toml", "c")) > 3


@pytest.mark.parametrize("block", [each for each in of_language("python") if each.text not in ADDED], ids=str)
def test_python_is_python_and_what_it_imports_is_there(block: Block) -> None:
    tree = ast.parse(block.text, str(block))
    imports: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), str(block), "exec"), {})


@pytest.mark.parametrize("block", of_language("toml"), ids=str)
def test_toml_is_what_npukit_reads(block: Block, tmp_path: Path) -> None:
    file, given = tmp_path / "block.toml", tomllib.loads(block.text)
    file.write_text(block.text, encoding="utf-8")
    if "ops" in given:
        PinFile.model_validate(given)
    elif "fault" in given:
        load_fault_plan(file)
    elif {"input", "output"} & set(given):
        load_declared(file)
    elif "like" in given:
        assert load_board(str(file)).summary == given["summary"]


@pytest.mark.exhaustive
def test_the_mapper_of_the_page_places_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = (each for each in of_language("python") if each.page.name == "mesh.md")
    names: dict[str, object] = {}
    exec(compile(block.text, str(block), "exec"), names)
    monkeypatch.setattr("npukit.plan.user_mapping._mapper", lambda name: names["place"])
    model = CHECKOUT / "examples/digits/digits_int8.tflite"
    told = api.fit(model, board="pe-mesh", options=api.Options(plan="greedy"))
    assert [row["pes"] for row in told["ops"] if row["pes"]][:3] == [[0], [1], [2]]


def test_the_body_of_a_custom_op_is_c(tmp_path: Path) -> None:
    (body,) = (each for each in of_language("c") if each.page.name == "models.md")
    head = "void halve(const int8_t *p0, int8_t *output, int32_t output_size, int32_t most)"
    file = tmp_path / "halve.c"
    file.write_text(f"#include <stdint.h>\n{head};\n{head}\n{{\n{indent(body.text, '    ')}\n}}\n", encoding="utf-8")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-c", "-o", tmp_path / "halve.o"]
    done = subprocess.run([sys.executable, "-m", "ziglang", "cc", *flags, file], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_other_c_is_compiled_by_tests_of_its_own() -> None:
    """A block with an ellipsis is only a part and is not compiled."""
    whole = {each.page.name for each in of_language("c") if "..." not in each.text}
    assert whole - {"models.md"} == set(COMPILED_ELSEWHERE)
    for page, test in COMPILED_ELSEWHERE.items():
        assert page in (CHECKOUT / test).read_text(encoding="utf-8")
