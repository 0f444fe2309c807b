"""Updates the newcomer's pages: the output of their commands, and tables of benchmark results.

After an intended change: PYTHONPATH=kit:tests:. python tests/docs/pages.py [PAGE...]

Outputs are those of npukit's own compiler, because arm-none-eabi-gcc differs between machines.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from signal import SIG_DFL, SIGINT, signal
from subprocess import DEVNULL, PIPE
from unittest import mock

import numpy as np
from benchmarks import golden_metrics, quantization, scaling, tutorial
from benchmarks.core import cortex_m4
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit import api, tools
from npukit.board.cores import CORTEX_M
from npukit.cli.main import app
from npukit.project import toolchain
from npukit.templates import templates_in

PAGES = sorted([*CHECKOUT.glob("docs/*.md"), CHECKOUT / "README.md"])

PICTURE = CHECKOUT / "docs/frame.svg"
"""One frame of the first page's build on four PEs, drawn by the build's report: the picture in README."""

RUN_ELSEWHERE = {
    "--modified": "after a change by hand: tests/end_to_end/test_by_hand.py",
    "--tracker 192.": "the tracker of another machine: tests/farm",
    "--gdb": "waits for gdb: tests/emulator/test_gdb.py",
    "renode": "Renode, or a port that it opens: tests/emulator/renode",
    "--on rtl": "a build of the reader's: tests/emulator/test_rtl.py",
    "socket://": "Renode, or a port that it opens: tests/emulator/renode",
    "my_npu": "in the folder that `new` leaves: tests/accel/test_new_accelerator.py",
    "my_rtl": "in the folder that `new` leaves: tests/accel/test_document.py",
    "my-m33": "in the folder that `new` leaves: tests/end_to_end/test_own_board.py",
    "model.tflite": "a float file of Keras: tests/quantize",
    "stream": "of a network that remembers: tests/end_to_end/test_states.py",
    "validate out": "of a build that is run elsewhere: tests/accel/test_new_accelerator.py",
    "bench out": "of a build that is run elsewhere: tests/accel/test_new_accelerator.py",
    "--input image:": "a model that leaves a shape open: tests/frontend",
    "model.pt2": "a PyTorch program: tests/frontend/test_pytorch.py",
    "--preprocess": "a model of pictures in colour: tests/application",
    "detections=": "a detector: tests/application/test_detections.py",
    "out/core": "minutes of trials: tests/test_tuning.py",
    **dict.fromkeys(
        ("gestures", "faces", "landmarks", "sentences", "plants"), "exported by other packages: benchmarks/tutorial.py"
    ),
}
"""Parts of commands that this script skips, each with the reason and the test that runs the command."""

DEVICE, DEVICE_RUNS = "/dev/ttyACM0", "out/digits"
"""The serial port of a reader's board, and the build for the board. A new emulated board of this kind replaces it here.
"""

STAND_INS = {"model.onnx": "examples/digits/digits_float.onnx"}
"""Files that replace the placeholders of the docs."""

_STYLE = (
    "text { font: 11px system-ui, sans-serif; fill: #7a8496; } text.on { fill: #fff; } "
    "text.small { font-size: 8.5px; } .grid { stroke: #8b95a7; stroke-opacity: 0.4; } "
    ".k-npu { fill: #2563b8; } .k-cpu { fill: #b45309; } .k-send { fill: #18794e; } "
    ".k-wait { fill: #9aa4b5; } .k-other { fill: #5b6576; }"
)
"""Colours visible on a white page and on a black page."""

_SHOWN = re.compile(r"^    \$ (npukit [a-z].*)\n(    (?!\$ ).*\n(?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", re.MULTILINE)
"""A typed command and the lines of its output below, empty lines between them included."""
_TYPED = re.compile(r"^    (?:\$ )?(npukit [a-z].*?|python -m .* &)(?:  +#.*)?$", re.MULTILINE)
_FILE = re.compile(r"^`([\w.-]+)`:\n\n((?:    .*\n|\n)+)", re.MULTILINE)
"""A file shown on a page."""
BESIDE = " &"
"""Suffix of a command that runs in parallel with the following commands, as in another terminal."""
PROGRAMS = {"npukit": [sys.executable, "-c", "from npukit.cli.main import run; run()"], "python": [sys.executable]}
_TABLE = re.compile(r"(<!-- table: ([\w ]+), [^\n]* -->\n).*?(<!-- end of table -->)", re.DOTALL)


def commands(page: Path) -> list[str]:
    """Commands typed by a reader of the page."""
    return _TYPED.findall(page.read_text())


def runs_here(command: str) -> bool:
    exact = {"validate out", "bench out"}
    words = command.removeprefix("npukit ")
    return not any(words == part if part in exact else part in command for part in RUN_ELSEWHERE)


def shows_output(page: Path) -> bool:
    """True if a page shows the output of commands or of lines of Python."""
    return bool(_SHOWN.search(page.read_text())) or PROMPT in page.read_text()


PROMPT = "\n    >>> "


def run_commands(page: Path, folder: Path) -> dict[str, str]:
    """Run the commands of a page in order, in a folder laid out like a checkout. Returns the output of each command."""
    for name in ("examples", "boards"):
        (folder / name).symlink_to(CHECKOUT / name)
    _write_files(page, folder)
    with _newcomers_machine(folder), ExitStack() as boards:

        @cache
        def port() -> str:
            return boards.enter_context(api.emulate(folder / DEVICE_RUNS, new=True)).port

        printed: dict[str, str] = {}
        for command in filter(_possible, commands(page)):
            goes_on = command.endswith(BESIDE)
            printed[command] = boards.enter_context(beside(command, folder)) if goes_on else _run(command, folder, port)
        _check_python(page, folder)
        return printed


def _possible(command: str) -> bool:
    return runs_here(command) and ("--on qemu" not in command or shutil.which("qemu-system-arm") is not None)


def _run(command: str, folder: Path, port: Callable[[], str]) -> str:
    line, _, file = command.partition(" > ")
    line = line.replace(DEVICE, port()) if DEVICE in line else line
    for name, stand_in in STAND_INS.items():
        line = line.replace(name, stand_in)
    here = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(app, shlex.split(line)[1:])
    finally:
        os.chdir(here)
    assert done.exit_code == 0, f"{command}: {done.stderr}"
    if file:
        (folder / file).write_text(done.stdout)
    return _lines(line.rstrip() for line in done.stdout.splitlines())


@contextmanager
def beside(command: str, folder: Path) -> Iterator[str]:
    """Run a command in the background until the context ends. Yields its first line of output, or nothing for a program
    other than npukit."""
    program, *words = shlex.split(command.removesuffix(BESIDE))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    whole = [*PROGRAMS[program], *words]
    with subprocess.Popen(
        whole, cwd=folder, env=environment, stdout=PIPE, stderr=DEVNULL, text=True, preexec_fn=_interruptible
    ) as running:
        assert running.stdout
        try:
            yield running.stdout.readline() if program == "npukit" else _listening(words)
        finally:
            running.send_signal(SIGINT)


def _interruptible() -> None:
    """Restore the default SIGINT in a child, because a parent in the background may ignore SIGINT."""
    signal(SIGINT, SIG_DFL)


def _listening(words: Sequence[str]) -> str:
    """Wait until a program listens at its port. Returns the empty string."""
    until, port = time.monotonic() + PATIENCE, int(words[words.index("--port") + 1])
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return ""
        time.sleep(0.1)
    raise TimeoutError(words)


PATIENCE = 60


def _check_python(page: Path, folder: Path) -> None:
    """Run the lines of Python shown at a prompt on a page. A result other than the one shown is an error."""
    here = Path.cwd()
    os.chdir(folder)
    try:
        found = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
        failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    finally:
        os.chdir(here)
    assert not failed, page.name


@contextmanager
def _newcomers_machine(folder: Path) -> Iterator[None]:
    """A machine with npukit's own compiler only, without tuning records and without trusted makers."""
    own = {"NPUKIT_TUNED": str(folder / "tuned.json"), "XDG_CONFIG_HOME": str(folder / "config")}
    find = toolchain.find_program

    def found(name: str, paths: str | None = None) -> str | None:
        return None if name == CORTEX_M.gcc else find(name, paths)

    with ExitStack() as patches:
        patches.enter_context(mock.patch.dict(os.environ, own))
        for room in (toolchain, tools):
            patches.enter_context(mock.patch.object(room, "find_program", found))
        yield


