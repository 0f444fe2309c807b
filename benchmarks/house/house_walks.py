"""Walks: the functions into which a parameter is passed on from call to call.

A walk begins at a parameter of a function. It continues into each function or class of the package whose call receives
the parameter, or the attribute of `self` that holds the parameter. Callees are resolved by the names of the calling
module and its imports, and methods by the class around the call. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, eq=False)
class Body:
    """A function of a module, or a method of a class of the module."""

    module: Path
    node: ast.FunctionDef
    owner: str

    @property
    def parameters(self) -> list[ast.arg]:
        given = self.node.args
        return [*given.args[bool(self.owner) :], *given.kwonlyargs]

    def keeps(self, name: str) -> set[str]:
        """The expressions that hold the parameter: the name, and attributes assigned from the name."""
        kept = {name}
        for node in ast.walk(self.node):
            if isinstance(node, ast.Assign):
                for target, value in _pairs(node.targets[0], node.value):
                    if ast.unparse(value) == name and isinstance(target, ast.Attribute):
                        kept.add(ast.unparse(target))
        return kept


class Walks:
    """The walks through the modules of a package."""

    def __init__(self, modules: Mapping[Path, ast.Module], package: Path) -> None:
        self._paths = {".".join(path.relative_to(package.parent).with_suffix("").parts): path for path in modules}
        self._bodies: dict[tuple[Path, str], list[Body]] = {}
        self._imports: dict[tuple[Path, str], tuple[Path, str]] = {}
        for path, tree in modules.items():
            self._read(path, tree)

    def _read(self, path: Path, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self._bodies[path, node.name] = [Body(path, node, "")]
            elif isinstance(node, ast.ClassDef):
                methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
                self._bodies[path, node.name] = [Body(path, each, node.name) for each in methods]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in self._paths:
                for each in node.names:
                    self._imports[path, each.asname or each.name] = self._paths[node.module], each.name

    def parameters(self) -> Iterator[tuple[Body, ast.arg]]:
        return ((body, each) for bodies in self._bodies.values() for body in bodies for each in body.parameters)

    def walk(self, start: Body, parameter: str) -> set[Body]:
        """The functions that receive the parameter, directly or through others."""
        seen, waiting = {(start, parameter)}, [(start, parameter)]
        while waiting:
            further = set(self._passed_on(*waiting.pop())) - seen
            seen |= further
            waiting += further
        return {body for body, _ in seen}

    def _passed_on(self, body: Body, parameter: str) -> Iterator[tuple[Body, str]]:
        kept = body.keeps(parameter)
        stays = self._bodies[body.module, body.owner] if len(kept) > 1 else [body]
        for each in stays:
            for call in (node for node in ast.walk(each.node) if isinstance(node, ast.Call)):
                for callee in self._called(each, call.func):
                    names = [argument.arg for argument in callee.parameters]
                    given = [*zip(names, call.args, strict=False), *((key.arg, key.value) for key in call.keywords)]
                    yield from ((callee, str(name)) for name, value in given if ast.unparse(value) in kept)

    def _called(self, caller: Body, called: ast.expr) -> list[Body]:
        """The package's function or method called, or `__init__` for a class; empty for calls outside the package."""
        name = ast.unparse(called)
        if name.startswith("self.") and caller.owner:
            methods = self._bodies[caller.module, caller.owner]
            return [each for each in methods if f"self.{each.node.name}" == name]
        found = self._bodies.get(self._imports.get((caller.module, name), (caller.module, name)), [])
        return [each for each in found if not each.owner or each.node.name == "__init__"]


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The single assignments of a tuple assignment, or the assignment itself."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return zip(target.elts, value.elts, strict=False)
    return iter([(target, value)])
