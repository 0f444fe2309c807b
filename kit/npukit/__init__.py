"""npukit: from a trained network to verified firmware on a mesh of small cores.

The names of `npukit.api` are also attributes of the package (`npukit.build`, `npukit.validate`, ...). The first access
imports the module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npukit.api import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    api = import_module("npukit.api")
    if name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    """The public names of `npukit.api` (functions, options and errors), for completion."""
    return sorted({"__version__", *import_module("npukit.api").__all__})
