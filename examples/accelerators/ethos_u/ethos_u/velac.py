"""velac OPTIONS... SUBGRAPH COMPILED: runs Arm's Vela with these options and converts the result for npukit.

The blob is described in ethos_u.md.
"""

from __future__ import annotations

import base64
import csv
import json
import struct
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

MAGIC, HEADER_WORDS, ENDS = 0x554F4854, 16, 5
ALIGNMENT = 16
STREAM_ACTION = 2
"""The command stream's action in Vela's list of actions for Arm's driver. The stream's words follow it."""


def main() -> None:
    *options, source, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        answer = _compiled(options, Path(source), Path(folder))
    Path(target).write_text(json.dumps({"format": "npukit-blob", "version": 1, **answer}), encoding="utf-8")


def _compiled(options: list[str], source: Path, folder: Path) -> dict[str, Any]:
    if find_spec("ethosu") is None:
        sys.exit("Vela is not here: pip install ethos-u-vela")
    vela = [sys.executable, "-P", "-m", "ethosu.vela"]
    command = [*vela, str(source), *options, "--output-dir", str(folder), "--output-format", "raw"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit((done.stderr or done.stdout)[-400:])
    made = next(iter(folder.glob("*_vela.npz")), None)
    if made is None:
        return {"refusal": f"Vela leaves a part of it to a CPU: {_warning(done.stdout)}"}
    summary = next(iter(csv.DictReader(next(folder.glob("*_summary_*.csv")).open())))
    with np.load(made, allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in arrays.files if not key.endswith("_quantization")}
    if len(found["input_offset"]) + len(found["output_offset"]) > ENDS:
        return {"refusal": f"the driver has room for {ENDS} inputs and outputs"}
    return {
        "blob": base64.b64encode(_blob(found)).decode(),
        "cycles": round(float(summary["cycles_total"])),
        "scratch_bytes": int(found["scratch_size"]),
        "arena": [offset for offset, _ in _ends(found)],
    }


def _warning(said: str) -> str:
    return next((line.strip() for line in said.splitlines() if line.startswith("Warning")), "it does not say why")


def _blob(found: dict[str, np.ndarray]) -> bytes:
    """The header's words, the command stream, the weights."""
    stream, weights = _stream(found["cmd_data"].tobytes()), found["weight_data"].tobytes()
    start = 4 * HEADER_WORDS
    behind, ends = start + _up(len(stream)), _ends(found)
    inputs = len(found["input_offset"])
    words = [MAGIC, start, len(stream), behind, inputs, len(ends) - inputs, *(word for end in ends for word in end)]
    header = struct.pack(f"<{HEADER_WORDS}I", *words, *[0] * (HEADER_WORDS - len(words)))
    return header + stream.ljust(_up(len(stream)), b"\0") + weights.ljust(_up(len(weights)), b"\0")


def _ends(found: dict[str, np.ndarray]) -> list[tuple[int, int]]:
    """Offset in the arena and bytes of each input, then of the output."""
    return [
        (int(offset), int(np.prod(shape)) * int(size))
        for side in ("input", "output")
        for offset, shape, size in zip(
            found[f"{side}_offset"], found[f"{side}_shape"], found[f"{side}_elem_size"], strict=True
        )
    ]


def _stream(payload: bytes) -> bytes:
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    at = 1  # after the name of the format
    while at < len(words):
        if words[at] & 0xFF == STREAM_ACTION:
            length = words[at] >> 16 | (words[at] >> 8 & 0xFF) << 16
            return payload[4 * (at + 1) : 4 * (at + 1 + length)]
        at += 3 if words[at] & 0xFF == 1 else 1  # two words follow the configuration
    sys.exit("Vela has left no command stream")


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


if __name__ == "__main__":
    main()
