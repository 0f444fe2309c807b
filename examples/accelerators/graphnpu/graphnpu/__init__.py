"""The graph NPU as a plug-in of npukit."""

from .plugin import GraphNpu as accelerator  # noqa: N813

__all__ = ["accelerator"]
