"""The figures of the house within their bounds, and the benchmarks that pages, targets, tests and constants name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.house import counts
from benchmarks.house.house import bounds, table

from helpers import CHECKOUT

SOURCE = '''"""What this module says, `what` not."""

from __future__ import annotations

# The reason for it. '# no comment'
LIMIT, NAMES = 3, ("a", "b")
SIZES: tuple[int, ...] = (1 << 10, -2)
_LIMIT = 4.5


class Tile:
    """A tile."""

    def area(self) -> int:
        """Such an area."""
        return 2
'''
PLACES = (
    *("README.md", "CONTRIBUTING.md", "Makefile", ".ci", "docs", "boards", "examples", "kit", "firmware"),
    *("templates", "tests", "benchmarks"),
)
"""Files and folders whose mention makes a benchmark needed."""
SUFFIXES = (".md", ".py", ".toml", ".c", ".h", "")
NAMED = re.compile(r"\bbenchmarks[./](?:[a-z0-9_]+[./])*[a-z0-9_]+")


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/page.md").write_text("# It\n\n    so indented\n\n| that | cell |\n\nA page of words.\n")
    for room in ("plan", "net"):
        (tmp_path / "kit/npukit" / room).mkdir(parents=True)
        (tmp_path / "kit/npukit" / room / "first.py").write_text(SOURCE)
    return tmp_path / "kit/npukit"


def test_names_and_numbers_are_counted(kit: Path) -> None:
    assert counts.lines(kit) == 2 * len(SOURCE.splitlines())
    assert counts.classes(kit) == {"Tile": 2}
    assert [name for _, name in counts.numeric_constants(kit / "plan")] == ["LIMIT", "SIZES", "_LIMIT"]
    assert counts.names_used_twice(kit) == ["LIMIT", "NAMES", "SIZES", "Tile"]
    assert counts.names_used_twice(kit / "plan") == []
    assert counts.function_lengths(kit) == [3, 3]
    assert counts.room_sizes(kit) == {"plan": 1, "net": 1}


def test_pointing_words_are_those_of_docstrings_comments_and_pages(kit: Path) -> None:
    assert counts.words(counts.prose_of(kit / "plan/first.py")) == [
        *("what", "this", "module", "says", "not", "a", "tile", "such", "an", "area"),
        *("the", "reason", "for", "it", "'", "no", "comment'"),
    ]
    found = counts.pointing(kit.parents[1])
    assert found == {"kit/npukit/plan": (3, 17), "kit/npukit/net": (3, 17), "docs": (1, 5)}
    assert counts.percent(found.values()) == round(100 * 7 / 39, 2)


def test_comments_of_c_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("/* One\n * word */ int it; // so\n")
    assert counts.words(counts.prose_of(tmp_path / "a.c")) == ["one", "word", "so"]


def test_no_figure_exceeds_its_bound() -> None:
    """A change that raises a bound of tests/house_bounds.toml gives its reason in the message of the same commit."""
    limits, usual = bounds(), bounds()["pointing words in 100"]["goal"]
    found = {
        name: (value, limits.get(name, {}).get("bound", usual)) for name, value in counts.figures(CHECKOUT).items()
    }
    assert not {name: each for name, each in found.items() if each[0] > each[1]}


def test_the_table_has_bounds_and_goals_beside_each_checkout() -> None:
    limit = bounds()["lines of kit/"]
    lines = [*table({"before": {"lines of kit/": 90_000}, "here": {"lines of kit/": 80_000}})]
    assert lines[0] == "| | before | here | bound | goal |"
    assert lines[2] == f"| lines of kit/ | 90,000 | 80,000 | {limit['bound']:,} | {limit['goal']:,} |"


def citations() -> dict[str, set[str]]:
    """The files that name each file of benchmarks/, by its path without suffix."""
    found: dict[str, set[str]] = {}
    roots = [CHECKOUT / place for place in PLACES]
    for path in (path for root in roots for path in ([root] if root.is_file() else root.rglob("*"))):
        if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__):
            for name in NAMED.findall(path.read_text(errors="replace")):
                plain = re.sub(r"[./](?:py|md|json|toml)$", "", name).replace(".", "/")
                found.setdefault(plain, set()).add(path.relative_to(CHECKOUT).as_posix())
    return found


def test_a_benchmark_is_named_by_a_page_a_target_a_test_or_a_constant() -> None:
    users, own = citations(), (CHECKOUT / "benchmarks").rglob("*.py")
    names = {path.relative_to(CHECKOUT).with_suffix("").as_posix() for path in own}
    assert not [name for name in sorted(names) if not users.get(name, set()) - {f"{name}.py"}]


def test_a_benchmark_that_a_file_names_is_there() -> None:
    missing = {name: users for name, users in citations().items() if not [*CHECKOUT.glob(f"{name}*")]}
    assert not missing
