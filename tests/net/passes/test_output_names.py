"""Output tensors get the model's own names."""

from __future__ import annotations

import numpy as np

from npukit.net.net import Net, Op, fuse
from npukit.net.ops import Lookup
from npukit.net.passes.output_names import with_output_names
from npukit.net.tensor import Tensor

TABLE = np.arange(256, dtype=np.uint8).view(np.int8)


def chain(*outputs: str) -> Net:
    """Two lookups, one after the other: `given` to `lookup_0` to `lookup_1`."""
    tensors = {name: Tensor(name, (1, 4), "int8") for name in ("given", "lookup_0", "lookup_1")}
    tensors["table"] = Tensor("table", (256,), "int8")
    ops = (
        Op("lookup_0", Lookup(), ("given", "table"), ("lookup_0",)),
        Op("lookup_1", Lookup(), ("lookup_0", "table"), ("lookup_1",)),
    )
    return Net("chain", ("given",), outputs, ops, tensors, {"table": TABLE})


def test_a_tensor_is_renamed_wherever_it_is_read() -> None:
    net = with_output_names(chain("lookup_0", "lookup_1"), ["middle", "end/scores:0"])
    assert net.outputs == ("middle", "end_scores_0")
    assert [(op.name, op.inputs[0], op.output) for op in net.ops] == [
        ("lookup_0", "given", "middle"),
        ("lookup_1", "middle", "end_scores_0"),
    ]
    assert net.tensor("middle").name == "middle"
    assert "lookup_0" not in net.tensors


def test_names_that_are_taken_get_a_number() -> None:
    net = with_output_names(chain("lookup_0", "lookup_1"), ["given", "given"])
    assert net.outputs == ("given_1", "given_2")


def test_an_input_and_an_output_given_twice_keep_their_names() -> None:
    assert with_output_names(chain("given", "lookup_1"), ["same", "end"]).outputs == ("given", "end")
    assert with_output_names(chain("lookup_1", "lookup_1"), ["one", "two"]).outputs == ("lookup_1", "lookup_1")


def test_outputs_without_a_name_keep_theirs() -> None:
    assert with_output_names(chain("lookup_0", "lookup_1"), ["", "end"]).outputs == ("lookup_0", "end")
    assert with_output_names(chain("lookup_1"), []).outputs == ("lookup_1",)


def test_parts_of_a_fused_op_are_renamed() -> None:
    whole = chain("lookup_1")
    net = with_output_names(whole.with_ops((fuse(whole.ops),)), ["end"])
    assert net.ops[0].output == "end"
    assert [part.output for part in net.ops[0].parts] == ["lookup_0", "end"]
