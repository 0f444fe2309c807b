"""MLPerf Tiny on an Ethos-U through Arm's Vela, beside the MAC array: predicted cycles of a frame.

    python benchmarks/ethos_u.py FOLDER_OF_MODELS

A row compares about equal peaks, in MACs a cycle. Vela's figures are its own estimate of the subgraph given by npukit
(memory mode Sram_Only), plus the core's work. npukit's are predictions for the same peak in PEs of 64 MACs. The package
ethos-u-vela must be installed.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

from npukit import api

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/accelerators/ethos_u"
PEAKS = ((55, 64), (85, 256), (85, 1024))
MACS_OF_A_PE = 64


def board_of(generation: int, macs: int, folder: Path) -> str:
    """The path of a board file like the example's, with another Ethos-U."""
    text = (EXAMPLE / "ethos_u.toml").read_text()
    text = re.sub("(?m)^generation = [0-9]+", f"generation = {generation}", text)
    text = re.sub("(?m)^macs_per_cycle = [0-9]+", f"macs_per_cycle = {macs}", text)
    path = folder / f"u{generation}-{macs}.toml"
    path.write_text(text.replace('plugin = "ethos_u"', f'plugin = "{EXAMPLE / "ethos_u"}"'))
    return str(path)


def cycles(model: Path, board: str, pes: int) -> str:
    told = api.fit(model, board=board, options=api.Options(pes=pes))
    on_core = [op["op"] for op in told["ops"] if op["engine"] == "cpu" and op["predicted_cycles"]]
    beside = f" ({', '.join(on_core)} on the core)" if on_core and pes == 1 and "mesh" not in board else ""
    return f"{told['predicted']['latency_cycles']:,}{beside}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    models = parser.parse_args().models
    print("| network | peak | Ethos-U, Vela's estimate | npukit's MAC arrays |\n|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            for generation, macs in PEAKS:
                theirs = cycles(models / f"{name}.tflite", board_of(generation, macs, Path(folder)), 1)
                pes = macs // MACS_OF_A_PE
                ours = cycles(models / f"{name}.tflite", "pe-mesh", pes)
                row = f"U{generation}-{macs}: {theirs} | {pes} PE{'s' * (pes > 1)}: {ours}"
                print(f"| {name} | {macs} | {row} |", flush=True)


if __name__ == "__main__":
    main()
