"""Cycles outside the engines' formulas: the core's time to start engines, messages and waits.

These are properties of the firmware, measured by `benchmarks/core/core_cycles.py`. The board's own figures come from
the board file.
"""

from __future__ import annotations

BEGIN_CYCLES, END_CYCLES = 21, 31
"""Cycles from the beginning of a frame to the root's first step, and from the root's last step to the frame's end."""

START_CYCLES, STOP_CYCLES = 13, 13
"""Cycles from a step to the start of an engine, and from the engine's end to the next step."""

CHAIN_CYCLES = START_CYCLES + STOP_CYCLES
"""Cycles to start a chain of an engine, and to wake at its end."""

SEND_CYCLES, DOORBELL_CYCLES = 19, 5
"""Cycles to start a chain of messages, and cycles until the DMA begins."""

WAIT_CYCLES = 19
"""Cycles to check a flag with a sufficient count."""

DOZE_CYCLES, LOOK_CYCLES, WAKE_CYCLES = 30, 11, 11
"""Cycles to fall asleep at a flag with an insufficient count, to look again when another flag counts, and from waking
to the next step."""

ROW_CYCLES = 23
"""Additional cycles of a table's row over a statement: two blocks of SmolLM2-135M were measured both ways."""

SIGNAL_CYCLES = 52
"""Cycles to signal one PE from a table."""

FETCH_CYCLES = 100
"""Cycles to request a page of a table. With 60, small networks in pages of a row or two take 2 % longer than predicted
(`tests/end_to_end/test_streamed.py`)."""

RESTORE_CYCLES = 20
"""Cycles to check that states need no reset."""

PATCH_CYCLES = 45
"""Cycles to set one field of a command shared by the pieces of a layer, where the pieces differ in the field."""
