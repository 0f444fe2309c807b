"""The structure of the package, of this tree or another: rooms, floors, arrows, lines, lengths of functions, walks.

    python benchmarks/house/house.py [TREE ...]

A room is a folder of modules. An arrow is an import of one module by another. A floor is a step on the longest path
along the arrows. A walk is the set of functions through which a parameter is passed (`house_walks.py`): here the
planner's objective, and a batch (once named round). Repeated lines are six successive lines that occur elsewhere too,
without imports and comments. The planner, the largest room, is also listed on its own.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

from house_walks import Walks

PACKAGE = Path("kit") / "npukit"

BATCHES = {"Batch", "Round"}
WALKS: Mapping[str, Callable[[ast.arg], bool]] = {
    "the objective": lambda parameter: parameter.arg == "objective",
    "a batch": lambda parameter: parameter.annotation is not None and ast.unparse(parameter.annotation) in BATCHES,
}

RUN = 6
"""Successive lines that count as repeated if they occur elsewhere too."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, default=[Path(__file__).resolve().parents[2]])
    trees = parser.parse_args().trees
    columns = [dict(facts(tree)) for tree in trees]
    for name in columns[0]:
        print(f"{name:44}" + "".join(f"{column.get(name, ''):>16}" for column in columns))


def facts(tree: Path) -> Iterator[tuple[str, str]]:
    """The names and values of all figures of a tree, in display order."""
    package = tree / PACKAGE
    modules = {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}
    yield "lines of Python", f"{sum(len(path.read_text().splitlines()) for path in modules):,}"
    yield "modules", str(len(modules))
    yield "largest room, modules", str(max(len(list(folder.glob("*.py"))) for folder in rooms(package)))
    lengths = sorted(length for tree_ in modules.values() for length in function_lengths(tree_))
    yield "functions: median lines", f"{median(lengths):g}"
    yield "functions: 99 of 100 have at most", str(lengths[len(lengths) * 99 // 100])
    yield "functions: longest", str(lengths[-1])
    yield "repeated lines", str(repeated_lines(modules.values()))
    yield "class names that stand more than once", str(sum(count > 1 for count in class_names(modules).values()))
    plan = {path: tree_ for path, tree_ in modules.items() if path.is_relative_to(package / "plan")}
    yield "planner: modules", str(len(plan))
    yield "planner: lines", f"{sum(len(path.read_text().splitlines()) for path in plan):,}"
    arrows = arrows_of(plan, package)
    yield "planner: arrows between modules", str(sum(map(len, arrows.values())))
    yield "planner: floors of modules", str(floors(arrows))
    between = room_arrows(arrows)
    yield "planner: arrows between rooms", str(sum(map(len, between.values())))
    yield "planner: functions of graph, board, engines", str(sum(map(has_clump, functions(plan))))
    yield "planner: most parameters of a function", str(max(len(each.args.args) for each in functions(plan)))
    yield "planner: concepts (classes)", str(len(class_names(plan)))
    walks = Walks(modules, package)
    for title, taken in WALKS.items():
        yield f"longest walk of {title}: functions, modules", longest_walk(walks, taken)


def rooms(package: Path) -> list[Path]:
    return [package, *(path for path in package.rglob("*") if path.is_dir() and any(path.glob("*.py")))]


def functions(modules: Mapping[Path, ast.Module]) -> list[ast.FunctionDef]:
    return [node for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def function_lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def has_clump(function: ast.FunctionDef) -> bool:
    """Whether a function takes a net or its graph, the board and the engines as separate parameters."""
    names = {argument.arg for argument in function.args.args}
    return {"board", "engines"} <= names and bool({"graph", "net"} & names)


def arrows_of(modules: Mapping[Path, ast.Module], package: Path) -> dict[Path, set[Path]]:
    """For each module the modules of `modules` that it imports."""
    paths = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in modules}
    found: dict[Path, set[Path]] = {path: set() for path in modules}
    for path, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module in paths:
                found[path].add(paths[node.module])
    return found


def room_arrows(arrows: Mapping[Path, set[Path]]) -> dict[Path, set[Path]]:
    found: dict[Path, set[Path]] = {path.parent: set() for path in arrows}
    for path, others in arrows.items():
        found[path.parent] |= {other.parent for other in others} - {path.parent}
    return found


def floors(arrows: Mapping[Path, set[Path]]) -> int:
    """The number of modules on the longest path along the arrows."""

    @cache
    def height(path: Path) -> int:
        return 1 + max(map(height, arrows[path]), default=0)

    return max(map(height, arrows))


def class_names(modules: Mapping[Path, ast.Module]) -> Counter[str]:
    return Counter(node.name for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def longest_walk(walks: Walks, taken: Callable[[ast.arg], bool]) -> str:
    """The walk with the most functions, of the parameters that `taken` accepts: counts of functions and modules."""
    found = (walks.walk(body, each.arg) for body, each in walks.parameters() if taken(each))
    walk = max(found, key=len)
    return f"{len(walk)}, {len({body.module for body in walk})}"


def repeated_lines(modules: Iterable[ast.Module]) -> int:
    """Lines in runs of RUN that occur elsewhere too, each counted once. Lines are of unparsed code, so layout does not
    matter."""
    runs: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for number, tree in enumerate(modules):
        code = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
        lines = [line.strip() for line in ast.unparse(ast.Module(code, [])).splitlines() if line.strip()]
        for first in range(len(lines) - RUN + 1):
            runs.setdefault(tuple(lines[first : first + RUN]), []).append((number, first))
    again = [place for places in runs.values() if len(places) > 1 for place in places]
    return len({(number, first + at) for number, first in again for at in range(RUN)})


if __name__ == "__main__":
    main()
