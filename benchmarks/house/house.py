"""The house in figures: size, words and names of this checkout, or of two checkouts side by side.

    python benchmarks/house/house.py [OTHER_CHECKOUT] [--write]

The goals and the accepted values stand in `tests/house_bounds.toml`. `--write` writes `house.md`, of this checkout
alone.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.house.counts import Figure, figures
from benchmarks.state import CHECKOUT, commit

PAGE = Path(__file__).with_name("house.md")
BOUNDS = CHECKOUT / "tests/house_bounds.toml"
HEAD = """# The house in figures

Measured at {commit} by `python benchmarks/house/house.py --write`. `benchmarks/house/counts.py` says
what each row counts; `tests/test_house.py` fails where a figure exceeds its bound."""


def bounds() -> Mapping[str, Mapping[str, Figure]]:
    """The bound of each figure, and its goal if there is one."""
    return tomllib.loads(BOUNDS.read_text())


def table(columns: Mapping[str, Mapping[str, Figure]]) -> Iterator[str]:
    """The lines of the table: a column for each checkout, then bounds and goals."""
    yield f"| | {' | '.join(columns)} | bound | goal |"
    yield f"|---|{'--:|' * (len(columns) + 2)}"
    limits = bounds()
    for name in {name: None for column in columns.values() for name in column}:
        limit = limits.get(name, {})
        cells = [*(column.get(name) for column in columns.values()), limit.get("bound"), limit.get("goal")]
        yield f"| {name} | {' | '.join('' if cell is None else f'{cell:,}' for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    columns = {"here": figures(CHECKOUT)}
    if given.write:
        PAGE.write_text("\n".join((HEAD.format(commit=commit()), "", *table(columns))) + "\n")
    others = {given.other.name: figures(given.other.resolve())} if given.other else {}
    print("\n".join(table({**others, **columns})))


if __name__ == "__main__":
    main()
