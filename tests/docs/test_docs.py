"""The documentation is true: commands run, options exist, error messages are the kit's."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal

import pytest
import typer.main
from benchmarks import golden_metrics, lone_ops, quantization, scaling, tutorial
from benchmarks.core import cores, cortex_m4
from benchmarks.zoo import zoo

from docs.pages import (
    BESIDE,
    PAGES,
    PICTURE,
    PROGRAMS,
    RUN_ELSEWHERE,
    beside,
    commands,
    files_of,
    picture,
    run_commands,
    runs_here,
    shows_output,
    with_outputs,
    with_tables,
)
from docs.test_adding_an_op import steps as added_files
from docs.wrap import pages as markdown
from helpers import CHECKOUT, first_of
from npukit.cli.main import app
from npukit.cli.reference import commands as every_command
from npukit.cli.reference import reference
from npukit.measure import check

PACKAGE = CHECKOUT / "kit/npukit"
FIRST_READ = ("start.md",)
"""The pages whose commands run in the quick suite."""
ROOMS = sorted(path.parent.name for house in (PACKAGE, PACKAGE / "plan") for path in house.glob("*/__init__.py"))


def test_a_command_beside_the_others_ends_even_if_whoever_runs_the_pages_ignores_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(20)"]
    monkeypatch.setitem(PROGRAMS, "npukit", waiting)
    before, began = signal(SIGINT, SIG_IGN), time.monotonic()
    try:
        with beside(f"npukit{BESIDE}", tmp_path) as line:
            assert line == "up\n"
    finally:
        signal(SIGINT, before)
    assert time.monotonic() - began < 15


VERBS = dict(every_command(typer.main.get_command(app), "npukit"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_in_the_docs_exists(page: Path) -> None:
    for command in commands(page):
        words = shlex.split(command.split(" > ")[0].removesuffix(BESIDE))
        if words[0] != "npukit":
            continue
        verb = " ".join(words[: 3 if words[1] == "new" else 2])
        known = {name for each in VERBS[verb].params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert {word.partition("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)} <= known, command


def test_the_page_of_the_commands_is_their_help() -> None:
    page = (CHECKOUT / "docs/commands.md").read_text()
    assert page == reference(), "python -m npukit.cli.reference > docs/commands.md"


RUN = sorted(
    (page for page in PAGES if shows_output(page) or any(map(runs_here, commands(page)))),
    key=lambda page: page.name not in FIRST_READ,
)


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", first_of(RUN, len(FIRST_READ)), ids=lambda page: page.name)
def test_the_commands_of_a_page_run_and_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "CHECKED_SECONDS", 10.0)
    text = page.read_text()
    assert text == with_outputs(text, run_commands(page, tmp_path)), "on purpose? tests/docs/pages.py"
    if page.name == "start.md":
        assert PICTURE.read_text() == picture(tmp_path / "out/digits"), "on purpose? tests/docs/pages.py"


def test_a_page_that_shows_something_else_is_found_out() -> None:
    text = "Type\n\n    $ npukit boards\n    a board\n    another\n\nand read.\n"
    assert with_outputs(text, {"npukit boards": "a board\nanother\n"}) == text
    assert with_outputs(text, {"npukit boards": "a board\n"}) == text.replace("    another\n", "")
    apart = text.replace("    another\n", "\n    another\n")
    assert with_outputs(apart, {"npukit boards": "a board\n\nanother\n"}) == apart


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_are_those_of_the_benchmarks(page: Path) -> None:
    assert page.read_text() == with_tables(page.read_text()), "on purpose? tests/docs/pages.py"


def test_the_pages_of_benchmarks_are_made_of_their_rows() -> None:
    rows = json.loads(scaling.ROWS.read_text())
    assert scaling.TABLES.read_text() == _lines(scaling.tables(rows)), "made by benchmarks/scaling.py"
    assert quantization.PAGE.read_text() == quantization.page(), "made by benchmarks/quantization.py target --write"
    for module in (cores, cortex_m4):
        file = Path(str(module.__file__))
        found = json.loads(file.with_suffix(".json").read_text())
        assert file.with_suffix(".md").read_text() == module.page(found), f"made by {file.name}"


def test_the_page_of_lone_ops_is_made_of_its_cells() -> None:
    kept = lone_ops.known()
    assert lone_ops.PAGE.read_text() == lone_ops.page(kept), "made by benchmarks/lone_ops.py --write"
    assert set(lone_ops.NAMES) == set(kept)


def test_the_page_of_lone_ops_marks_losses_to_the_other_runtime() -> None:
    cells = {"pe-mesh": lone_ops.Measured(10, 15, engines=("cpu",), commit="a"), "M0+": lone_ops.Measured(refused="no")}
    kept = {"add": {**cells, "M4F": lone_ops.Measured(10, 30, commit="b"), lone_ops.TFLM: lone_ops.Measured(10, 25)}}
    assert "| add | 10 | cpu | 1.5 | **3.0** | 2.5 | refused |  |" in lone_ops.page(kept)
    assert lone_ops.worse(cells["pe-mesh"], lone_ops.Measured(10, 16))
    assert not lone_ops.worse(cells["M0+"], lone_ops.Measured(10, 16))


def test_the_page_of_the_zoo_is_made_of_its_results() -> None:
    assert zoo.PAGE.read_text() == zoo.page(zoo.known()), "made by benchmarks/zoo/zoo.py --write"


def test_the_page_of_the_zoo_tells_refusals_and_wrong_models() -> None:
    usual = asdict(zoo.Found())
    wrong = {**usual, "built": True, "read": True, "how": "--calibration", "against": "R: 3 dB", "at": "b, c"}
    page = zoo.page({("here", "a/m.onnx"): {"1-PE": wrong, "16-PEs": {**usual, "why": "op a is new", "at": "a"}}})
    assert "Measured at a and 2 other commits by" in " ".join(page.split())
    assert "| m.onnx | `--calibration` | **R: 3 dB** | 0 | no |  |" in page
    assert "| m.onnx | 16-PEs | op a is new |" in page


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_what_is_run_elsewhere_is() -> None:
    everything = [command for page in PAGES for command in commands(page)]
    for part, where in RUN_ELSEWHERE.items():
        assert any(part in command for command in everything), part
        for path in re.findall(r"tests/[\w/.]+", where):
            assert (CHECKOUT / path).exists(), path


def test_the_messages_explained_are_the_kits() -> None:
    sources = [*(CHECKOUT / "kit").rglob("*.py"), *(CHECKOUT / "firmware").rglob("*.c")]
    code = " ".join(path.read_text() for path in sources)
    page = (CHECKOUT / "docs/start.md").read_text().partition("## When something goes wrong")[2].partition("\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    assert len(messages) > 5
    for message in messages:
        assert message in code, message


@pytest.mark.parametrize("page", markdown(), ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    named = (path for path in _paths(page.read_text()) if "NAME" not in path and path not in added_files())
    roots = (CHECKOUT, PACKAGE, PACKAGE / "plan")
    assert not [path for path in named if not any((root / path).exists() for root in roots)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_function_that_a_page_names_stands_in_its_module(page: Path) -> None:
    for name, module in re.findall(r"`([\w.]+)`\s\(`([\w/]+\.py)`\)", page.read_text()):
        (file,) = (root / module for root in (CHECKOUT, PACKAGE) if (root / module).exists())
        assert re.search(rf"(def|class) {name.rpartition('.')[2]}\b", file.read_text()), f"{name} of {module}"


def _paths(text: str) -> Iterator[str]:
    """Files and folders of the repository, and modules of the package or the planner by their room."""
    yield from re.findall(r"`((?:docs|boards|examples|benchmarks|tests|kit|firmware|templates)/[\w./-]+)`", text)
    yield from re.findall(rf"`((?:{'|'.join(ROOMS)})/[\w/]+\.py)`", text)


def test_a_path_that_is_not_there_is_found_out() -> None:
    assert [*_paths("`docs/none.md`, `plan/none.py`, `tests/none/`, `out/digits`")] == [
        "docs/none.md",
        "tests/none/",
        "plan/none.py",
    ]


def test_rows_that_two_benchmarks_measure_are_equal() -> None:
    """`scaling.json` takes an hour to measure, `golden_metrics.json` is measured by every run of the tests."""
    golden, rows = golden_metrics.golden(), json.loads(scaling.ROWS.read_text())
    for name, pes, objective in golden_metrics.cases():
        row = rows.get(scaling.key(name, pes, objective))
        wanted = golden[golden_metrics.title(name, pes, objective)]
        if objective == "latency" and row and "cycles" in row:
            assert row["cycles"] == wanted["latency_cycles"], "stale: make figures"


def test_the_tutorial_shows_parts_of_its_scripts() -> None:
    shown = files_of(tutorial.PAGE)
    assert {name.removesuffix(".py") for name in shown} == {*tutorial.NAMES}
    for name, text in shown.items():
        assert f"\n{text.strip()}\n" in (tutorial.SCRIPTS / name).read_text(encoding="utf-8"), name
    for name in tutorial.NAMES:
        assert [words[:2] for words in tutorial.typed(name)] == [
            ["python", f"{name}.py"],
            *(["npukit", verb] for verb in tutorial.STEPS[1:]),
        ]
