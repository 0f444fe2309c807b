"""The templates in the folder `templates`, and their environment."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from npukit.data import data_folder


@cache
def templates_in(folder: str, *, html: bool = False) -> Environment:
    """The environment with the templates of `templates/FOLDER`, each compiled once.

    Escapes values in HTML only.
    """
    return Environment(
        loader=FileSystemLoader(data_folder("templates") / folder),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=html,
    )
