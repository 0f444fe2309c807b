"""Choice of the kernels of a whole network, together with the layouts of the tensors between kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import NamedTuple

from npukit.accel.cortex_m.code.assembly import CodeWorth
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels.border import fill_border
from npukit.accel.cortex_m.layout import NO_PADDING, Layout, Order, Shape
from npukit.accel.cortex_m.op_view import OpView
from npukit.accel.cortex_m.variants import kernels
from npukit.errors import DoesNotFit
from npukit.net.ops import Attributes, Conv2d, DepthwiseConv2d, Padding, Reshape
from npukit.net.ops.table import macs as macs_of

INPUT = -1
"""The index of the network's input among nodes."""

_MACS_PER_BYTE_WORTH = 350_000
"""Number of products of a network in which a byte of code must save one instruction or cycle a frame. With 100,000 the
MLPerf Tiny networks take 1.2 to 2.0 % longer and 5 to 10 KB less flash, with a million 0.1 to 0.9 % less and 1 to 12 KB
more (`benchmarks/core/kernel_constants.md`)."""

_MEMORY_BYTE_WORTH, _CYCLES_WORTH_A_BYTE = 4, 1000
"""Factor on the savings per byte of code for the objective `memory`; instructions and cycles worth a byte of flash."""

_NO_KERNEL_COST = 1e12
"""Cost of a node without a kernel, above any kernel's: chosen only if no kernel applies."""

_WORTH_SAVING, _WORTH_SPENDING = 0.75, 1.02
"""Limits of alternative layouts, relative to the cheapest choice: SRAM, then time and flash. Without alternative
layouts keyword spotting is 1.5 % faster and takes 8 KB of SRAM more, visual wake words 1.0 % and 27 KB; 0.9 and 1.1
decide nothing (`benchmarks/core/kernel_constants.md`)."""

AS_USUAL: Mapping[int, float] = {}


class Fetches(NamedTuple):
    """Cycles of waiting per byte of code, and bytes of the largest loop that is fetched only once."""

    cycles: float
    kept_bytes: int


AT_ONCE = Fetches(0, 0)

ConstantCycles = Callable[[Kernel], float]
"""A function of a kernel: the cycles of waiting for the kernel's constants."""


def no_waits(kernel: Kernel) -> float:
    del kernel
    return 0.0


@dataclass(frozen=True)
class Node:
    """A tensor of a network. `inputs`: the nodes from which the tensor is computed; INPUT is the network's input.

    If `layer` is None, the tensor and its inputs are dense: an input, the output of an op without kernels, the host's
    tensors.
    """

    name: str
    shape: Shape
    inputs: tuple[int, ...]
    layer: OpView | None = None

    @classmethod
    def of(cls, layer: OpView, *inputs: int) -> Node:
        return cls(layer.name, layer.output_shape, inputs, layer)

    def is_a(self, *kinds: type[Attributes]) -> bool:
        return self.layer is not None and isinstance(self.layer.attributes, kinds)

    @property
    def padding(self) -> Padding:
        """The border of zero points around the input of the node's kernel."""
        wanted = self.is_a(Conv2d) or (self.is_a(DepthwiseConv2d) and self.layer is not None and self.layer.helium)
        return self.layer.window.padding if self.layer and wanted else NO_PADDING


@dataclass(frozen=True)
class KernelCall:
    """A kernel call on the outputs of nodes. The call computes the output of `node` or fills the output's border.
    `kernel` is None if no variant applies; `refusals` has the reasons."""

    node: int
    kernel: Kernel | None
    inputs: tuple[int, ...]
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class KernelChoice:
    """The calls of a network in order, and the layout of each node's output."""

    nodes: tuple[Node, ...]
    calls: tuple[KernelCall, ...]
    layouts: Mapping[int, Layout]
    live_bytes: int
    """the largest sum of live tensors and scratch memory during a call"""

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(call.kernel for call in self.calls if call.kernel is not None)

    @property
    def without_kernel(self) -> int:
        """The number of nodes without a kernel."""
        return sum(call.kernel is None for call in self.calls)

    @property
    def instructions(self) -> int:
        return sum(kernel.instructions for kernel in self.kernels)

    @property
    def cycles(self) -> int:
        return sum(kernel.cycles for kernel in self.kernels)

    @property
    def time(self) -> int:
        """Instructions plus cycles. Each instruction is also a fetch, which costs time in flash with wait states."""
        return self.instructions + self.cycles

    @property
    def constant_bytes(self) -> int:
        return sum(kernel.constant_bytes for kernel in self.kernels)

    @property
    def flash(self) -> int:
        return self.constant_bytes + self.code_bytes

    @property
    def code_bytes(self) -> int:
        """Bytes of code. Routines shared by kernels count once."""
        routines = {kernel.routine.name: kernel.routine.bytes for kernel in self.kernels}
        return sum(routines.values()) + sum(kernel.entry_bytes for kernel in self.kernels)


