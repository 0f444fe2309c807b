"""Proofs about router, DMA and arbiter with Yosys, and with z3 through yosys-smtbmc.

    PYTHONPATH=kit:tests:. python tests/rtl/prove.py [WORD of a name ...] [--no-mutants] [--jobs N]

Each proof runs on a copy of the RTL, then on mutants. A mutant must fail within `mutant_cycles` behind reset, or within
the depth of a proof without induction. The exit status is 1 if a result is not as wanted.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rtl.proofs import PACKAGES, PROOFS, RTL, Change, Method, Proof

PROGRAMS = ("yosys", "yosys-smtbmc", "z3")
LIMIT = 900.0
"""Seconds of a program."""
PROVED, FAILED = "proved", "failed"
_SOLVE = "sat -prove-asserts -set-assumes"


@dataclass(frozen=True)
class Task:
    """A proof, of the RTL itself or of a mutant."""

    proof: Proof
    mutant: str = ""

    @property
    def wanted(self) -> str:
        return FAILED if self.mutant else PROVED

    @property
    def cycles(self) -> int:
        """Cycles behind reset. 0: all, by induction."""
        if self.proof.method is Method.BASE:
            return self.proof.depth
        return self.proof.mutant_cycles if self.mutant else 0

    @property
    def name(self) -> str:
        return f"  mutant: {self.mutant}" if self.mutant else f"{self.proof.name}: {self.proof.claim}"

    @property
    def method(self) -> str:
        solver = "z3" if self.proof.method is Method.Z3 else "Yosys"
        return f"{self.cycles} cycles, {solver}" if self.cycles else f"induction {self.proof.depth}, {solver}"


def tasks(words: Sequence[str], mutants: bool = True) -> list[Task]:
    """The proofs with all words in name or claim, each before its mutants."""
    proofs = [proof for proof in PROOFS if all(word in f"{proof.name}: {proof.claim}" for word in words)]
    return [Task(proof, mutant) for proof in proofs for mutant in ("", *(proof.mutants if mutants else ()))]


def changed(texts: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str]:
    found = dict(texts)
    for change in changes:
        if change.old not in found[change.file]:
            raise ValueError(f"{change.file} does not contain: {change.old}")
        found[change.file] = found[change.file].replace(change.old, change.new)
    return found


def sources(task: Task) -> dict[str, str]:
    """The files of a proof by name, assertions and changes included."""
    proof = task.proof
    mutant = [proof.mutants[task.mutant]] if task.mutant else []
    read = {name: (RTL / name).read_text() for name in (*PACKAGES, *proof.files)}
    texts = {Path(name).name: text for name, text in changed(read, [*proof.sizes, *mutant]).items()}
    assertions = (RTL / "formal" / proof.assertions).read_text()
    if not proof.assertions.endswith(".svh"):
        return texts | {proof.assertions: assertions}
    name = f"{proof.top}.sv"
    return texts | {name: texts[name].replace("\nendmodule", f"\n{assertions}\nendmodule")}


def script(task: Task, names: Sequence[str]) -> str:
    """The commands of Yosys: from the files to a solved proof, or to a model for z3."""
    proof = task.proof
    steps = [
        f"read_verilog -sv -formal -DSYNTHESIS -DFORMAL {' '.join(names)}",
        f"prep -flatten -top {proof.top}",
        *("delete -port o:*", "opt_clean", "memory_map", "opt -full", "clean"),
    ]
    if proof.method is Method.Z3:
        return "; ".join((*steps, "dffunmap", "opt_clean", "write_smt2 -wires model.smt2"))
    if task.cycles:
        return "; ".join((*steps, f"{_SOLVE} -tempinduct-baseonly -maxsteps {task.cycles}"))
    return "; ".join((*steps, f"{_SOLVE} -tempinduct -maxsteps {proof.depth + 1}"))


def run(task: Task) -> str:
    """`PROVED`, `FAILED`, or the reason why neither is known."""
    texts = sources(task)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in texts.items():
            (folder / file).write_text(text)
        try:
            told = _told(["yosys", "-p", script(task, [*texts])], folder)
            return _with_z3(task, folder, told) if task.proof.method is Method.Z3 else _verdict(told)
        except subprocess.TimeoutExpired:
            return "too long"


def _verdict(told: str) -> str:
    """The result by the output of Yosys: a failed base case is a failed proof, a failed step alone is none."""
    if "model found for base case: FAIL!" in told:
        return FAILED
    if "Induction step proven: SUCCESS!" in told or "proved base case" in told:
        return PROVED
    return f"unknown: {_last_line(told)}"


def _with_z3(task: Task, folder: Path, told: str) -> str:
    if not (folder / "model.smt2").exists():
        return f"unknown: {_last_line(told)}"
    for options in _runs(task):
        told = _told(["yosys-smtbmc", "-s", "z3", "--noprogress", *options, "model.smt2"], folder)
        if "BMC failed!" in told:
            return FAILED
        if "Status: PASSED" not in told:
            return f"unknown: {_last_line(told)}"
    return PROVED


def _runs(task: Task) -> Iterator[list[str]]:
    """Options of yosys-smtbmc: the base, then the step of the induction."""
    depth = task.proof.depth
    yield ["-t", str(task.cycles or depth + 1)]
    if not task.cycles:
        yield ["-i", "-t", str(depth)]


def _told(command: Sequence[str], folder: Path) -> str:
    """The output of a program. After `LIMIT` program and solver are killed."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        return process.communicate(timeout=LIMIT)[0]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise


def _last_line(told: str) -> str:
    return (told.strip().splitlines() or ["no output"])[-1]


def _timed(task: Task) -> tuple[str, float]:
    begin = perf_counter()
    return run(task), perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--no-mutants", dest="mutants", action="store_false")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    chosen, bad = tasks(options.words, options.mutants), 0
    if not chosen:
        parser.error("no proof has all these words")
    print(f"{'property':<64} {'method':<20} {'result':<8} seconds")
    with ThreadPoolExecutor(options.jobs) as pool:
        for task, (result, seconds) in zip(chosen, pool.map(_timed, chosen), strict=True):
            bad += result != task.wanted
            mark = "" if result == task.wanted else f"  <- not {task.wanted}"
            print(f"{task.name:<64} {task.method:<20} {result:<8} {seconds:7.0f}{mark}", flush=True)
    raise SystemExit(f"{bad} results are not as wanted" if bad else 0)


if __name__ == "__main__":
    main()
