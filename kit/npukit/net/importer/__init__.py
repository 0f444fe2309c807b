"""From a Relax module in QDQ form to a Net. The one place in net/ that knows TVM."""

from npukit.net.importer.walk import net_from_relax

__all__ = ["net_from_relax"]
