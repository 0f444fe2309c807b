"""Mutants: small changes of npukit's output, and the share that `npukit validate` finds.

    PYTHONPATH=kit:tests:. python benchmarks/mutants.py [--work FOLDER] [--sample N] [--seed S] [--write]

A mutant is a build with one seeded change: of a line of its project, or of a byte of a PE's own data. It is compiled,
and validated as by `npukit validate` without options. A mutant is killed by a different output or tile, by a fault, or
under a schedule. It is the same program if every PE loads the same bytes, which is checked. `proofs.json` gives the
reason why no frame can reveal certain others. The rest survive. Lines that no validation frame runs have no mutants.

Results are kept in the folder, mutant by mutant, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest import mock

from benchmarks.state import commit

from mutation.mutations import (
    ASSEMBLY,
    CLASSES,
    FIRMWARE,
    GENERATED_C,
    Mutant,
    in_lines,
    in_own_data,
    in_structs,
    swapped_calls,
)
from mutation.programs import of_assembly, of_constants
from mutation.proofs import of_listed, of_member, of_nothing, of_own_member, of_scratch, of_waits, why_it_survives
from mutation.workshop import DoesNotCompile, KeptWorker, Mutated, Workshop, code_lines, load_workshop, same_program
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.emulator.trace_records import RecordKind
from npukit.errors import NpukitError
from npukit.measure.memory import check_memory
from npukit.measure.schedules import compare
from npukit.measure.target import Emulation, open_target
from npukit.measure.validate import run_round
from npukit.progress import Silent
from npukit.project.images.image import Image

HERE = Path(__file__).parent
CHECKOUT = HERE.parent
PAGE = HERE / "mutants.md"
DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
SEED, TOTAL = 1, 330
CYCLES = 30_000_000
"""Limit in board cycles for a frame that does not end. The limit of `npukit validate` is longer."""
BUILDS: Mapping[str, Mapping[str, object]] = {
    "1 PE": {"pes": 1},
    "2 PEs": {"pes": 2},
    "8 PEs": {"pes": 8},
    "batch": {"pes": 4, "objective": "throughput"},
    "core": {"pes": 2, "engine": "cpu"},
    "stream": {"pes": 2},
}
_STREAM = "stream"
FIRMWARE_FILES = ("firmware/noc/noc.c", "firmware/mac_array/mac_array.c", "firmware/mac_array/mac_array_parts.c")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant: `killed` by `check`, `same`, `invalid` (does not compile), `equivalent` (proven) or
    `survived`."""

    build: str
    mutant: str
    kind: str
    outcome: str
    check: str = ""
    said: str = ""


def judge(workshop: Workshop, name: str, mutant: Mutant) -> Verdict:
    """Build and validate one mutant."""

    def verdict(outcome: str, check: str = "", said: str = "") -> Verdict:
        return Verdict(name, str(mutant), mutant.kind, outcome, check, said[:400])

    try:
        mutated = made(workshop, mutant)
    except DoesNotCompile as error:
        return verdict("invalid", said=str(error))
    if same_program(mutated.images(), workshop.images):
        return verdict("same")
    try:
        with open_target(mutated, None, Emulation(strict=True)) as target:
            found = compare(target, workshop.net, workshop.plan, workshop.cases, None, Silent())
            check_memory(target.session, mutated)
    except NpukitError as error:
        return verdict("killed", _check_of(error), error.message)
    if found.passed:
        reason = _proof(workshop, mutant)
        return verdict("equivalent", said=reason) if reason else verdict("survived")
    first = found.mismatches[0] if found.mismatches else None
    check = "schedule" if first and first.schedule else "tile" if first and first.box else "output"
    return verdict("killed", check, str(first))


def _proof(workshop: Workshop, mutant: Mutant) -> str:
    if mutant.pe < 0:
        routines, constants = (_beside(workshop, mutant, name) for name in ("routines.S", "constants.c"))
        text = workshop.text(mutant.file)
        if mutant.kind == "assembly":
            return of_assembly(mutant, text, constants, workshop.net)
        if mutant.kind == "constants":
            return of_constants(mutant, text, routines, workshop.net)
        found = of_member(mutant, text) or of_nothing(mutant, text) or of_scratch(mutant, routines)
        return found or of_waits(mutant, workshop.plan)
    image = next(image for image in workshop.build.images() if mutant.pe in image.pes)
    (data,) = (overlay.data for overlay in image.overlays if overlay.pe == mutant.pe)
    return of_own_member(mutant, own_listing(workshop, image), data, workshop.text("firmware/mac_array/mac_array.h"))


def _beside(workshop: Workshop, mutant: Mutant, name: str) -> str:
    """The text of the file `name` beside the mutant's file; empty if there is none."""
    file = Path(mutant.file).with_name(name).as_posix()
    return workshop.text(file) if file in workshop.sources else ""


