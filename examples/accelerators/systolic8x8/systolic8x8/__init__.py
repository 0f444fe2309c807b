"""The 8 x 8 systolic array as a plug-in of npukit."""

from .plugin import Systolic8x8 as accelerator  # noqa: N813

__all__ = ["accelerator"]
