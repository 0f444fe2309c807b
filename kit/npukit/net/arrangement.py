"""The placement of a tensor's elements in memory with strides, padding or an offset value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Repeat:
    """A repetition: `count` times, `stride` bytes apart."""

    count: int
    stride: int


ONCE = Repeat(1, 0)


@dataclass(frozen=True)
class Arrangement:
    """A tensor in `bytes` of memory, its first element at `origin`, neighbours along each axis `strides` bytes apart.
    The stored value, of type `dtype`, is the element minus `subtracted`."""

    bytes: int
    origin: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    subtracted: int = 0

    def store(self, values: np.ndarray, border: int | None = None) -> np.ndarray:
        """The memory that holds `values`. Bytes between elements are 0, or hold the value `border`."""
        memory = np.zeros(self.bytes, np.uint8)
        if border is not None:
            memory.view(self.dtype)[:] = border - self.subtracted
        view = np.ndarray(self.shape, self.dtype, memory.data, self.origin, self.strides)
        view[...] = (values.reshape(self.shape).astype(np.int64) - self.subtracted).astype(self.dtype)
        return memory

    def rows(self) -> tuple[int, tuple[Repeat, ...]]:
        """The element bytes by ascending address: bytes per contiguous row, and repetitions, innermost first."""
        row_bytes = np.dtype(self.dtype).itemsize
        loops: list[Repeat] = []
        for stride, size in sorted(zip(self.strides, self.shape, strict=True)):
            if size == 1:
                continue
            if not loops and stride == row_bytes:
                row_bytes *= size
            elif loops and loops[-1].count * loops[-1].stride == stride:
                loops[-1] = Repeat(loops[-1].count * size, loops[-1].stride)
            else:
                loops.append(Repeat(size, stride))
        return row_bytes, tuple(loops)

    def payload(self, values: np.ndarray) -> bytes:
        """The element bytes in ascending address order, without gaps."""
        memory = self.store(values)
        row_bytes, loops = self.rows()
        inner, outer = (*loops, ONCE, ONCE)[:2]
        starts = (
            self.origin + plane * outer.stride + row * inner.stride
            for plane in range(outer.count)
            for row in range(inner.count)
        )
        return b"".join(memory[start : start + row_bytes].tobytes() for start in starts)
