"""The site's additions: links between pages, and tables of contents. `make docs` builds the site."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from helpers import CHECKOUT


@pytest.fixture(scope="module")
def conf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_conf", CHECKOUT / "docs/conf.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def test_a_page_that_is_named_becomes_a_link(conf: ModuleType) -> None:
    assert conf.with_links("See `docs/link.md` first.") == "See [`docs/link.md`](/docs/link.md) first."
    assert conf.with_links("`README.md`") == "[`README.md`](/README.md)"


@pytest.mark.parametrize("text", ["    $ cat `docs/link.md`", "```\n`docs/link.md`\n```", "`net.txt`", "`other.md`"])
def test_code_and_other_files_stay_as_they_are(conf: ModuleType, text: str) -> None:
    assert conf.with_links(text) == text


def test_each_page_stands_in_one_section(conf: ModuleType) -> None:
    pages = [page for section in conf.SECTIONS.values() for page in section]
    assert len(pages) == len({*pages})
    assert not [page for page in pages if not (CHECKOUT / f"{page}.md").is_file()]


def test_a_page_of_no_section_is_listed_as_well(conf: ModuleType) -> None:
    assert conf.contents([conf.root_doc]).count("toctree") == len(conf.SECTIONS)
    assert conf.contents(["docs/new", "docs/start"]).endswith(":caption: More\n\n/docs/new\n```\n")
