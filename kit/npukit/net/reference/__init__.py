"""The integer reference: what every kernel, NPU model and mesh must equal bit for bit."""

from npukit.net.reference.interpreter import evaluate, run_reference

__all__ = ["evaluate", "run_reference"]
