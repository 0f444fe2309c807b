"""The vector unit as a plug-in of npukit."""

from .plugin import Vector16 as accelerator  # noqa: N813

__all__ = ["accelerator"]
