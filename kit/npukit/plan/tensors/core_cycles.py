"""Cycles that no engine's formula knows: what the core spends to start engines, messages and waits.

These are properties of the firmware; the board's own figures come from the board file.
"""

from __future__ import annotations

CHAIN_CYCLES = 60
"""Cycles to start a chain of an engine and to wake when it is done."""

SEND_CYCLES = 30
"""Cycles to start a chain of messages."""

WAIT_CYCLES = 30
"""Cycles to look at a flag, and again after waking."""

ROW_CYCLES = 40
"""Cycles from a row to the next of a program that is a table."""

SIGNAL_CYCLES = 77
"""Cycles to signal one PE, in a program that is a table."""

RESTORE_CYCLES = 20
"""Cycles to see that states go on as they are."""

PATCH_CYCLES = 45
"""Cycles to set a field of a command in which the pieces of a layer that share it differ."""
