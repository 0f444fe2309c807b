"""This machine: programs that npukit starts, work in separate processes, and limits set by the kernel."""
