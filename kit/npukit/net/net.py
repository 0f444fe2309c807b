"""Net: the integer network every later part works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from npukit.net.ops import Attributes
from npukit.net.tensor import Tensor


@dataclass(frozen=True)
class Op:
    """One operation. `attributes` says of which kind; `engine` runs it, `reason` says why no accelerator does."""

    name: str
    attributes: Attributes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    engine: str = "cpu"
    reason: str = ""

    @property
    def kind(self) -> str:
        return self.attributes.kind

    @property
    def output(self) -> str:
        """The one output of an op that has one."""
        (output,) = self.outputs
        return output

    def placed(self, engine: str, reason: str = "") -> Op:
        return replace(self, engine=engine, reason=reason)


@dataclass(frozen=True)
class Net:
    """Ops in an order in which they can run; tensors and constants by name.

    Activations are NHWC. `inputs` and `outputs` are in the model's order.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[Op, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __str__(self) -> str:
        from npukit.net.text import print_net

        return print_net(self)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def constant(self, op: Op, index: int) -> np.ndarray | None:
        """The value of an op's input, if it has that input and it is constant."""
        return self.constants.get(op.inputs[index]) if index < len(op.inputs) else None

    def activations(self, op: Op) -> Iterator[str]:
        """The op's inputs that are not constants."""
        return (name for name in op.inputs if name not in self.constants)

    def with_ops(self, ops: tuple[Op, ...]) -> Net:
        return replace(self, ops=ops)
