"""Counts of a checkout: lines, classes, constants, sizes of functions and rooms, names, words of prose.

Every function reads a checkout's files and runs nothing of them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

POINTING = frozenset(("it", "its", "one", "ones", "so", "such", "that", "them", "they", "those", "what", "which"))
"""Words that refer to a noun elsewhere in the text."""
OF_C = (".c", ".h", ".S", ".sv", ".cs")
"""Suffixes of files with comments as in C."""
_FOLDERS = ("docs", "firmware", "rtl", "templates", "tests", "benchmarks", "boards", "examples")
PROSE = {"kit": 3} | dict.fromkeys(_FOLDERS, 1)
"""Folders whose prose is counted, and how many parts of a path name a row: rooms for `kit/`."""

Figure = int | float


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def python(folder: Path) -> Mapping[Path, ast.Module]:
    """The modules below a folder."""
    return {path: module(path) for path in sorted(folder.rglob("*.py"))}


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module, and of the classes, functions and blocks in them."""
    for each in getattr(node, "body", ()):
        yield each
        yield from statements(each)


def lines(folder: Path) -> int:
    """Lines of Python, blank lines and comments included."""
    return sum(len(path.read_text().splitlines()) for path in python(folder))


def classes(folder: Path) -> Counter[str]:
    return Counter(node.name for node in _statements(folder) if isinstance(node, ast.ClassDef))


def constants(folder: Path) -> dict[tuple[Path, str], ast.expr]:
    """The values of the names in capitals of each module, by module and name."""
    found: dict[tuple[Path, str], ast.expr] = {}
    for path, each in python(folder).items():
        for node in each.body:
            for name, value in _assigned(node):
                if name.strip("_").isupper():
                    found[path, name] = value
    return found


def numeric_constants(folder: Path) -> list[tuple[Path, str]]:
    """The constants made of numbers alone: a number, arithmetic of numbers, or a sequence of numbers."""
    return [key for key, value in constants(folder).items() if _is_numeric(value)]


def names_used_twice(folder: Path) -> list[str]:
    """Names of classes and constants that several modules define. Names with an underscore in front are not counted."""
    named = [name for _, name in constants(folder)] + list(classes(folder).elements())
    return sorted(name for name, count in Counter(named).items() if count > 1 and not name.startswith("_"))


def room_sizes(package: Path) -> dict[str, int]:
    """Modules of each folder of a package."""
    found = Counter(path.parent for path in python(package))
    return {folder.relative_to(package).as_posix(): count for folder, count in found.items()}


def function_lengths(folder: Path) -> list[int]:
    """Lines of each function, ascending."""
    functions = (node for node in _statements(folder) if isinstance(node, ast.FunctionDef))
    return sorted((node.end_lineno or node.lineno) - node.lineno + 1 for node in functions)


def pages(checkout: Path) -> dict[Path, int]:
    """The words of each page of docs/, code and tables included."""
    return {path: len(path.read_text().split()) for path in sorted((checkout / "docs").rglob("*.md"))}


# ---- prose ----


def words(prose: str) -> list[str]:
    """The words of a text in lower case, without quoted code."""
    return re.findall(r"[a-z']+", re.sub(r"`[^`]*`", " ", prose.lower()))


def prose_of(path: Path) -> str:
    """Docstrings and comments of a source, or the text of a page without code and tables. Empty for other files."""
    if path.suffix == ".py":
        return "\n".join((*_docstrings(module(path)), *_comments(path.read_text())))
    if path.suffix == ".md":
        return _text_of_page(path.read_text())
    if path.suffix in OF_C:
        return "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", path.read_text(errors="replace"), re.DOTALL))
    return ""


def pointing(checkout: Path) -> dict[str, tuple[int, int]]:
    """Pointing words and all words of each folder of `PROSE`."""
    found: dict[str, tuple[int, int]] = {}
    for folder, parts in PROSE.items():
        for path in sorted((checkout / folder).rglob("*")):
            if path.is_file():
                row = "/".join(path.relative_to(checkout).parent.parts[:parts])
                said = words(prose_of(path))
                count, total = found.get(row, (0, 0))
                found[row] = count + sum(word in POINTING for word in said), total + len(said)
    return {row: each for row, each in found.items() if each[1]}


def percent(pairs: Iterable[tuple[int, int]]) -> float:
    """Pointing words in 100 words."""
    counts, totals = zip(*pairs, strict=True)
    return round(100 * sum(counts) / sum(totals), 2)


def _docstrings(module: ast.Module) -> Iterator[str]:
    """Each string that is a statement of its own."""
    for node in statements(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def _comments(source: str) -> list[str]:
    return re.findall(r"(?m)(?:^|\s)#:? (.*)$", re.sub(r'""".*?"""', "", source, flags=re.DOTALL))


def _text_of_page(page: str) -> str:
    page = re.sub(r"```.*?```", " ", page, flags=re.DOTALL)
    return "\n".join(line for line in page.splitlines() if not line.startswith(("    ", "|")))


def _statements(folder: Path) -> Iterator[ast.stmt]:
    return (node for each in python(folder).values() for node in statements(each))


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement assigns, with their values."""
    if isinstance(node, ast.AnnAssign) and node.value:
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(map(ast.unparse, target.elts), node.value.elts, strict=True)
            else:
                yield ast.unparse(target), node.value


def _is_numeric(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(map(_is_numeric, value.elts))
    if isinstance(value, ast.BinOp):
        return _is_numeric(value.left) and _is_numeric(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_numeric(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


# ---- the table ----


def figures(checkout: Path) -> dict[str, Figure]:
    """All figures of a checkout, by name."""
    kit, package = checkout / "kit", checkout / "kit/npukit"
    plan, written = package / "plan", pages(checkout)
    lengths, prose = function_lengths(package), pointing(checkout)
    return {
        "lines of kit/": lines(kit),
        "lines of plan/": lines(plan),
        "classes of plan/": classes(plan).total(),
        "numeric constants of plan/": len(numeric_constants(plan)),
        "lines of benchmarks/": lines(checkout / "benchmarks"),
        "modules of the largest room": max(room_sizes(package).values()),
        "lines of a function, median": median(lengths),
        "lines of a function, 99 in 100": lengths[len(lengths) * 99 // 100],
        "lines of the longest function": lengths[-1],
        "names used twice": len(names_used_twice(package)),
        "pages of docs/": len(written),
        "words of docs/": sum(written.values()),
        "pointing words in 100": percent(prose.values()),
        **{f"pointing words in 100, {row}/": percent((each,)) for row, each in prose.items()},
    }
