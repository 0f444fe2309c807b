"""The user's statements about a model's inputs: sizes for open shapes, and values for constant inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npukit.errors import NpukitError
from npukit.net.limits import check_shape

InputShapes = Mapping[str, tuple[int, ...] | float]
"""Statements by input name: the shape of an input, or the constant value of all elements."""


def check_input_names(model: str, names: Sequence[str], given: InputShapes) -> None:
    """Raises an error if the user names an input that the model lacks."""
    for name in given:
        if name not in names:
            raise NpukitError(f"{model} has no input {name!r}", tries=["its inputs are: " + ", ".join(names)])


def fixed_values(given: InputShapes) -> dict[str, float]:
    """The inputs with a constant value. The network does not take them."""
    return {name: said for name, said in given.items() if not isinstance(said, tuple)}


def closed_shape(model: str, name: str, stated: tuple[int, ...], given: InputShapes) -> tuple[int, ...]:
    """The shape of input `name`, with the user's open sizes. `stated`: the model's shape, 0 for an open size."""
    said = given.get(name, stated)
    shape = said if isinstance(said, tuple) else stated
    if len(shape) != len(stated) or any(was > 0 and was != now for was, now in zip(stated, shape, strict=True)):
        raise NpukitError(f"{model}: input {name!r} is {spelled(stated)}, not {spelled(shape)}")
    check_shape(shape, f"{model}: input {name!r}")
    if 0 in shape:
        raise NpukitError(
            f"{model}: input {name!r} has the open shape {spelled(shape)}",
            tries=[f"say its sizes: --input {name}:{spelled(shape)}"],
        )
    return shape


def spelled(shape: Sequence[int]) -> str:
    """1x?x96: a shape as spelled in an option, with ? for an open size."""
    return "x".join(str(size or "?") for size in shape)
