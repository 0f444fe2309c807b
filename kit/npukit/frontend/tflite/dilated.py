"""Dilated convolutions that a converter wrote as several ops, read as single convolutions.

SPACE_TO_BATCH_ND, a convolution without padding and BATCH_TO_SPACE_ND together are a dilated convolution. Around a
one-dimensional convolution, an axis of size 1 is added between the first two ops and removed between the last two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import tflite

from npukit.frontend.tflite.fields import OpOptions
from npukit.frontend.tflite.model import TfliteModel, TfliteOp, TfliteTensor

TO_BATCH, FROM_BATCH = "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"
CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
SHAPE_OPS = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")
_PLAIN = {"Padding": tflite.Padding.VALID, **dict.fromkeys(("StrideH", "StrideW"), 1)}
_UNDILATED = dict.fromkeys(("DilationHFactor", "DilationWFactor"), 1)


def with_dilated(model: TfliteModel) -> TfliteModel:
    """The model with a dilated convolution in place of the last op of each sequence."""
    return _Search(model).model()


@dataclass
class _Search:
    given: TfliteModel
    tensors: list[TfliteTensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        ops = self.given.ops
        self.tensors = list(self.given.tensors)
        self.reads = Counter([index for op in ops for index in op.inputs] + list(self.given.outputs))
        self.makers = {index: place for place, op in enumerate(ops) for index in op.outputs}
        self.readers = {index: place for place, op in enumerate(ops) for index in op.inputs}

    def model(self) -> TfliteModel:
        ops: dict[int, list[TfliteOp]] = {place: [op] for place, op in enumerate(self.given.ops)}
        for place, op in enumerate(self.given.ops):
            before, behind = self._before(place), self._behind(place)
            if op.kind in CONVOLUTIONS and before and behind and len(before) == len(behind):
                places = [*before, place, *behind, *self._added(behind)]
                made = self._dilated([self.given.ops[each] for each in places], len(before))
                ops |= ({each: [] for each in places} | {places[-1]: made}) if made else {}
        return replace(self.given, tensors=tuple(self.tensors), ops=tuple(op for each in ops.values() for op in each))

    def _before(self, place: int) -> list[int]:
        """The places of SPACE_TO_BATCH_ND and perhaps a reshape before a convolution; empty if there are none."""
        found: list[int] = []
        while len(found) < 2:
            source = self.given.ops[place].inputs[0]
            if self.reads[source] != 1 or source not in self.makers:
                return []
            place = self.makers[source]
            found.insert(0, place)
            if self.given.ops[place].kind not in SHAPE_OPS:
                break
        return found if self.given.ops[place].kind == TO_BATCH else []

    def _behind(self, place: int) -> list[int]:
        """The places of perhaps a reshape and BATCH_TO_SPACE_ND behind a convolution; empty if there are none."""
        found: list[int] = []
        while len(found) < 2:
            made = self.given.ops[place].outputs[0]
            if (
                self.reads[made] != 1
                or made not in self.readers
                or self.given.ops[self.readers[made]].inputs[0] != made
            ):
                return []
            place = self.readers[made]
            found.append(place)
            if self.given.ops[place].kind not in SHAPE_OPS:
                break
        return found if self.given.ops[place].kind == FROM_BATCH else []

    def _added(self, behind: list[int]) -> list[int]:
        """The place of an addition of each channel's constant behind lines; empty if there is none. The addition can
        precede the removal of the lines' axis, and then become the convolution's bias."""
        made = self.given.ops[behind[-1]].outputs[0]
        place = self.readers.get(made, 0) if self.reads[made] == 1 and len(behind) > 1 else 0
        op = self.given.ops[place]
        values = [self.tensors[index].value for index in op.inputs[1:]]
        is_bias = op.kind == "ADD" and op.inputs[0] == made and values[0] is not None and values[0].ndim < 2
        return [place] if is_bias else []

    def _dilated(self, ops: list[TfliteOp], count: int) -> list[TfliteOp]:
        """The ops as a dilated convolution; empty for any other ops. `count`: ops before the convolution."""
        cut, op, joined, added = ops[0], ops[count], ops[2 * count], ops[2 * count + 1 :]
        moves = [each for each in ops[: 2 * count + 1] if each is not op]
        if any(op.options.get(name) != value for name, value in {**_PLAIN, **_UNDILATED}.items()):
            return []
        ends = [(self.tensors[each.inputs[0]], self.tensors[each.outputs[0]]) for each in moves]
        before, behind = self._amounts(cut), self._amounts(joined)
        if before is None or behind is None or any(one.quantization != other.quantization for one, other in ends):
            return []
        (sides, around), crops = before, behind[1]
        kept = around - crops
        if not np.array_equal(sides, behind[0]) or kept.min() < 0:
            return []
        if len(sides) == 2:
            return [_with(op, cut.inputs[0], joined.outputs[0], sides.tolist(), kept.tolist())]
        return self._of_lines([cut, op, joined, *added], int(sides[0]), kept[0].tolist())

    def _of_lines(self, ops: list[TfliteOp], side: int, kept: list[int]) -> list[TfliteOp]:
        """A one-dimensional convolution, between reshapes to and from images of a single row or column."""
        cut, op, joined, *added = ops
        source, result = cut.inputs[0], joined.outputs[0]
        rows, columns = self.tensors[op.inputs[0]].shape[1:3]
        if 1 not in (rows, columns):
            return []
        axis = 1 if rows == 1 else 2
        _, length, channels = self.tensors[result].shape
        place, data = self._constant(np.array(axis, np.int32)), self._between(source, "images")
        made, shape = self._between(op.outputs[0], "made"), self._constant(np.array([-1, length, channels], np.int32))
        pair, padding = ([1, side], [[0, 0], kept]) if axis == 1 else ([side, 1], [kept, [0, 0]])
        found = [TfliteOp(op.index, "EXPAND_DIMS", (source, place), (data,), OpOptions())]
        found.append(_with(op, data, made, pair, padding))
        for each in added:
            result, given, made = each.outputs[0], made, self._between(each.outputs[0], "sum")
            found.append(replace(each, inputs=(given, *each.inputs[1:]), outputs=(made,)))
        return [*found, TfliteOp(op.index, "RESHAPE", (made, shape), (result,), OpOptions())]

    def _constant(self, value: np.ndarray) -> int:
        self.tensors.append(TfliteTensor("", value.shape, str(value.dtype), value))
        return len(self.tensors) - 1

    def _between(self, like: int, name: str) -> int:
        """A new tensor with the numbers of another, in a shape that is found when the model is emitted."""
        given = self.tensors[like]
        self.tensors.append(replace(given, name=f"{given.name}_{name}", shape=(), open=(), has_shape=False))
        return len(self.tensors) - 1

    def _amounts(self, op: TfliteOp) -> tuple[np.ndarray, np.ndarray] | None:
        """The sides of a block, and padding or cropping; None unless constant and for all axes of images or lines."""
        if len(op.inputs) != 3 or min(op.inputs) < 0:
            return None
        count = len(self.tensors[op.inputs[0]].shape) - 2
        sides, around = (self.tensors[index].value for index in op.inputs[1:])
        if (
            sides is None
            or around is None
            or count not in (1, 2)
            or (sides.shape, around.shape) != ((count,), (count, 2))
        ):
            return None
        return sides, around


def _with(op: TfliteOp, source: int, result: int, sides: list[int], around: list[list[int]]) -> TfliteOp:
    """The convolution of other data, dilated by the sides of a block."""
    (top, bottom), (left, right) = around
    inputs = (source, *op.inputs[1:])
    return replace(
        op, inputs=inputs, outputs=(result,), dilation=(sides[0], sides[1]), padding=(top, left, bottom, right)
    )