@dataclass(frozen=True)
class _Partial:
    """The cheapest known calls of the first nodes for certain layouts of the live tensors."""

    cost: float
    live_bytes: int
    routines: frozenset[str]
    before: _Partial | None
    """The partial choice without the last node."""
    calls: tuple[KernelCall, ...]
    """The calls of the last node."""
    layout: tuple[int, Layout]
    """The layout of the last node's output."""

    @property
    def nodes(self) -> list[_Partial]:
        """The partial choices node by node, without the network's input."""
        found, last = [], self
        while last.before is not None:
            found.append(last)
            last = last.before
        return found[::-1]


State = tuple[tuple[int, Layout], ...]


def choose_thriftily(
    nodes: Sequence[Node],
    objective: str = "latency",
    code_worth: Mapping[int, float] = AS_USUAL,
    fetches: Fetches = AT_ONCE,
    constant_cycles: ConstantCycles = no_waits,
) -> KernelChoice:
    """The cheapest choice, or one whose layouts save a quarter of the SRAM for at most a fiftieth of time and flash."""
    chosen = partial(
        choose, nodes, objective=objective, code_worth=code_worth, fetches=fetches, constant_cycles=constant_cycles
    )
    best = chosen()
    try:
        smaller = chosen(sram=int(best.live_bytes * _WORTH_SAVING))
    except DoesNotFit:
        return best
    as_many = smaller.without_kernel == best.without_kernel
    as_good = smaller.time <= best.time * _WORTH_SPENDING and smaller.flash <= best.flash * _WORTH_SPENDING
    return smaller if as_many and as_good else best


def choose(
    nodes: Sequence[Node],
    *,
    objective: str = "latency",
    sram: int | None = None,
    code_worth: Mapping[int, float] = AS_USUAL,
    fetches: Fetches = AT_ONCE,
    constant_cycles: ConstantCycles = no_waits,
) -> KernelChoice:
    """The cheapest kernels and layouts. `latency` counts instructions and cycles, `memory` counts bytes of flash first.

    `sram`: limit in bytes of live tensors and scratch memory together. `code_worth`: by node index, the factor by which
    a byte of code must save more than usual.
    """
    nodes = tuple(nodes)
    search = _Search(nodes, objective, sram, fetches, constant_cycles, code_worth)
    best = search.best()
    calls = tuple(call for each in best.nodes for call in each.calls)
    layouts = dict([search.start.layout, *(each.layout for each in best.nodes)])
    return KernelChoice(nodes, calls, layouts, best.live_bytes)


