"""npukit: from a trained network to verified firmware on a mesh of small cores."""

__version__ = "0.1.0"
