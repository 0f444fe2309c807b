"""The site of the documentation: Sphinx reads the same Markdown files that stand in the repository.

`make docs` builds the site in out/site. The name of a page in a text becomes a link. Broken links and all other
warnings are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
SECTIONS: dict[str, tuple[str, ...]] = {
    "Guide": (
        *("docs/start", "docs/models", "docs/preprocessing", "docs/boards", "docs/accelerators"),
        *("docs/mesh", "docs/link", "docs/measure", "examples/digits/README"),
    ),
    "Reference": (
        *("docs/commands", "docs/compatibility", "docs/concepts", "docs/board-file", "docs/plug-in", "docs/protocol"),
        "boards/pe-mesh",
        *(f"examples/accelerators/{name}/{name}" for name in ("graphnpu", "systolic8x8")),
    ),
    "Internals": (
        *("CONTRIBUTING", "docs/architecture", "docs/planner", "docs/firmware"),
        *("docs/emulators", "SECURITY"),
    ),
    "Results": (
        *("benchmarks/zoo/zoo", "benchmarks/compatibility", "benchmarks/quantization", "benchmarks/scaling"),
        *("benchmarks/core/cortex_m4", "benchmarks/core/cores", "benchmarks/large/large_networks"),
        "benchmarks/mesh/dead_parts",
    ),
    "About": ("DEPENDENCIES",),
}

project = "npukit"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*/*.md",
    "boards/*.md",
    "benchmarks/*.md",
    "benchmarks/*/*.md",
    "examples/**/*.md",
    "rtl/*.md",
]
exclude_patterns = [".*", "out", "dist", "build", "kit", "tests", "firmware", "templates"]
html_theme = "furo"
html_title = "npukit"
myst_heading_anchors = 3

_CODE = re.compile(r"^```.*?^```|^ {4}[^\n]*$", re.DOTALL | re.MULTILINE)


def contents(pages: Iterable[str]) -> str:
    """The tables of contents at the end of the first page: SECTIONS, and the pages of no section."""
    listed = {page for section in SECTIONS.values() for page in section} | {root_doc}
    more = {"More": sorted({*pages} - listed)}
    return "".join(_section(title, found) for title, found in (SECTIONS | more).items() if found)


def _section(title: str, pages: Iterable[str]) -> str:
    names = "\n".join(f"/{page}" for page in pages)
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{names}\n```\n"


def with_links(text: str) -> str:
    """The text with a link for each named page, except in code blocks."""
    prose, pieces = _CODE.split(text), _CODE.findall(text)
    linked = [re.sub(r"(?<!\[)`([\w./-]+\.md)`", _link, part) for part in prose]
    return "".join(part for pair in zip(linked, [*pieces, ""], strict=True) for part in pair)


def _link(found: re.Match[str]) -> str:
    page = found[1]
    return f"[`{page}`](/{page})" if "/" in page or (CHECKOUT / page).is_file() else found[0]


def setup(app: Any) -> None:
    """Register the changes to each page, and to the finished site."""
    app.connect("source-read", _read)
    app.connect("build-finished", _finish)


def _read(app: Any, name: str, source: list[str]) -> None:
    source[0] = with_links(source[0]) + (contents(app.env.found_docs) if name == root_doc else "")


def _finish(app: Any, error: Exception | None) -> None:
    if error is None:
        (Path(app.outdir) / "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={root_doc}.html">\n')