def files_of(page: Path) -> dict[str, str]:
    """Files shown on a page, by name."""
    return {name: textwrap.dedent(text) for name, text in _FILE.findall(page.read_text())}


def _write_files(page: Path, folder: Path) -> None:
    """Write the files needed by a page: files it shows, a mapping from its text, samples for calibration."""
    for name, text in files_of(page).items():
        (folder / name).write_text(text)
    lines = [line.strip() for line in page.read_text().splitlines() if line.startswith("    ")]
    if page.name == "mesh.md":
        first = next(index for index, line in enumerate(lines) if line.startswith("[ops."))
        last = next(index for index, line in enumerate(lines[first:], first) if line == "]")
        (folder / "my_plan.toml").write_text("\n".join(lines[first : last + 1]))
    if page.name == "models.md":
        with np.load(CHECKOUT / "examples/digits/digits.npz") as digits:
            np.savez(folder / "samples.npz", in0=digits["float0"][:40])


def with_outputs(text: str, printed: Mapping[str, str]) -> str:
    """A page's text with new outputs of its commands."""

    def block(found: re.Match[str]) -> str:
        output = printed.get(found[1])
        return found[0] if output is None else f"    $ {found[1]}\n{_indented(output)}"

    return _SHOWN.sub(block, text)


def _indented(output: str) -> str:
    return _lines(f"    {line}" if line else "" for line in output.splitlines())


