"""The import of a Relax module in QDQ form as a Net. The one place in net/ that knows TVM."""

from npukit.net.importer.walk import is_dynamic, is_float, net_and_views, net_from_relax

__all__ = ["is_dynamic", "is_float", "net_and_views", "net_from_relax"]
