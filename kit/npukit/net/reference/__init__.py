"""The integer reference. Every kernel, NPU model and mesh must match its results bit for bit."""

from npukit.net.reference.interpreter import evaluate, run_reference

__all__ = ["evaluate", "run_reference"]
