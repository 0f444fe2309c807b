"""Points of quantisation in a float function: results that become int8 tensors, and results inside an integer op."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.net.importer.expressions import bindings, callee, dtype_of, operands
from npukit.net.importer.movement import MOVEMENTS
from npukit.net.importer.unary import FUNCTIONS, WITH_ATTRIBUTES
from npukit.quantize.canonical import is_bias
from npukit.quantize.function import constant, count_reads, outputs, parameters, variables
from npukit.quantize.scales import Quantizer, unchanged

REARRANGEMENTS = ("expand_dims", "flatten", "nn.batch_flatten", "permute_dims", "reshape", "squeeze")
"""Moves allowed between an op and its activation."""
CLIPS = ("clip", "nn.relu", "nn.relu6")
LIMITS = ("maximum", "minimum")
MASK = 1000.0
"""Least magnitude of a constant of padding that stands for an infinite number."""
OF_ONE_NUMBER = (*FUNCTIONS, *WITH_ATTRIBUTES)


@dataclass
class Points:
    """`quantised`: variables whose values become int8 tensors. `quantizer` may change their scales. A variable's `leaf`
    is the quantised tensor from which it is computed element by element, or the variable itself."""

    module: IRModule
    quantizer: Quantizer = unchanged
    quantised: set[Any] = field(default_factory=set)
    weights: dict[Any, np.ndarray] = field(default_factory=dict)
    """Weights that replace the model's, by a linear op's result."""
    _leaves: dict[Any, Any] = field(default_factory=dict)
    _activated: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def values(self) -> dict[Any, Any]:
        return dict(bindings(self.module))

    @cached_property
    def readers(self) -> dict[Any, list[Any]]:
        """The variables computed from each variable."""
        readers = dict[Any, list[Any]]()
        for variable, value in self.values.items():
            for read in variables(value):
                readers.setdefault(read, []).append(variable)
        return readers

    @cached_property
    def _reads(self) -> Any:
        return count_reads(self.module)

    def leaf(self, variable: Any) -> Any:
        return self._leaves.get(variable, variable)

    def core(self, variable: Any) -> Any:
        """The op whose activation the variable is; the variable itself if it is no activation."""
        return self._activated.get(variable, variable)

    def moves(self, variable: Any) -> bool:
        """True if the variable contains another variable's values, only moved, apart from zeros or masks."""
        value: Any = self.values.get(variable)
        adds = callee(value) == "nn.pad" and 0 < abs(float(value.attrs.pad_value)) < MASK
        return callee(value) in (*MOVEMENTS, "split") and not adds

    def inside(self, variable: Any) -> Any:
        """The variable merged into an op: the product before a bias, or the scaling before a softmax; else None."""
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
        """All variables computed by an integer op: the quantised variable, the activated op, the merged variable."""
        core = self.core(variable)
        return [part for part in (variable, core, self.inside(core)) if part is not None]

    def origin(self, variable: Any) -> Any:
        """The variable whose values are moved to this variable; the variable itself without moves."""
        while self.moves(variable):
            variable = variables(self.values[variable])[0]
        return variable

    def bias(self, product: Any) -> np.ndarray | None:
        """The constant added to a linear op's result, or None."""
        return self._biases.get(product)

    @cached_property
    def _biases(self) -> dict[Any, np.ndarray]:
        adds = [(self.inside(variable), value) for variable, value in self.values.items() if callee(value) == "add"]
        return {product: constant(value.args[1]) for product, value in adds if product is not None}

    def in_order(self) -> list[Any]:
        """The quantised variables: inputs first, each variable after its sources."""
        return [each for each in (*parameters(self.module), *self.values) if each in self.quantised]

    def find(self) -> Points:
        for variable, value in self.values.items():
            self._relate(variable, value)
        todo = list(outputs(self.module))
        while todo:
            wanted = todo.pop()
            if wanted in self.quantised:
                continue
            is_float = not isinstance(wanted.ty, relax.TupleType) and dtype_of(wanted).startswith("float")
            if is_float and not self.moves(wanted):
                self.quantised.add(wanted)
            if self.leaf(wanted) is wanted:
                core = self.core(wanted)
                inside = self.inside(core)
                todo += variables(self.values.get(core if inside is None else inside))
            else:
                todo.append(self.leaf(wanted))
        return self

    def _relate(self, variable: Any, value: Any) -> None:
        """Finds the leaf of a variable, or the op activated by the variable. Only a function of a single number per
        element has them: all its constants are single numbers."""
        if self.inside(variable) is not None or callee(value) not in OF_ONE_NUMBER:
            return
        leaves = {self.leaf(source) for source in variables(value)}
        constants = [operand for operand in operands(value) if constant(operand) is not None]
        if len(leaves) != 1 or not all(map(_is_scalar, constants)):
            return
        clips = callee(value) in CLIPS or (callee(value) in LIMITS and _is_scalar(value.args[1]))
        core = self._activatable(variables(value)[0]) if clips else None
        if core is None:
            (self._leaves[variable],) = leaves
        else:
            self._activated[variable] = core

    def _activatable(self, variable: Any) -> Any:
        """The op whose result an activation clips, if there is no other reader. Rearrangements may lie in between."""
        while self._reads[variable] == 1 and callee(self.values.get(variable)) in REARRANGEMENTS:
            variable = self.values[variable].args[0]
        computed = variable in self.values and self.leaf(variable) is variable and not self.moves(variable)
        return self.core(variable) if computed and self._reads[variable] == 1 else None


def _is_scalar(expression: Any) -> bool:
    value = constant(expression)
    return value is not None and value.size == 1
