"""Constants in DRAM, streamed to the PEs in time for their use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.accel.interface import Address, Call, Commands, ConstantArray, Field, Lowered, Routines, Struct
from npukit.codegen.constants import alignment
from npukit.plan.ir.plan import Plan


@dataclass(frozen=True)
class DramPiece:
    """The constants of a tile in DRAM. `name`: the name of the buffer there."""

    name: str
    data: bytes


def streamed_piece(name: str, constants: Sequence[ConstantArray]) -> DramPiece:
    data = bytearray()
    for offset, array in _laid_out(constants):
        data += bytes(offset - len(data)) + np.ascontiguousarray(array.values).tobytes()
    return DramPiece(name, bytes(data))


def with_constants_in(place: Address, lowered: Lowered) -> Lowered:
    """The lowered tile with the constants at a place in the arena instead of the image."""
    moved = {a.symbol: replace(place, offset=place.offset + offset) for offset, a in _laid_out(lowered.constants)}

    def there(field: Field) -> Field:
        if isinstance(field, Address) and field.symbol in moved:
            return replace(moved[field.symbol], offset=moved[field.symbol].offset + field.offset)
        return field

    code = lowered.code
    if isinstance(code, Routines):
        calls = (replace(call, arguments=tuple(map(there, call.arguments))) for call in code.calls)
        return Lowered((), Routines(tuple(calls)))
    if isinstance(code, Call):
        return Lowered((), replace(code, arguments=tuple(map(there, code.arguments))))
    structs = (Struct(tuple((name, there(value)) for name, value in struct.fields)) for struct in code.structs)
    return Lowered((), Commands(tuple(structs)))


def dram_image(plan: Plan, pieces: Iterable[DramPiece]) -> bytes:
    """The contents of DRAM before the first frame: every piece at the offset of its buffer in the plan."""
    data: dict[str, bytes] = {}
    for piece in pieces:
        assert data.setdefault(piece.name, piece.data) == piece.data, f"{piece.name} are not the same for all"
    constants = [buffer for buffer in plan.dram if not buffer.tensor]
    image = bytearray(max((buffer.offset + buffer.bytes for buffer in constants), default=0))
    for buffer in constants:
        piece = data[buffer.name]
        assert len(piece) <= buffer.bytes, f"{buffer.name} has {len(piece)} bytes, the plan {buffer.bytes}"
        image[buffer.offset : buffer.offset + len(piece)] = piece
    return bytes(image)


def _laid_out(constants: Sequence[ConstantArray]) -> Iterator[tuple[int, ConstantArray]]:
    """Each array with its offset, in the order of descending alignment."""
    offset = 0
    for array in sorted(constants, key=lambda array: -alignment(array)):
        offset = -(-offset // alignment(array)) * alignment(array)
        yield offset, array
        offset += array.values.nbytes
