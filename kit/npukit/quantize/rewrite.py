"""Rewrites a float module with quantize and dequantize after each quantised result, and with int8 constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Call, IRModule

from npukit.errors import NpukitError
from npukit.frontend.expressions import dequantize, quantize
from npukit.net.tensor import Quantization
from npukit.quantize.canonical import foldable, weight_axis
from npukit.quantize.floors import NO_FLOORS, Floors
from npukit.quantize.function import constant, make_call, outputs, parameters, rewritten, substituted, variables
from npukit.quantize.points import Points
from npukit.quantize.scales import integers, least_scales, of_constant, of_weights
from npukit.quantize.spread import Factors
from npukit.quantize.wide import NOTHING_WIDE, Wide, in_bytes, products

operators: Any = relax.op


@dataclass
class QdqRewriting:
    """A module in QDQ form, in making, with constants from their floors upwards. Results in `kept` are computed in
    float, and passed on in float among each other.

    Results are divided by the `factors` of their channels before quantisation. A dense layer's result is divided
    through the layer's weights and multiplied after reading. A float result is divided where it is quantised, and the
    weights of its readers are multiplied. Dense layers read `wide` results as two bytes. Results in `ends` are
    not quantised.

    `real`: variables before quantisation. `read`: expressions for other ops. `integers`: the integer variable of each
    quantised variable.
    """

    points: Points
    chosen: Mapping[Any, Quantization]
    lowest: Floors = NO_FLOORS
    kept: frozenset[Any] = frozenset()
    factors: Factors = field(default_factory=dict)
    wide: Wide = NOTHING_WIDE
    ends: frozenset[Any] = frozenset()
    real: dict[Any, Any] = field(default_factory=dict)
    read: dict[Any, Any] = field(default_factory=dict)
    integers: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def divided(self) -> Factors:
        """The factors of results, and of products before their biases."""
        inside = {self.points.inside(variable): each for variable, each in self.factors.items()}
        return {**self.factors, **inside}

    @cached_property
    def module(self) -> IRModule:
        """`main` in QDQ form."""
        ends = outputs(self.points.module)

        def results(builder: relax.BlockBuilder) -> list[Any]:
            self.take_inputs(builder)
            return [self.read.get(end, end) for end in ends]

        return rewritten(self.points.module, self.emit, results)

    def take_inputs(self, builder: relax.BlockBuilder) -> None:
        """Quantises the parameters before everything else."""
        for parameter in parameters(self.points.module):
            if parameter not in self.real:
                self.define(builder, parameter, parameter)

    @cached_property
    def _in_float(self) -> set[Any]:
        """All variables in the computation of the kept results."""
        return {part for variable in self.kept for part in self.points.parts(variable)}

    def emit(self, builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        self.take_inputs(builder)
        if isinstance(value, relax.Tuple):
            return
        if foldable(value) and value.args[0] in self.wide.results:
            self.define(builder, variable, self._products(builder, variable, value))
            return
        integer = self.points.leaf(variable) is variable and variable not in self._in_float
        if integer and isinstance(value, Call):
            arguments = list(value.args)
            if foldable(value):
                made, quantization = self._weights(variable, value)
                arguments[1] = builder.emit(dequantize(relax.const(made), quantization, "int8"))
            elif self.points.inside(variable) is None and self.points.core(variable) is variable:
                arguments = [self._integer(builder, variable, argument) for argument in arguments]
            elif variable in self.factors:
                bias = constant(value.args[1]) / self.factors[variable]
                arguments[1] = relax.const(bias.astype(np.float32))
            value = make_call(value.op, arguments, value.attrs, value.ty_args)
        sources = {source: self.source(variable, source) for source in variables(value)}
        self.define(builder, variable, builder.emit(substituted(value, sources), variable.name))

    def _products(self, builder: relax.BlockBuilder, variable: Any, call: Any) -> Any:
        """The result of a dense layer on a `wide` input."""
        made, quantization = self._weights(variable, call)
        if any(quantization.zero_points):
            raise NpukitError(
                f"the weights of {variable.name}, which reads 16 bits, have zero points from a quantizer",
                tries=[f"leave {call.args[0].name} out of --keep-int16"],
            )
        scales = np.float32(self.chosen[call.args[0]].scale) * np.array(quantization.scales, np.float32)
        scales = np.broadcast_to(scales, made.shape[-1:])
        return products(builder, self.read[call.args[0]], relax.const(made), np.ascontiguousarray(scales))

    def source(self, variable: Any, source: Any) -> Any:
        """The expression for `source` in the computation of `variable`."""
        leaf, inside = self.points.leaf(variable), self.points.inside(variable)
        activates = self.points.core(variable) is not variable
        within = leaf is not variable and not leaf.same_as(source)
        taken_in = inside is not None and inside.same_as(source)
        kept = variable in self._in_float and self.points.origin(source) in self.kept
        return (self.real if activates or within or taken_in or kept else self.read).get(source, source)

    def define(self, builder: relax.BlockBuilder, variable: Any, emitted: Any) -> None:
        self.real[variable] = self.read[variable] = emitted
        if variable in self.wide.results:
            divided = self._times(builder, emitted, variable, -1)
            self.read[variable] = in_bytes(builder, divided, self.chosen[variable])
        elif variable in self.points.quantised - self.wide.sums - self.ends:
            divided = self._times(builder, emitted, variable, -1) if variable in self.kept else emitted
            integers = builder.emit(quantize(divided, self.chosen[variable], "int8"), variable.name)
            self.integers[variable] = integers
            read = builder.emit(dequantize(integers, self.chosen[variable], "int8"))
            self.read[variable] = read if variable in self.kept else self._times(builder, read, variable, 1)

    def _times(self, builder: relax.BlockBuilder, value: Any, variable: Any, power: int) -> Any:
        """The value times the factors of a variable's channels, to the given power."""
        if variable not in self.factors:
            return value
        return builder.emit(
            operators.multiply(value, relax.const((self.factors[variable] ** power).astype(np.float32)))
        )

    def _weights(self, variable: Any, call: Any) -> tuple[np.ndarray, Quantization]:
        weights: Any = self.points.weights.get(variable, constant(call.args[1]))
        weights = weights / self.divided.get(variable, np.float32(1))
        if call.args[0] in self.kept and call.args[0] in self.factors:
            weights = weights * self.factors[call.args[0]][:, np.newaxis]
        axis = weight_axis(call, weights.ndim)
        data = self.chosen[self.points.origin(call.args[0])]
        bias = self.points.bias(variable)
        bias = None if bias is None else bias / self.divided.get(variable, np.float32(1))
        least = least_scales(bias, weights.shape[axis], data)
        chosen = of_weights(weights, axis, least)
        return integers(self.points.quantizer, f"{variable.name}_weights", weights, chosen)

    def _integer(self, builder: relax.BlockBuilder, variable: Any, argument: Any) -> Any:
        """A constant float operand in int8; any other operand unchanged."""
        if isinstance(argument, relax.Tuple):
            return relax.Tuple([self._integer(builder, variable, part) for part in argument.fields])
        value = constant(argument)
        if value is None or value.dtype != np.float32 or value.size == 1:
            return argument
        value = np.maximum(value, np.float32(self.lowest.constants.get(variable, -np.inf)))
        made, quantization = integers(self.points.quantizer, f"{variable.name}_constant", value, of_constant(value))
        return builder.emit(dequantize(relax.const(made), quantization, "int8"))
