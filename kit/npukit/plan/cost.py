"""Cycles that no engine's formula knows: what the core spends to start engines, messages and waits.

These are properties of the firmware; the board's own figures come from the board file.
"""

from __future__ import annotations

CHAIN_CYCLES = 60
"""To start a chain of an engine and to wake when it is done."""

SEND_CYCLES = 30
"""To start a chain of messages."""

WAIT_CYCLES = 30
"""To look at a flag, and again after waking."""
