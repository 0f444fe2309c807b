"""Merges the subgraphs of a TFLite model. Inlines branches and loops; variables become constants or states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from npukit.errors import NpukitError
from npukit.frontend.fold import ELEMENTWISE
from npukit.frontend.shapes import StatePair
from npukit.frontend.tflite.fields import OpOptions
from npukit.frontend.tflite.model import TfliteModel, TfliteOp, TfliteTensor, custom_kind, name_of, options_of
from npukit.net.limits import OPS, STEPS, TENSORS, check_shape

Variable = tuple[bytes, bytes]
"""The container and the name of a variable."""
OWN = b"state"
"""Container for the states of single ops, kept from frame to frame."""
SVDF_STATE = 4
SEQUENCES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"), ()),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
}
"""Inputs with the states of SVDF, and with states to keep if a frame is one step of a sequence."""
BEGINS = "its state is zero at the begin of each frame, a whole sequence; TFLite keeps the state until it is reset"
COMPOSITE = "STABLEHLO_COMPOSITE"
ABSENT = -1
COUNTERS = 16
"""Most elements of an integer tensor computed while graphs are merged."""
DEEPEST = 8
"""Deepest nesting of branches and loops."""


def flattened(graphs: Sequence[TfliteModel], name: str) -> TfliteModel:
    """The model's first graph with all other graphs inlined. `name`: the file's name in errors."""
    flat = _Flat(graphs, name)
    main = graphs[0]
    numbers = flat.enter(main, {})
    flat.run(main, numbers, 0)
    return flat.finished(main, numbers)


@dataclass
class _Flat:
    """The merged graph under construction. Entering a subgraph numbers its tensors anew."""

    graphs: Sequence[TfliteModel]
    name: str
    tensors: list[TfliteTensor] = field(default_factory=list)
    ops: list[TfliteOp] = field(default_factory=list)
    handles: dict[int, Variable] = field(default_factory=dict)
    initial: dict[Variable, TfliteTensor] = field(default_factory=dict)
    current: dict[Variable, int] = field(default_factory=dict)
    begins: dict[Variable, int] = field(default_factory=dict)
    """Tensors by variable: the tensor of its first read (`begins`), and its current tensor (`current`)."""
    same: dict[int, int] = field(default_factory=dict)
    """Aliases of tensors: results of reading a variable, and results of inlined graphs."""
    constants: dict[tuple[int, int], int] = field(default_factory=dict)
    """The number of each constant, by graph and by number in this graph. A graph may be inlined several times."""
    walked: int = 0
    remarks: list[str] = field(default_factory=list)

    def enter(self, graph: TfliteModel, given: Mapping[int, int]) -> list[int]:
        """The numbers of a graph's tensors. `given`: numbers that are already known."""
        TENSORS.check(len(self.tensors) + len(graph.tensors), self.name)
        return [given[index] if index in given else self._number(graph, index) for index in range(len(graph.tensors))]

    def _number(self, graph: TfliteModel, index: int) -> int:
        """The number of a tensor: a new number, except for a known constant."""
        tensor, new = graph.tensors[index], len(self.tensors)
        number = new if tensor.value is None else self.constants.setdefault((id(graph), index), new)
        self.tensors += [tensor] if number == new else []
        return number

    def run(self, graph: TfliteModel, numbers: Sequence[int], depth: int) -> None:
        """Adds the ops of a graph in order."""
        self.walked += len(graph.ops)
        OPS.check(self.walked, self.name)
        for op in graph.ops:
            inputs = tuple(self._numbered(index, numbers) for index in op.inputs)
            outputs = tuple(numbers[index] if index >= 0 else ABSENT for index in op.outputs)
            self._add(replace(op, inputs=inputs, outputs=outputs), depth)

    def _add(self, op: TfliteOp, depth: int) -> None:
        """Adds an op, or resolves a branch, a loop or an op on variables."""
        if op.kind in MERGED:
            MERGED[op.kind](self, op, depth)
        elif op.kind == "SVDF":
            state, filters = op.inputs[SVDF_STATE], self.tensors[op.inputs[1]].shape[0]
            if not filters:
                raise NpukitError(f"{self._place(op)} has no filters")
            *outer, length = self.tensors[state].shape
            frames = (*outer, length // filters, 1, filters)
            self.tensors[state] = replace(self.tensors[state], shape=frames, open=())
            self.ops.append(self._remembering(op, (SVDF_STATE,)))
        elif not self._fold(op):
            self.ops.append(self._with_states(op))

    def _fold(self, op: TfliteOp) -> bool:
        """Computes an op on a few known integers: loop counters and conditions. Returns False for other ops."""
        function = ELEMENTWISE.get(_COUNTED.get(op.kind, ""))
        given = [self.tensors[index] for index in op.inputs if index >= 0]
        known = [each.value for each in given if each.value is not None and each.dtype in ("int32", "int64", "bool")]
        if function is None or len(known) < len(op.inputs) or any(value.size > COUNTERS for value in known):
            return False
        result = self.tensors[op.outputs[0]]
        value = np.asarray(function(*known)).astype(result.dtype)
        self.tensors[op.outputs[0]] = replace(result, shape=value.shape, value=value)
        return True

    def _numbered(self, index: int, numbers: Sequence[int]) -> int:
        return self.same.get(numbers[index], numbers[index]) if index >= 0 else ABSENT

    def graph(self, op: TfliteOp, field_name: str) -> TfliteModel:
        """The subgraph named in an op's option."""
        number = int(op.options.of(op.kind)[field_name])
        if not 0 < number < len(self.graphs):
            raise NpukitError(f"{self._place(op)} names subgraph {number} of {len(self.graphs)}")
        return self.graphs[number]

    def _loop(self, op: TfliteOp, depth: int) -> None:
        """Unrolls a loop. The condition must be known before every step."""
        condition, body = (self.graph(op, which) for which in ("CondSubgraphIndex", "BodySubgraphIndex"))
        values: Sequence[int] = op.inputs
        for step in count():
            STEPS.check(step, f"{self._place(op)}, as far as it is unrolled")
            goes_on = self.tensors[self._inline(op, condition, values, depth)[0]].value
            if goes_on is None:
                raise NpukitError(f"{self._place(op)} goes on for as long as a condition holds that frames decide")
            if not np.any(goes_on):
                break
            values = self._inline(op, body, values, depth)
        self.same.update(zip(op.outputs, values, strict=True))

    def _inline(self, op: TfliteOp, graph: TfliteModel, given: Sequence[int], depth: int) -> list[int]:
        """Inlines a graph. Returns its results."""
        if depth == DEEPEST:
            raise NpukitError(f"{self._place(op)}: branches lie more than {DEEPEST} deep in each other")
        before = [(self.tensors[index].dtype, self.tensors[index].shape) for index in given]
        taken = [(graph.tensors[index].dtype, graph.tensors[index].shape) for index in graph.inputs]
        decides = op.kind == "WHILE" and len(graph.outputs) == 1
        if before != taken or not (decides or len(graph.outputs) == len(op.outputs)):
            raise NpukitError(f"{self._place(op)} gives its subgraph other inputs than that takes")
        numbers = self.enter(graph, dict(zip(graph.inputs, given, strict=True)))
        self.run(graph, numbers, depth + 1)
        return [self._numbered(index, numbers) for index in graph.outputs]

    def _composite(self, op: TfliteOp, depth: int) -> None:
        """Inlines the graph that computes a composite op. Name and attributes are for runtimes that know the op."""
        graph = self.graph(op, "DecompositionSubgraphIndex")
        self.same.update(zip(op.outputs, self._inline(op, graph, op.inputs, depth), strict=True))

    def _branch(self, op: TfliteOp, depth: int) -> None:
        """Inlines the selected branch; with an unknown condition both branches, and selects each result."""
        chosen, branches = self.tensors[op.inputs[0]].value, ("ThenSubgraphIndex", "ElseSubgraphIndex")
        if chosen is not None:
            graph = self.graph(op, branches[0 if np.any(chosen) else 1])
            self.same.update(zip(op.outputs, self._inline(op, graph, op.inputs[1:], depth), strict=True))
            return
        held = dict(self.current)
        graphs = [self.graph(op, branch) for branch in branches]
        results = [self._inline(op, graph, op.inputs[1:], depth) for graph in graphs]
        if self.current != held:
            raise NpukitError(f"{self._place(op)}: a branch changes a variable, which npukit does not read")
        for output, *parts in zip(op.outputs, *results, strict=True):
            self.ops.append(TfliteOp(op.index, "SELECT_V2", (op.inputs[0], *parts), (output,), OpOptions()))

    def _call_once(self, op: TfliteOp, depth: int) -> None:
        """Reads the initial values of variables."""
        graph = self.graph(op, "InitSubgraphIndex")
        handles: dict[int, Variable] = {}
        for each in graph.ops:
            if each.kind == "VAR_HANDLE":
                handles[each.outputs[0]] = _variable(each)
            elif each.kind == "ASSIGN_VARIABLE" and graph.tensors[each.inputs[1]].value is not None:
                self.initial[handles[each.inputs[0]]] = graph.tensors[each.inputs[1]]
            else:
                raise NpukitError(f"{self._place(op)}: its subgraph does more than give variables constants")

    def _var_handle(self, op: TfliteOp, depth: int) -> None:
        self.handles[op.outputs[0]] = _variable(op)

    def _assign_variable(self, op: TfliteOp, depth: int) -> None:
        self.current[self.handles[op.inputs[0]]] = op.inputs[1]

    def _read_variable(self, op: TfliteOp, depth: int) -> None:
        variable, result = self.handles[op.inputs[0]], op.outputs[0]
        held = self.current.get(variable)
        if held is None:
            self.begins[variable] = self.current[variable] = result
        else:
            one, other = self.tensors[held], self.tensors[result]
            if (one.dtype, one.shape, one.quantization) != (other.dtype, other.shape, other.quantization):
                raise NpukitError(f"{self._place(op)} reads a variable otherwise than it is written")
            self.same[result] = held

    def _with_states(self, op: TfliteOp) -> TfliteOp:
        """The op with states kept: a layer's of a single step, or a custom op's implicit states as last inputs."""
        if op.kind in SEQUENCES:
            shape, time = self.tensors[op.inputs[0]].shape, 0 if op.options.of(op.kind).get("TimeMajor") else 1
            if SEQUENCES[op.kind] and len(shape) == 3 and shape[time] == 1:
                return self._remembering(op, SEQUENCES[op.kind])
            self.remarks.append(f"{self._place(op)}: {BEGINS}")
            return op
        states = states_of(op, self.tensors[op.inputs[0]]) if op.kind in STATEFUL else []
        first, places = len(self.tensors), range(len(op.inputs), len(op.inputs) + len(states))
        self.tensors += states
        self.initial |= {(OWN, str(first + place).encode()): state for place, state in enumerate(states)}
        return self._remembering(replace(op, inputs=(*op.inputs, *range(first, len(self.tensors)))), places)

    def _remembering(self, op: TfliteOp, places: Sequence[int]) -> TfliteOp:
        """An op with states. The inputs at `places` become variables, with their new values as additional results."""
        for state in (op.inputs[place] for place in places):
            variable, held = (OWN, str(state).encode()), replace(self.tensors[state], value=None)
            if variable in self.current:
                raise NpukitError(f"{self._place(op)} has another op's state")
            self.begins[variable], self.current[variable] = state, len(self.tensors)
            op = replace(op, outputs=(*op.outputs, len(self.tensors)))
            self.tensors[state] = held
            self.tensors.append(replace(held, name=f"{held.name}_new"))
        return op

    def _place(self, op: TfliteOp) -> str:
        return f"{self.name}: op {op.index} ({op.kind})"

    def finished(self, main: TfliteModel, numbers: Sequence[int]) -> TfliteModel:
        """The merged model. Unchanged variables become constants, others inputs and outputs after the model's own."""
        changed = {each: begins for each, begins in self.begins.items() if self.current[each] != begins}
        for variable, begins in self.begins.items():
            if variable not in changed:
                self.tensors[begins] = replace(self.tensors[begins], value=self._held_first(variable, begins))
        states = tuple(
            StatePair(begins, self.current[each], self._held_first(each, begins)) for each, begins in changed.items()
        )
        inputs = (*(numbers[index] for index in main.inputs), *(state.input for state in states))
        outputs = (*(self._numbered(index, numbers) for index in main.outputs), *(state.output for state in states))
        return TfliteModel(tuple(self.tensors), tuple(self.ops), inputs, outputs, states, tuple(self.remarks))

    def _held_first(self, variable: Variable, begins: int) -> np.ndarray:
        """A variable's initial value: as assigned once, else real zeros for an op's state and zero bytes for others."""
        tensor, given = self.tensors[begins], self.initial.get(variable)
        if given is None or given.value is None:
            zero = tensor.quantization.zero_point if tensor.quantization and variable[0] == OWN else 0
            return np.full(tensor.shape, zero, tensor.dtype)
        if (given.dtype, given.shape) != (tensor.dtype, tensor.shape):
            raise NpukitError(f"{self.name}: a variable begins as {list(given.shape)}, not {list(tensor.shape)}")
        return given.value


MERGED: Mapping[str, Callable[[_Flat, TfliteOp, int], None]] = {
    "ASSIGN_VARIABLE": _Flat._assign_variable,
    "CALL_ONCE": _Flat._call_once,
    "IF": _Flat._branch,
    "READ_VARIABLE": _Flat._read_variable,
    COMPOSITE: _Flat._composite,
    "VAR_HANDLE": _Flat._var_handle,
    "WHILE": _Flat._loop,
}
"""Ops on graphs and variables. None of them is left in the merged graph."""


def _variable(op: TfliteOp) -> Variable:
    options = op.options.of(op.kind)
    return options.get("Container") or b"", options.get("SharedName") or b""


_SAME_IN_RELAX = """EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_NOT LOGICAL_OR MAXIMUM MINIMUM
    NOT_EQUAL"""
_COUNTED = {
    **{name: name.lower() for name in _SAME_IN_RELAX.split()},
    "ADD": "add",
    "MUL": "multiply",
    "SUB": "subtract",
}
"""Relax's names of ops for loop counters and conditions."""


STATEFUL = frozenset(
    custom_kind(f"Signal{name}")
    for name in ("Delay", "FilterBankSpectralSubtraction", "Framer", "OverlapAdd", "Stacker")
)


def _history(signal: TfliteTensor, length: int) -> np.ndarray:
    shape = (*signal.shape[:-1], length)
    check_shape(shape, "what it keeps")
    return np.zeros(shape, signal.dtype)


def _initial(op: TfliteOp, signal: TfliteTensor) -> Sequence[np.ndarray]:
    """The initial states of an op in `STATEFUL`, from first input and options."""
    options: Mapping[str, int] = options_of(op)
    match name_of(op.kind).removeprefix("Signal"):
        case "Delay":
            return [_history(signal, options["delay_length"])]
        case "Framer":  # the preceding samples, and unless prefilled the number of samples so far
            size, step = options["frame_size"], options["frame_step"]
            if options["prefill"] or size <= step:
                return [_history(signal, max(size - step, 0))]
            return [_history(signal, -(-size // step) * step - step), np.zeros(1, np.int32)]
        case "OverlapAdd":
            return [np.zeros((*signal.shape[:-2], signal.shape[-1]), signal.dtype)]
        case "Stacker":  # the last frames, and the number of waiting frames, -1 before the first frame
            frames = options["stacker_left_context"] + options["stacker_right_context"] + 1
            return [_history(replace(signal, shape=()), options["num_channels"] * frames), np.full(1, -1, np.int32)]
        case _:  # the noise
            return [np.zeros(signal.shape, signal.dtype)]


def states_of(op: TfliteOp, signal: TfliteTensor) -> list[TfliteTensor]:
    """The states of an op in `STATEFUL` with their initial values. States without elements are omitted."""
    return [
        TfliteTensor(f"{op.index}_state_{place}", value.shape, str(value.dtype), value)
        for place, value in enumerate(_initial(op, signal))
        if value.size
    ]
