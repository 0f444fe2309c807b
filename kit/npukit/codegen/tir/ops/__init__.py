"""The core's kernels, one module for each family of ops, as TIR.

They equal `net/reference` bit for bit. Their parameters stand in the order of `accel.cpu.Cpu.lower`.
"""