def own_listing(workshop: Workshop, image: Image) -> str:
    """The project's listing of the own data of an image's PEs; empty without own data."""
    return workshop.text(f"roles/{_role(image.elf.name)}/own.txt") if image.overlays else ""


def _check_of(error: NpukitError) -> str:
    if any("under schedule" in fact for fact in error.facts):
        return "schedule"
    checks = {"race": r"\brac|not ordered|unordered", "registers": "returned with", "fault": "stopped"}
    return next((check for check, words in checks.items() if re.search(words, error.message)), "error")


def made(workshop: Workshop, mutant: Mutant) -> Mutated:
    if mutant.pe >= 0:
        return workshop.with_byte(mutant.pe, mutant.line, int(mutant.after, 16))
    return workshop.with_text(mutant.file, mutant.text(workshop.text(mutant.file)))


# ---- choice of mutants ----


def candidates(workshop: Workshop, seed: str) -> dict[str, list[Mutant]]:
    """Every mutant of a build, by class."""
    rng, found = random.Random(seed), list[Mutant]()
    ran = lines_run(workshop)
    for file in workshop.sources:
        text, name, lines = workshop.text(file), Path(file).name, ran.get(file, set())
        if name == "net.c":
            found += in_lines("C", file, text, GENERATED_C, rng, lines | _tables(text))
            found += (each for each in swapped_calls(file, text) if each.line in lines)
        elif name == "kernels.c":
            found += in_lines("C", file, text, FIRMWARE, rng, lines)
        elif name == "routines.S":
            found += in_lines("assembly", file, text, ASSEMBLY, rng, lines)
        elif name == "constants.c":
            found += in_structs(file, text, rng)
        elif file in FIRMWARE_FILES:
            found += in_lines("firmware", file, text, FIRMWARE, rng, lines)
    for image in workshop.build.images():
        listing = own_listing(workshop, image)
        for overlay in image.overlays:
            found += in_own_data(overlay.pe, overlay.data, listing, rng)
    return {kind: [each for each in found if each.kind == kind] for kind in CLASSES}


def _role(elf: str) -> str:
    return Path(elf).stem.rpartition("-")[2]


def _tables(text: str) -> set[int]:
    """Numbers of the lines that list tensors for the digests of an observed frame. These lines have no instructions."""
    return {number for number, line in enumerate(text.split("\n"), 1) if re.match(r"    \{ \.(data|name) = ", line)}


def lines_run(workshop: Workshop) -> dict[str, set[int]]:
    """Numbers of the lines that validation frames run, by source file."""
    images = {image.elf: code_lines(image.elf) for image in workshop.images}
    marks = {pe: list(images[image.elf]) for image in workshop.images for pe in image.pes}
    build = Mutated(workshop.build.folder, workshop.build.manifest, (), workshop, workshop.images)
    with open_target(build) as target:
        emulator = target.session._transport  # pyright: ignore[reportPrivateUsage]
        assert isinstance(emulator, Emulator)
        emulator.trace(True, marks)
        for observe in (False, True):
            cases = workshop.cases
            run_round(target.session, workshop.net, cases, (0,) * workshop.plan.frames_of_all, observe=observe)
        came = emulator.traced().of(RecordKind.MARK)
    by_pe = {pe: images[image.elf] for image in workshop.images for pe in image.pes}
    found: dict[str, set[int]] = {}
    for pe, address in {(int(pe), int(address)) for pe, address in zip(came["pe"], came["a"], strict=True)}:
        for place in by_pe[pe][address]:
            name, _, line = place.rpartition(":")
            for file in workshop.sources:
                if Path(file).name == name and _belongs(file, workshop, pe):
                    found.setdefault(file, set()).add(int(line))
    return found


def _belongs(file: str, workshop: Workshop, pe: int) -> bool:
    """False for a source of another role than the PE's."""
    role = re.match(r"roles/(\d+)/", file)
    image = next(image for image in workshop.images if pe in image.pes)
    return role is None or role[1] == _role(image.elf.name)


def chosen(workshops: Mapping[str, Workshop], total: int, seed: int) -> list[tuple[str, Mutant]]:
    """At most `total` mutants, taken in turn from each class and build."""
    piles = list[tuple[str, list[Mutant]]]()
    for name, workshop in workshops.items():
        for kind, mutants in candidates(workshop, f"{seed} {name}").items():
            random.Random(f"{seed} {name} {kind}").shuffle(mutants)
            piles.append((name, mutants))
    found = list[tuple[str, Mutant]]()
    while len(found) < total and any(pile for _, pile in piles):
        found += [(name, pile.pop()) for name, pile in piles if pile]
    return found[:total]


# ---- builds ----


