"""A machine-learning array with the published limits of SpiNNaker2's, as an ordinary plug-in of npukit."""

from .plugin import Mla as accelerator  # noqa: N813

__all__ = ["accelerator"]
