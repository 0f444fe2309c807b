"""Importer of Relax modules in QDQ form. No other package in net/ depends on TVM."""

from npukit.net.importer.walk import is_dynamic, is_float, net_and_views, net_from_relax

__all__ = ["is_dynamic", "is_float", "net_and_views", "net_from_relax"]
