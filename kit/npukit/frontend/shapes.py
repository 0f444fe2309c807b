"""The shapes that a user gives for inputs that a model leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from npukit.errors import NpukitError

InputShapes = Mapping[str, tuple[int, ...]]
"""The shape of each input that the model leaves open, by name."""


def check_input_names(model: str, names: Sequence[str], given: InputShapes) -> None:
    """A shape for an input that the model has not is a slip of the user's."""
    for name in given:
        if name not in names:
            raise NpukitError(f"{model} has no input {name!r}", tries=["its inputs are: " + ", ".join(names)])