def workshops(work: Path, names: Sequence[str]) -> dict[str, Workshop]:
    found = {}
    for name in names:
        folder = work / name.replace(" ", "-")
        if not (folder / "npukit.json").is_file():
            api.build(_model(name, work), board="pe-mesh", output=folder, options=_options(BUILDS[name]))
        found[name] = load_workshop(folder, work / "scratch")
    return found


def _model(name: str, work: Path) -> Path:
    if name != _STREAM:
        return DIGITS
    from frontend.tflite_models import ring

    (work / "ring.tflite").write_bytes(ring(begins=5).bytes(["all"]))
    return work / "ring.tflite"


def _options(given: Mapping[str, object]) -> api.Options:
    return api.Options(**given, toolchain="zig")  # pyright: ignore[reportArgumentType]


# ---- results ----


def listed_survivor(build: str, mutant: Mutant) -> bool:
    """True for a mutant that the page lists under "Survived"."""
    page = PAGE.read_text().partition("## Survived")[2]
    return "".join(f"- {build}, {mutant}:".split()) in "".join(page.split())


def run(
    work: Path, total: int, seed: int, names: Sequence[str] = tuple(BUILDS), *, again: bool = False
) -> Iterator[Verdict]:
    """The verdicts, partly from the file of an earlier run. `again`: only for survivors listed on the page."""
    kept_file = work / f"verdicts-{seed}-{commit().partition(' ')[0]}.jsonl"
    kept = [Verdict(**json.loads(line)) for line in kept_file.read_text().splitlines()] if kept_file.is_file() else []
    known = {(each.build, each.mutant): each for each in kept}
    with (
        mock.patch("npukit.emulator.builtin.WorkerProcess", KeptWorker),
        mock.patch("npukit.emulator.patience.LEAST_CYCLES", CYCLES),
        kept_file.open("a") as out,
    ):
        shops = workshops(work, names)
        for name, mutant in chosen(shops, total, seed):
            if again and not listed_survivor(name, mutant):
                continue
            verdict = known.get((name, str(mutant))) or judge(shops[name], name, mutant)
            if (name, str(mutant)) not in known:
                print(json.dumps(asdict(verdict)), file=out, flush=True)
            yield verdict
    KeptWorker.end()


HEAD = """| class | mutants | do not compile | same bytes | proven equivalent | killed | survive | score |
|---|--:|--:|--:|--:|--:|--:|--:|"""


def with_proofs(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, with survivors that `proofs.json` explains marked as equivalent."""
    return [
        replace(each, outcome="equivalent", said=reason)
        if each.outcome == "survived" and (reason := of_listed(f"{each.build}, {each.mutant}"))
        else each
        for each in verdicts
    ]


def score(verdicts: Sequence[Verdict]) -> float:
    """The share of killed mutants among killed and surviving ones."""
    count = Counter(each.outcome for each in verdicts)
    return count["killed"] / max(count["killed"] + count["survived"], 1)


def told(verdicts: Sequence[Verdict]) -> str:
    """The page's text: the table by class, the checks that killed, and the survivors with reasons."""
    rows = [HEAD]
    for kind in (*CLASSES, "all"):
        chosen = [each for each in verdicts if kind in (each.kind, "all")]
        count = Counter(each.outcome for each in chosen)
        numbers = [count[each] for each in ("invalid", "same", "equivalent", "killed", "survived")]
        rows.append(f"| {kind} | {len(chosen)} | {' | '.join(map(str, numbers))} | {score(chosen):.1%} |")
    checks = Counter(each.check for each in verdicts if each.outcome == "killed")
    killed = ", ".join(f"{check} {number}" for check, number in checks.most_common())
    left = (f"{each.build}, {each.mutant}" for each in verdicts if each.outcome == "survived")
    lines = sorted(f"- {each}: {why_it_survives(each)}" for each in left) or ["None."]
    return "\n".join([*rows, "", f"Killed by: {killed}.", "\n## Survived\n", *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--sample", type=int, default=TOTAL)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--again", action="store_true", help="only the mutants that the page lists as survivors")
    parser.add_argument("--write", action="store_true", help="the page benchmarks/mutants.md")
    parser.add_argument("--least", type=float, default=0.0, help="the score that is asked for, from 0 to 1")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = given.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        verdicts = []
        for verdict in run(work, given.sample, given.seed, again=given.again):
            verdicts.append(verdict)
            if verdict.outcome == "survived":
                print(verdict.build, verdict.mutant, file=sys.stderr, flush=True)
    text = told(with_proofs(verdicts))
    print(text)
    if given.write:
        head = PAGE.read_text().partition("<!-- table -->")[0]
        by = f"Measured at {commit()} by `python benchmarks/mutants.py --seed {given.seed}`."
        PAGE.write_text(f"{head}<!-- table -->\n{by}\n\n{text}\n")
    return int(score(with_proofs(verdicts)) < given.least)


if __name__ == "__main__":
    sys.exit(main())