class _Search:
    """Dynamic programming over the nodes in order. A state is the layouts of all tensors with readers left."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        objective: str,
        sram: int | None,
        fetches: Fetches,
        constant_cycles: ConstantCycles,
        code_worth: Mapping[int, float],
    ) -> None:
        self._nodes, self._objective, self._sram = nodes, objective, sram
        self._fetches, self._constant_cycles = fetches, constant_cycles
        self._consumers = _consumers(nodes)
        self._found: dict[tuple[int, tuple[Layout, ...], Layout], tuple[list[Kernel], tuple[Refusal, ...]]] = {}
        more = _MEMORY_BYTE_WORTH if objective == "memory" else 1
        worths = (worth * code_worth.get(index, 1) * more for index, worth in enumerate(_byte_worth(nodes)))
        self._worth = [CodeWorth(worth, *fetches) for worth in worths]
        self.input_layout = Layout(Order.PIXELS, next(node.shape for node in nodes if INPUT in node.inputs))
        self.start = _Partial(0.0, 0, frozenset(), None, (), (INPUT, self.input_layout))

    def best(self) -> _Partial:
        """The cheapest choice for all nodes."""
        partials = {((INPUT, self.input_layout),): self.start}
        for index, node in enumerate(self._nodes):
            extended: dict[State, _Partial] = {}
            for (state, before), target in product(partials.items(), self._candidates(index)):
                self._extend(index, dict(state), before, target, extended)
            partials = extended
            if not partials:
                raise DoesNotFit(
                    f"{node.name} does not fit {self._sram} bytes of SRAM",
                    tries=["--objective memory", "a board with more memory"],
                )
        return min(partials.values(), key=lambda each: each.cost)

    def _extend(
        self, index: int, layouts: dict[int, Layout], before: _Partial, target: Layout, result: dict[State, _Partial]
    ) -> None:
        """Add the states after a node with the layout `target`, each with its cheapest partial choice."""
        sources = tuple(layouts[i] for i in self._nodes[index].inputs)
        alive = sum(layout.bytes for layout in layouts.values()) + target.bytes
        after = {**layouts, index: target}
        state = tuple((i, layout) for i, layout in after.items() if self._consumers[i][-1:] > [index])
        for calls in self._calls(index, sources, target):
            needed = alive - self._saved(index, calls[0], target)
            needed += max((call.kernel.scratch_bytes for call in calls if call.kernel), default=0)
            if self._sram is not None and needed > self._sram:
                continue
            partial = self._with(before, calls, needed, index, target)
            if state not in result or partial.cost < result[state].cost:
                result[state] = partial

    def _saved(self, index: int, call: KernelCall, target: Layout) -> int:
        """Bytes that the output shares with an input without later readers."""
        if call.kernel is None:
            return 0
        readers = {i: self._consumers[call.inputs[i]][-1] for i in call.kernel.may_overwrite if call.inputs[i] != INPUT}
        over = (call.kernel.inputs[i].bytes for i, last in readers.items() if last == index)
        return max((min(size, target.bytes) for size in over), default=0)

    def _with(self, before: _Partial, calls: tuple[KernelCall, ...], live: int, index: int, target: Layout) -> _Partial:
        cost, routines = before.cost, before.routines
        for call in calls:
            added = 0
            if call.kernel is not None:
                added = call.kernel.constant_bytes + call.kernel.entry_bytes
                if call.kernel.routine.name not in routines:
                    added += call.kernel.routine.bytes
                    routines |= {call.kernel.routine.name}
            cost += self._cost(call, added)
        return _Partial(cost, max(before.live_bytes, live), routines, before, calls, (index, target))

    def _cost(self, call: KernelCall, flash: int) -> float:
        """The cost of a call. Instructions count beside cycles, because each instruction is also a fetch: time in flash
        with wait states."""
        if call.kernel is None:
            return _NO_KERNEL_COST
        time = call.kernel.instructions + call.kernel.cycles + self._constant_cycles(call.kernel)
        if self._fetches.cycles:
            time += self._fetches.cycles * call.kernel.body.fetched_bytes(self._fetches.kept_bytes)
        return time if self._objective == "latency" else flash + time / _CYCLES_WORTH_A_BYTE

    def _calls(self, index: int, sources: tuple[Layout, ...], target: Layout) -> Iterator[tuple[KernelCall, ...]]:
        """Each way to compute a node's output, with the fill of the border."""
        node = self._nodes[index]
        key = (index, sources, target)
        if key not in self._found:
            layer = self._nodes[index].layer
            everything = list(kernels(layer, sources, target, self._worth[index])) if layer else []
            accepted = [k for k in everything if isinstance(k, Kernel)]
            self._found[key] = accepted, tuple(k for k in everything if isinstance(k, Refusal))
        found, refused = self._found[key]
        fill = self._fill(index, target)
        for kernel in found:
            yield (KernelCall(index, kernel, node.inputs), *fill)
        if not found and target.plain and all(source.plain for source in sources):
            yield (KernelCall(index, None, node.inputs, refused), *fill)

    def _fill(self, index: int, target: Layout) -> tuple[KernelCall, ...]:
        node = self._nodes[index]
        if not any(target.border) or node.is_a(Reshape):
            return ()
        readers = (self._nodes[i] for i in self._consumers[index])
        zero = next(reader.layer.input_zero for reader in readers if reader.layer and any(reader.padding))
        kernel = fill_border(f"{node.name}_border", target, zero)
        return (KernelCall(index, kernel, (index,)),) if isinstance(kernel, Kernel) else ()

    def _candidates(self, index: int) -> list[Layout]:
        """The candidate layouts of a node's output, given the output's readers."""
        shape, readers = self._nodes[index].shape, [self._nodes[i] for i in self._consumers[index]]
        borders = {NO_PADDING, _hull([reader.padding for reader in readers])}
        sides = (False, True) if shape[0] > shape[1] > 1 and readers else (False,)
        layouts = [Layout(Order.PIXELS, shape, b, t) for b, t in product(sorted(borders), sides)]
        if readers and all(reader.is_a(DepthwiseConv2d) for reader in readers):
            layouts += [Layout(o, shape, NO_PADDING, t) for o, t in product((Order.PLANES8, Order.PLANES16), sides)]
        return layouts


def _consumers(nodes: Sequence[Node]) -> dict[int, list[int]]:
    """The readers of each node and of the network's input, in order."""
    found: dict[int, list[int]] = {index: [] for index in range(INPUT, len(nodes))}
    for index, node in enumerate(nodes):
        for source in dict.fromkeys(node.inputs):
            found[source].append(index)
    return found


def _byte_worth(nodes: Sequence[Node]) -> list[float]:
    """The time that a byte of each layer's code must save: more in large networks, less if layers share the code."""
    shared = [_code_key(node.layer) for node in nodes]
    count, macs = Counter(shared), sum(macs_of(node.layer.net, node.layer.op) for node in nodes if node.layer)
    return [macs / _MACS_PER_BYTE_WORTH / count[key] for key in shared]


def _code_key(layer: OpView | None) -> tuple:
    """A key, equal for layers that can share code."""
    return (type(layer.attributes), layer.input_shape, layer.output_shape, layer.window) if layer else ()


def _hull(paddings: Sequence[Padding]) -> Padding:
    """The smallest border that includes every padding."""
    top, left, bottom, right = (max(side) for side in zip(NO_PADDING, *paddings, strict=True))
    return top, left, bottom, right
