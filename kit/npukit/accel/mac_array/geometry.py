"""Operands as members of a command."""

from __future__ import annotations

from npukit.accel.geometry import Plane
from npukit.accel.interface import Field, Operand


def placed(prefix: str, operand: Operand) -> tuple[tuple[str, Field], ...]:
    """Address, size and strides of an operand as members of a command."""
    plane = Plane.of(operand.box)
    return (
        (prefix, operand.address),
        (f"{prefix}_height", plane.height),
        (f"{prefix}_width", plane.width),
        (f"{prefix}_row_stride", operand.row_stride),
        (f"{prefix}_pixel_stride", operand.pixel_stride),
        (f"{prefix}_channels", plane.channels),
    )
