"""Points at which a float function is quantised: results that become int8 tensors, those inside one integer op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.net.importer.expressions import callee, dtype_of, operands
from npukit.net.importer.movement import MOVEMENTS
from npukit.net.importer.unary import FUNCTIONS, WITH_ATTRIBUTES
from npukit.quantize.canonical import is_bias
from npukit.quantize.function import bindings, constant, count_reads, outputs, parameters, variables
from npukit.quantize.scales import Quantizer, unchanged

REARRANGEMENTS = ("expand_dims", "flatten", "nn.batch_flatten", "permute_dims", "reshape", "squeeze")
"""Moves that an op's activation may come behind."""
CLIPS = ("clip", "nn.relu", "nn.relu6")
LIMITS = ("maximum", "minimum")
OF_ONE_NUMBER = (*FUNCTIONS, *WITH_ATTRIBUTES)


@dataclass
class Points:
    """`quantised` are the variables whose values become int8 tensors, with scales that `quantizer` may change.

    A variable's `leaf` is the one quantised tensor that it is a function of, number by number, or itself.
    """

    module: IRModule
    quantizer: Quantizer = unchanged
    quantised: set[Any] = field(default_factory=set)
    _leaves: dict[Any, Any] = field(default_factory=dict)
    _activated: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[Any, Any]:
        return dict(bindings(self.module))

    @cached_property
    def _reads(self) -> Any:
        return count_reads(self.module)

    def leaf(self, variable: Any) -> Any:
        return self._leaves.get(variable, variable)

    def core(self, variable: Any) -> Any:
        """The op behind an activation that belongs to it."""
        return self._activated.get(variable, variable)

    def moves(self, variable: Any) -> bool:
        """True if the variable is another one's values, only moved."""
        return callee(self.values.get(variable)) in (*MOVEMENTS, "split")

    def inside(self, variable: Any) -> Any:
        """The variable that an op takes in as a part of itself: the product before a bias, a softmax's scaling."""
        value: Any = self.values.get(variable)
        if callee(value) not in ("add", "nn.softmax") or not isinstance(value.args[0], relax.Var):
            return None
        source = value.args[0]
        before: Any = self.values.get(source)
        if callee(value) == "add":
            taken = is_bias(before, value.args[1])
        else:
            taken = callee(before) == "multiply" and _is_scalar(before.args[1])
        return source if taken and self._reads[source] == 1 else None

    def parts(self, variable: Any) -> list[Any]:
        """The variables that a quantised one is computed by: itself, the op that it activates, what that takes in."""
        core = self.core(variable)
        return [part for part in (variable, core, self.inside(core)) if part is not None]

    def origin(self, variable: Any) -> Any:
        """The variable whose values this one has, before they were moved."""
        while self.moves(variable):
            variable = variables(self.values[variable])[0]
        return variable

    def bias(self, product: Any) -> np.ndarray | None:
        """The constant that is added to a linear op's result."""
        return self._biases.get(product)

    @cached_property
    def _biases(self) -> dict[Any, np.ndarray]:
        adds = [(self.inside(variable), value) for variable, value in self.values.items() if callee(value) == "add"]
        return {product: constant(value.args[1]) for product, value in adds if product is not None}

    def in_order(self) -> list[Any]:
        """The quantised variables: inputs first, each after those it is computed from."""
        return [each for each in (*parameters(self.module), *self.values) if each in self.quantised]

    def find(self) -> Points:
        for variable, value in self.values.items():
            self._relate(variable, value)
        for output in outputs(self.module):
            self._need(output)
        return self

    def _relate(self, variable: Any, value: Any) -> None:
        """Find the variable's leaf."""
        if self.inside(variable) is not None or not _of_one_number(value):
            return
        leaves = {self.leaf(source) for source in variables(value)}
        if len(leaves) != 1:
            return
        core = self._activatable(variables(value)[0]) if _clips(value) else None
        if core is None:
            (self._leaves[variable],) = leaves
        else:
            self._activated[variable] = core

    def _activatable(self, variable: Any) -> Any:
        """The op whose result an activation clips, if nothing else reads that; perhaps rearranged in between."""
        while self._reads[variable] == 1 and callee(self.values.get(variable)) in REARRANGEMENTS:
            variable = self.values[variable].args[0]
        computed = variable in self.values and self.leaf(variable) is variable and not self.moves(variable)
        return self.core(variable) if computed and self._reads[variable] == 1 else None

    def _need(self, variable: Any) -> None:
        """The variable is wanted as integers."""
        todo = [variable]
        while todo:
            wanted = todo.pop()
            if wanted in self.quantised:
                continue
            if _is_float(wanted) and not self.moves(wanted):
                self.quantised.add(wanted)
            todo += self._sources(wanted)

    def _sources(self, variable: Any) -> Iterator[Any]:
        """The integers that a quantised variable is computed from."""
        if self.leaf(variable) is not variable:
            return iter([self.leaf(variable)])
        core = self.core(variable)
        inside = self.inside(core)
        return iter(variables(self.values.get(core if inside is None else inside)))


def _is_float(variable: Any) -> bool:
    return not isinstance(variable.ty, relax.TupleType) and dtype_of(variable).startswith("float")


def _clips(value: Any) -> bool:
    return callee(value) in CLIPS or (callee(value) in LIMITS and _is_scalar(value.args[1]))


def _of_one_number(value: Any) -> bool:
    """A function of one number if its operands are: all constants in it are single numbers."""
    if callee(value) not in OF_ONE_NUMBER:
        return False
    return all(_is_scalar(operand) for operand in operands(value) if constant(operand) is not None)


def _is_scalar(expression: Any) -> bool:
    value = constant(expression)
    return value is not None and value.size == 1
