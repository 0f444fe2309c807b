"""This machine: programs that npukit starts, work in processes of its own, and what the kernel lets them have."""
