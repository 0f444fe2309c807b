"""The statements of a user about a model's inputs: shapes that are open, numbers that never change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npukit.errors import NpukitError
from npukit.net.limits import check_shape

InputShapes = Mapping[str, tuple[int, ...] | float]
"""The shape of each input that the model leaves open, or the number that all of it is for good, by name."""


def check_input_names(model: str, names: Sequence[str], given: InputShapes) -> None:
    """A shape for an input that the model has not is a slip of the user's."""
    for name in given:
        if name not in names:
            raise NpukitError(f"{model} has no input {name!r}", tries=["its inputs are: " + ", ".join(names)])


def fixed_values(given: InputShapes) -> dict[str, float]:
    """The inputs that are a number for good, which a network does not take."""
    return {name: said for name, said in given.items() if not isinstance(said, tuple)}


def closed_shape(model: str, name: str, stated: tuple[int, ...], given: InputShapes) -> tuple[int, ...]:
    """The shape of input `name`, which states 0 where it is open, with the open sizes as the user gives them."""
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
    """1x?x96: as an option has it, with a mark for what is open."""
    return "x".join(str(size or "?") for size in shape)
