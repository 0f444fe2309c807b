"""What the documentation says: its commands run, its options exist, its error messages are the kit's."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.cli.reference import reference

PAGES = sorted([*CHECKOUT.glob("docs/*.md"), CHECKOUT / "README.md"])


def commands(page: Path) -> list[str]:
    """The lines a reader would type."""
    return re.findall(r"^    (?:\$ )?(npukit [a-z].*?)(?:  +#.*)?$", page.read_text(), re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_option_in_the_docs_exists(page: Path) -> None:
    told = reference()
    for command in commands(page):
        words = shlex.split(command.split(" > ")[0])
        verb = " ".join(words[1:3]) if words[1] == "new" else words[1]
        assert f"## npukit {verb}\n" in told, command
        section = told.split(f"## npukit {verb}\n")[1].split("\n## ")[0]
        for option in (word for word in words[2:] if re.match(r"--?[a-z]", word)):
            assert re.search(rf"[`,] ?{option}\b|`{option}[ `]", section), f"{option} of: {command}"


def test_the_reference_has_every_verb_and_option() -> None:
    written = (CHECKOUT / "docs/commands.md").read_text()
    for section in reference().split("\n## ")[1:]:
        verb, options = section.split("\n", 1)[0], set(re.findall(r"--[a-z-]+", section))
        assert f"\n## {verb}\n" in written, "python -m npukit.cli.reference > docs/commands.md"
        there = written.split(f"\n## {verb}\n")[1].split("\n## ")[0]
        assert options <= set(re.findall(r"--[a-z-]+", there)), "python -m npukit.cli.reference > docs/commands.md"


RUN_ELSEWHERE = {
    "/dev/tty": "a board at a serial port: tests/link/test_session.py, tests/boot/test_pseudo_terminal.py",
    "--modified": "after a change by hand: tests/end_to_end/test_by_hand.py",
    "--tracker": "TVM's tracker: tests/farm",
    "--gdb": "waits for gdb: tests/emulator/test_gdb.py",
    "renode": "Renode, or a port that it opens: tests/emulator/renode",
    "socket://": "Renode, or a port that it opens: tests/emulator/renode",
    "[OPTIONS]": "what --help prints: test_the_reference_has_every_verb_and_option",
    "my_npu": "in the folder that `new` leaves: tests/accel/test_new_accelerator.py",
    "validate out": "of a build that is run elsewhere: tests/accel/test_new_accelerator.py",
    "bench out": "of a build that is run elsewhere: tests/accel/test_new_accelerator.py",
    "--input image:": "a model that leaves a shape open: tests/frontend",
    "model.pt2": "a PyTorch program: tests/frontend/test_pytorch.py",
    "--preprocess": "a model of pictures in colour: tests/application",
    "out/core": "minutes of trials: tests/test_tuning.py",
}
"""What a command says that nobody can run here, or that other tests run, and who does."""

STAND_INS = {"model.onnx": "examples/digits/digits_float.onnx"}
"""What a reader puts for the names in the docs."""


def runs_here(command: str) -> bool:
    exact = {"validate out", "bench out"}
    words = command.removeprefix("npukit ")
    return not any(words == part if part in exact else part in command for part in RUN_ELSEWHERE)


@pytest.mark.parametrize("page", [page for page in PAGES if any(map(runs_here, commands(page)))], ids=lambda p: p.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each as it stands in the page, in their order, in a checkout's folder."""
    for folder in ("examples", "boards"):
        (tmp_path / folder).symlink_to(CHECKOUT / folder)
    monkeypatch.chdir(tmp_path)
    _write_files(page)
    for command in filter(runs_here, commands(page)):
        if "--on qemu" in command and shutil.which("qemu-system-arm") is None:
            continue
        line, _, file = command.partition(" > ")
        for name, stand_in in STAND_INS.items():
            line = line.replace(name, stand_in)
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{command}: {done.stderr}"
        if file:
            Path(file).write_text(done.stdout)


def _write_files(page: Path) -> None:
    """The files that pages speak of: a mapping from its page, samples for calibration."""
    lines = [line.strip() for line in page.read_text().splitlines() if line.startswith("    ")]
    if page.name == "mapping.md":
        first = next(index for index, line in enumerate(lines) if line.startswith("[ops."))
        last = next(index for index, line in enumerate(lines[first:], first) if line == "]")
        Path("my_plan.toml").write_text("\n".join(lines[first : last + 1]))
    if page.name == "models.md":
        with np.load(CHECKOUT / "examples/digits/digits.npz") as digits:
            np.savez("samples.npz", in0=digits["float0"][:40])


def test_what_is_run_elsewhere_is() -> None:
    everything = [command for page in PAGES for command in commands(page)]
    for part, where in RUN_ELSEWHERE.items():
        assert any(part in command for command in everything), part
        for path in re.findall(r"tests/[\w/.]+", where):
            assert (CHECKOUT / path).exists(), path


def test_the_messages_explained_are_the_kits() -> None:
    sources = [*(CHECKOUT / "kit/npukit").rglob("*.py"), *(CHECKOUT / "firmware").rglob("*.c")]
    code = " ".join(path.read_text() for path in sources)
    page = (CHECKOUT / "docs/troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    assert len(messages) > 5
    for message in messages:
        assert message in code, message


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"`((?:docs|boards|examples|benchmarks)/[\w./-]+)`", page.read_text()):
            assert "NAME" in target or (CHECKOUT / target).exists(), f"{page.name}: {target}"
