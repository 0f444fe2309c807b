"""Networks with MAC arrays and network in RTL, beside the C models with the cycles of the hardware manual.

    python benchmarks/rtl/manual.py [FOLDER_OF_MODELS] [--frames 2] [--only TEXT] [--write]

`works`, `messages`: compared by `npukit validate --on rtl` in bytes and cycles. `seconds`: of the validation. Exit
status 1 if a figure differs. `--write` writes the page manual.md.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.state import commit

from npukit import api
from npukit.data import data_folder
from npukit.emulator.rtl import rtl_libraries
from npukit.errors import NpukitError
from npukit.measure.bench import Bench

DIGITS = Path("examples/digits/digits_int8.tflite")
KWS, AD = "kws_ref_model.tflite", "ad01_int8.tflite"
IC, VWW = "pretrainedResnet_quant.tflite", "vww_96_int8.tflite"
TWO_CHIPS = """like = "pe-mesh"
name = "two-chips"
summary = "two chips of pe-mesh"
runs_on = ["emulator"]
[mesh]
chips = { columns = 2, rows = 1 }
pes = { columns = 4, rows = 4 }
"""
PAGE = Path(__file__).with_suffix(".md")
ABOUT = """# Networks in RTL beside the manual

Cycles of whole networks with routers, DMAs and MAC arrays in SystemVerilog, beside the emulator's
models of the manual. Measured at {commit} by `python benchmarks/rtl/manual.py FOLDER --write`, which
says what the columns are."""
_CYCLES = ("latency: manual", "RTL", "interval: manual", "RTL", "difference")
HEADINGS = ("network", "frames", *_CYCLES, "works", "messages", "seconds")


@dataclass(frozen=True)
class Row:
    """A network to compare. `model`: a file in the folder of models, or digits."""

    title: str
    model: str | Path
    pes: int
    objective: str = "latency"
    board: str = "pe-mesh"


ROWS = (
    Row("digits, 1 PE", DIGITS, 1),
    Row("digits, 4 PEs", DIGITS, 4),
    Row("digits, 16 PEs", DIGITS, 16),
    Row("digits, 16 PEs, a batch", DIGITS, 16, "throughput"),
    Row("digits, two chips", DIGITS, 32, "throughput", TWO_CHIPS),
    Row("KWS, 1 PE", KWS, 1),
    Row("KWS, 16 PEs", KWS, 16),
    Row("AD, 16 PEs", AD, 16),
    Row("IC, 16 PEs", IC, 16),
    Row("VWW, 16 PEs", VWW, 16),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="?", help="folder of further networks")
    parser.add_argument("--frames", type=int, default=2)
    parser.add_argument("--only", default="", help="rows with this text in their title")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    _compile()
    lines = [f"| {' | '.join(HEADINGS)} |\n|---|{'--:|' * (len(HEADINGS) - 1)}"]
    print(*lines)
    for row in ROWS:
        if given.only in row.title:
            lines.append(_line(row, given.models, given.frames))
            print(lines[-1], flush=True)
    if given.write:
        PAGE.write_text("\n".join((ABOUT.format(commit=commit()), "", *lines, "")))
    sys.exit(1 if any("differs" in line or "| NO" in line for line in lines[1:]) else 0)


def _compile() -> None:
    begun = time.monotonic()
    try:
        rtl_libraries(api.load_board("pe-mesh"), {})
    except NpukitError as error:
        sys.exit("\n  ".join((error.message, *error.facts, *error.tries)))
    print(f"RTL compiled, or found compiled, in {time.monotonic() - begun:.0f} s\n")


def _line(row: Row, models: Path | None, frames: int) -> str:
    """A row of the table."""
    model = row.model if isinstance(row.model, Path) else models / row.model if models else None
    if model is None or not model.is_file():
        return f"| {row.title} | skipped: {row.model} is in no given folder |"
    try:
        with tempfile.TemporaryDirectory() as folder:
            return f"| {' | '.join((row.title, *_cells(row, model, Path(folder), frames)))} |"
    except NpukitError as error:
        return f"| {row.title} | differs: {error.message} |"


def _cells(row: Row, model: Path, folder: Path, frames: int) -> Iterator[str]:
    (folder / "board.toml").write_text(row.board)
    board = row.board if (data_folder("boards") / f"{row.board}.toml").is_file() else str(folder / "board.toml")
    options = api.Options(pes=row.pes, objective=row.objective)
    built = api.build(model, board=board, output=folder / "build", options=options)
    yield f"{built.plan().frames_of_all}"
    rtl = api.bench(built.folder, on="rtl", frames=frames)
    manual = rtl.manual
    assert manual is not None
    for name in ("latency_cycles", "interval_cycles"):
        yield from (f"{getattr(each, name):,}" for each in (manual, rtl))
    yield "none" if _figures(rtl) == _figures(manual) else "NO"
    begun = time.monotonic()
    found = api.validate(built.folder, on="rtl", cases=1)
    yield f"{found.rtl_works:,}" if found.passed else "NO"
    yield f"{found.rtl_messages:,}"
    yield f"{time.monotonic() - begun:.0f}"


def _figures(measured: Bench) -> tuple[object, ...]:
    """All cycles of a measurement."""
    layers = [(layer.name, layer.cycles, layer.npu_cycles) for layer in measured.layers]
    return measured.latency_cycles, measured.interval_cycles, layers, measured.pes, measured.frame


if __name__ == "__main__":
    main()
