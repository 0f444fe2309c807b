"""A token of a language model of seeded weights, resident on chips of 152 PEs: cycles, every tile exact.

    PYTHONPATH=kit:tests:. python benchmarks/language_model.py --blocks 1 --chips 1 [--width 512] [--tokens 128]

The blocks are LLaMA's: RMS norms, rotary embeddings, a gate of SiLU, keys and values of the last tokens kept on the
PEs; the first frame, which sets these to zero, is not counted. The sizes are those of TinyLlama-42M as Bochem et al.
run it (arXiv 2412.04372): 512 numbers a token, 8 heads, feed-forward layers of 2048, 8 blocks. Chips are in one row,
and a border carries `--link` bytes a cycle each way.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from benchmarks.state import commit

from end_to_end.language_models import Sizes, save_model, save_samples
from npukit import api
from npukit.board.board import load_board

BOARD = """
like = "pe-mesh"
name = "chips"
summary = "Chips of 152 PEs in a row"
[mesh]
chips = {{ columns = {chips}, rows = 1 }}
pes = {{ columns = 19, rows = 8 }}
[noc]
{noc}
"""
HEADER = ("blocks", "chips", "PEs", "weights", "predicted", "emulated", "difference", "us a token", "seconds to build")
CLOCK_MHZ = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--chips", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--link", type=int, default=2)
    given = parser.parse_args()
    print(f"| {' | '.join((*HEADER, 'peak MB', 'commit'))} |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for chips in given.chips:
        sizes = Sizes(given.width, 8, 4 * given.width, given.blocks, given.tokens)
        print(
            f"| {given.blocks} | {chips} | {' | '.join(columns(sizes, chips, given.link))} | {commit()} |", flush=True
        )


def noc_lines(link: int) -> str:
    """The lines of pe-mesh's network-on-chip, but for the links between chips."""
    noc = load_board("pe-mesh").noc
    assert noc is not None
    values = {**noc.model_dump(), "chip_links_per_border": 1, "chip_link_bytes_per_cycle": link}
    return "\n".join(f"{key} = {value}" for key, value in values.items())


def columns(sizes: Sizes, chips: int, link: int) -> Iterator[str]:
    """The columns of a model on so many chips."""
    with TemporaryDirectory() as folder:
        model, samples, board, out = (
            Path(folder) / name for name in ("llama.onnx", "samples.npz", "chips.toml", "out")
        )
        states = save_model(model, sizes)
        save_samples(samples, sizes)
        board.write_text(BOARD.format(chips=chips, noc=noc_lines(link)))
        options = api.Options(calibration=samples, io="int8", states=tuple(states.items()), pes=152 * chips)
        begun = process_time()
        built = api.build(model, board=str(board), output=out, options=options)
        taken = process_time() - begun
        found = api.validate(out)
        assert found.passed, found.mismatches
        measured = api.bench(out)
    cycles, predicted = measured.interval_cycles or 0, measured.predicted_latency_cycles
    weights = sum(op["macs"] for op in built.manifest.summary["ops"] if op["op"] in ("dense", "fused"))
    yield from (
        str(len(measured.pes)),
        f"{weights:,}",
        f"{predicted:,}",
        f"{cycles:,}",
        f"{predicted / cycles - 1:+.1%}",
    )
    yield from (f"{cycles / CLOCK_MHZ:.0f}", f"{taken:.0f}")
    yield f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,}"


if __name__ == "__main__":
    main()
