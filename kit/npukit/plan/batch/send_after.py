"""The parts of tensors that are sent after each op of a batch."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.plan.batch.channel_bands import Bands, Turn
from npukit.plan.emit.emitter import Chosen, every
from npukit.plan.tensors.graph import Graph


class SendAfter:
    """Bands of what is between two ops go one by one, what the second makes of them goes when it is whole.

    Where memory is short, `compact`, nothing goes sooner than the op before the one that reads it is done.
    """

    def __init__(self, graph: Graph, bands: Bands, *, low_memory: bool) -> None:
        self._graph, self._bands, self._low_memory = graph, bands, low_memory
        self._made = {op.output: index for index, op in enumerate(graph.ops)}
        self._late: dict[int, list[str]] = {}
        for op in graph.ops:
            for due in dict.fromkeys(self._after(op.output, reader) for reader in self._readers(op.output)):
                self._late.setdefault(due, []).append(op.output)

    def after(self, turn: Turn) -> Iterator[tuple[str, Chosen]]:
        """The tensors that are sent after a turn, and which of their transfers."""
        if turn.op.name in self._bands:
            yield turn.op.output, lambda transfer: turn.holds(transfer.box)
        elif turn.last and self._low_memory:
            for tensor in self._late.get(turn.index, ()):
                yield tensor, lambda transfer: self._after(transfer.source.tensor, transfer.first_reader) == turn.index
        elif turn.last:
            yield turn.op.output, every

    def _readers(self, tensor: str) -> Iterator[int]:
        """The readers of a tensor by number; the end of the frame counts as one that reads the outputs."""
        yield from self._graph.consumers[tensor]
        if tensor in self._graph.outlasting:
            yield len(self._graph.ops)

    def _after(self, tensor: str, reader: int) -> int:
        """The op after which what an op is the first to read goes: the one before it, but none that takes turns."""
        made, due = self._made[tensor], reader - 1
        while due > made and self._graph.ops[due].name in self._bands:
            due -= 1
        return max(made, due)
