"""The core's kernels as TIR, a module for each family of ops.

The kernels equal `net/reference` bit for bit. Parameters follow the order of `accel.cpu.Cpu.lower`.
"""
