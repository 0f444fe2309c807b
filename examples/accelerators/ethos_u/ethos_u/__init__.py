"""Arm's Ethos-U as a plug-in of npukit, through Arm's compiler Vela."""

from .plugin import EthosU as accelerator  # noqa: N813

__all__ = ["accelerator"]
