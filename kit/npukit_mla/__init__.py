"""A machine-learning array after what is public of SpiNNaker2's, as a plug-in of npukit like any vendor's."""

from .plugin import Mla as accelerator  # noqa: N813

__all__ = ["accelerator"]
