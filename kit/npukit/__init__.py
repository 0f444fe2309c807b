"""npukit: from a trained network to verified firmware on a mesh of small cores.

The names of `npukit.api` are also attributes of the package (`npukit.build`, `npukit.validate`, ...). The first access
imports the module.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npukit.api import Network as Network
    from npukit.api import NpukitError as NpukitError
    from npukit.api import Options as Options
    from npukit.api import bench as bench
    from npukit.api import build as build
    from npukit.api import emulate as emulate
    from npukit.api import export as export
    from npukit.api import fit as fit
    from npukit.api import flash as flash
    from npukit.api import generate as generate
    from npukit.api import load as load
    from npukit.api import ops as ops
    from npukit.api import run as run
    from npukit.api import serve as serve
    from npukit.api import trace as trace
    from npukit.api import tune as tune
    from npukit.api import validate as validate
    from npukit.api import write_report as write_report

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    api = import_module("npukit.api")
    if name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    """The public names of `npukit.api` (functions, options and errors), for completion."""
    return sorted({"__version__", *import_module("npukit.api").__all__})