def with_tables(text: str) -> str:
    """A page's text with each benchmark table remade from the benchmark's results file."""
    return _TABLE.sub(lambda found: f"{found[1]}{_lines(TABLES[found[2]]())}{found[3]}", text)


def picture(build: Path) -> str:
    """The chart of a build's report as an SVG file, because README cannot embed a page."""
    gantt = json.loads((build / "results.json").read_text())["gantt"]
    template = (Path(__file__).parent / "frame.svg.j2").read_text()
    page = templates_in("report", html=True).from_string(template).render(gantt=gantt)
    found = re.search(r'<svg (viewBox="[^"]*")[^>]*( role="img" aria-label="What [^>]*)>(.*?)</svg>', page, re.DOTALL)
    assert found
    chart = re.sub(r"(?<=>)\s+(?=<)", "\n", found[3].strip())
    return f'<svg xmlns="http://www.w3.org/2000/svg" {found[1]}{found[2]}>\n<style>{_STYLE}</style>\n{chart}\n</svg>\n'


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def latency_table() -> Iterator[str]:
    rows = json.loads(golden_metrics.FILE.read_text())
    yield "| network | PEs | cycles | predicted | against one PE |"
    yield "|---|--:|--:|--:|--:|"
    for model in golden_metrics.MODELS:
        found = [rows[golden_metrics.title(model, pes, "latency")] for pes in golden_metrics.PES]
        for number, row in enumerate(found):
            gain = f"{found[0]['latency_cycles'] / row['latency_cycles']:.1f}" if number else ""
            cycles, predicted = row["latency_cycles"], row["predicted_cycles"]
            network = "" if number else scaling.NETWORKS[model]
            yield f"| {network} | {row['pes']} | {cycles:,} | {predicted:,} | {gain} |"


def throughput_table() -> Iterator[str]:
    yield "| network | frames a batch | cycles between frames | predicted |"
    yield "|---|--:|--:|--:|"
    for model in golden_metrics.MODELS:
        row = _batch(model)
        figures = f"{row['frames']} | {row['interval_cycles']:,} | {row['predicted_interval_cycles']:,}"
        yield f"| {scaling.NETWORKS[model]} | {figures} |"


def _batch(model: str) -> golden_metrics.Metrics:
    return golden_metrics.golden()[golden_metrics.title(model, 16, "throughput")]


def _core(short: str, objective: str = "latency") -> Mapping[str, int]:
    rows = json.loads(Path(cortex_m4.__file__).with_suffix(".json").read_text())["rows"]
    return next(r for r in rows if (r["network"], r["objective"], r["compiler"]) == (short, objective, "gcc"))


def results_table() -> Iterator[str]:
    golden = golden_metrics.golden()
    yield "| network | 1 PE | 16 PEs | faster by | 16 PEs, between frames |"
    yield "|---|--:|--:|--:|--:|"
    for model in golden_metrics.MODELS:
        one, most = (int(golden[golden_metrics.title(model, pes, "latency")]["latency_cycles"]) for pes in (1, 16))
        mesh = f"{one:,} | {most:,} | {one / most:.1f} | {_batch(model)['interval_cycles']:,}"
        yield f"| {scaling.NETWORKS[model]} | {mesh} |"


def one_core_table() -> Iterator[str]:
    yield "| network | made by | instructions | ratio | RAM | flash |"
    yield "|---|---|--:|--:|--:|--:|"
    for short, (model, peer) in cortex_m4.NETWORKS.items():
        counts = f"{peer.instructions:,} | 1 | {peer.ram:,} | {peer.code + peer.constants:,}"
        yield f"| {scaling.NETWORKS[model]} | TFLM + CMSIS-NN | {counts} |"
        for objective in ("latency", "memory"):
            ours = _core(short, objective)
            counts = f"{ours['instructions']:,} | {ours['ratio']:.2f} | {ours['ram']:,} | "
            yield f"|  | npukit, `--objective {objective}` | {counts}{ours['code'] + ours['constants']:,} |"


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "results": results_table,
    "latency": latency_table,
    "throughput": throughput_table,
    "one core": one_core_table,
    "tutorial": tutorial.table,
    "quantisation": quantization.table,
}


if __name__ == "__main__":
    for each in [Path(word).resolve() for word in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as scratch:
            outputs = run_commands(each, Path(scratch)) if shows_output(each) else {}
            each.write_text(with_tables(with_outputs(each.read_text(), outputs)))
            if each.name == "start.md":
                PICTURE.write_text(picture(Path(scratch) / "out/digits"))
