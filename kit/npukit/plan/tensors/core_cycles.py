"""Cycles that no engine's formula knows: what the core spends to start engines, messages and waits.

These are properties of the firmware: `benchmarks/core/core_cycles.py` measures them. The board's own figures come from
the board file.
"""

from __future__ import annotations

BEGIN_CYCLES, END_CYCLES = 21, 31
"""Cycles from the beginning of a frame to the root's first step, and from its last one to the frame's end."""

START_CYCLES, STOP_CYCLES = 13, 13
"""Cycles from a step to the start of an engine, and from the engine's end to the next step."""

CHAIN_CYCLES = START_CYCLES + STOP_CYCLES
"""Cycles to start a chain of an engine and to wake when it is done."""

SEND_CYCLES, DOORBELL_CYCLES = 19, 5
"""Cycles to start a chain of messages; after so many of them the DMA begins."""

WAIT_CYCLES = 19
"""Cycles to look at a flag that has counted enough."""

DOZE_CYCLES, LOOK_CYCLES, WAKE_CYCLES = 30, 11, 11
"""Cycles to fall asleep at a flag that has not, to look again when another counts, and from waking to the next step."""

ROW_CYCLES = 23
"""Cycles that a row of a table takes more than a statement: two blocks of SmolLM2-135M were measured both ways."""

SIGNAL_CYCLES = 52
"""Cycles to signal one PE, in a program that is a table."""

FETCH_CYCLES = 100
"""Cycles to ask for a page of such a table: with 60 small networks in pages of a row or two take 2 % longer than is
predicted (`tests/end_to_end/test_streamed.py`)."""

RESTORE_CYCLES = 20
"""Cycles to see that states go on as they are."""

PATCH_CYCLES = 45
"""Cycles to set a field of a command in which the pieces of a layer that share it differ."""
