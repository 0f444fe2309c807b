"""npukit: from a trained network to verified firmware on a mesh of small cores.

What `npukit.api` has is here too (`npukit.build`, `npukit.validate`, ...), and is loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from npukit.api import Options, bench, build, fit, flash, load, ops, run, validate

__all__ = ["Options", "bench", "build", "fit", "flash", "load", "ops", "run", "validate"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from npukit import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
