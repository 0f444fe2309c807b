"""Facts about the TIR of a kernel."""
