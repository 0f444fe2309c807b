"""Cycles that no engine's formula knows: what the core spends to start engines and messages.

These are properties of the firmware; the board's own figures come from the board file.
"""

from __future__ import annotations

CHAIN_CYCLES = 80
"""From the end of one step to the start of the next engine's chain: look at the flag, ring the doorbell, wake."""
