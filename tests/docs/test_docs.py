"""What the documentation says: its commands run, its options exist, its error messages are the kit's."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app
from npukit.cli.reference import reference

PAGES = sorted([*CHECKOUT.glob("docs/*.md"), CHECKOUT / "README.md"])
NEEDS_A_BOARD = "/dev/tty"


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


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in commands(CHECKOUT / "docs/tutorial.md"):
        line, _, file = command.partition(" > ")
        if NEEDS_A_BOARD in line or ("--on qemu" in line and shutil.which("qemu-system-arm") is None):
            continue
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{command}: {done.stderr}"
        if file:
            Path(file).write_text(done.stdout)


def test_the_messages_explained_are_the_kits() -> None:
    code = " ".join(path.read_text() for path in (CHECKOUT / "kit/npukit").rglob("*.py"))
    page = (CHECKOUT / "docs/troubleshooting.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    assert len(messages) > 5
    for message in messages:
        assert message in code, message


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"`((?:docs|boards|examples|benchmarks)/[\w./-]+)`", page.read_text()):
            assert "NAME" in target or (CHECKOUT / target).exists(), f"{page.name}: {target}"
