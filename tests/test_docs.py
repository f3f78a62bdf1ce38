"""The documentation says what is so: its examples run, its links lead somewhere, its tables are
complete, and what the code says of it is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from api_page import PAGE, PUBLIC, names_of
from api_page import page as api_page
from markdown_it import MarkdownIt
from pages import ROOT, differences, steps

from queenbee.documents.issue_lists.sources import FIELDS
from queenbee.documents.issue_lists.sources import SOURCES as SOURCES_OF_LISTS

NOT_YET: set[str] = set()
"""What is linked to and still being written."""

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SOURCES = sorted(ROOT.glob("queenbee/**/*.py"))
SCRIPTING = ROOT / "docs" / "scripting.md"


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def headings(page: Path) -> list[str]:
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [text.content for opening, text in pairwise(tokens) if opening.type == "heading_open"]


def anchors(page: Path) -> set[str]:
    """As hosts of Markdown make them of headings."""
    plain = (re.sub(r"[`*]", "", heading).lower() for heading in headings(page))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def links(page: Path) -> Iterator[str]:
    tokens = MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8"))
    for token in tokens:
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if isinstance(target, str) and not re.match(r"[a-z]+:", target):
                yield target


def first_cells(page: Path, heading: str) -> list[list[str]]:
    """Returns the cells of the rows of the first table in a section."""
    _, _, section = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    rows = re.findall(r"^\|(.*)\|$", section.partition("\n## ")[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows[2:]]


def words_in_code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def said_by_the_code(path: Path) -> str:
    """Returns a source as one line, so that what is wrapped is found too."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\s+", " ", re.sub(r"\n\s*#", " ", text))


@pytest.mark.slow
@pytest.mark.parametrize("page", [each for each in PAGES if steps(each)], ids=name_of)
def test_the_examples_of_a_page_print_what_it_says(page, tmp_path):
    assert not (found := differences(page, tmp_path)), "\n\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_of_a_page_leads_somewhere(page):
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if name_of(target) in NOT_YET and not target.exists():
            continue
        assert target.exists(), f"{name_of(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)} links to {link}"


def test_the_readme_is_short_enough_to_be_read_to_its_end():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1200


def test_every_page_is_reached_from_the_index():
    index = ROOT / "docs" / "README.md"
    adr_index = ROOT / "docs" / "adr" / "README.md"
    reached = {
        (page.parent / link).resolve() for page in (index, adr_index) for link in links(page)
    }
    missing = [name_of(page) for page in PAGES if page.resolve() not in {*reached, index}]
    assert missing == []


def test_every_code_of_a_refusal_is_listed():
    listed = {code for row in first_cells(SCRIPTING, "Errors") for code in words_in_code(row[0])}
    codes = {
        code
        for path in SOURCES
        for code in re.findall(r'^    (?:\w+\.)?code = "(\w+)"', path.read_text(), re.MULTILINE)
    }
    assert listed == codes


def test_every_environment_variable_that_users_set_is_listed():
    cells = first_cells(SCRIPTING, "Environment")
    listed = {name for row in cells for name in words_in_code(row[0])}
    pages = [ROOT / "docs" / name for name in ("ralph-beads.md", "team.md", "sprint-beads.md")]
    for_agents = {
        name for page in pages for name in re.findall(r"QUEEN_[A-Z_]+", page.read_text("utf-8"))
    }
    read = {
        name
        for path in SOURCES
        for name in re.findall(r'"(QUEEN_[A-Z_]+|BEADS_DIR|NO_COLOR)"', path.read_text())
    }
    assert read - for_agents <= listed


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_what_the_code_says_of_the_documentation_is_there(path):
    said = said_by_the_code(path)
    for page, section in re.findall(r'`(docs/[\w/-]+\.md)`(?:, (?:section )?"([^"]+)")?', said):
        if page in NOT_YET and not (ROOT / page).exists():
            continue
        assert (ROOT / page).exists(), f"{page}, named in {name_of(path)}"
        if section:
            assert section in headings(ROOT / page), f"{page}, {section!r}"
    for number in re.findall(r"ADR (\d{4})", said):
        written = [*ROOT.glob(f"docs/adr/{number}-*.md")]
        awaited = any(name.startswith(f"docs/adr/{number}") for name in NOT_YET)
        assert written or awaited, f"ADR {number}, named in {name_of(path)}"


def test_the_page_of_public_names_is_what_the_docstrings_say() -> None:
    """`python tests/api_page.py --write` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == api_page()


IMPORT = re.compile(r"^from (queenbee[\w.]*) import (?:\(([^)]*)\)|([\w, ]+))$", re.MULTILINE)


def test_no_page_imports_below_the_public_names() -> None:
    imported = [
        (path.name, match[1], name.strip())
        for path in PAGES
        for match in IMPORT.finditer(path.read_text(encoding="utf-8"))
        for name in (match[2] or match[3]).split(",")
        if name.strip()
    ]
    assert imported
    hidden = [
        each for each in imported if each[1] not in PUBLIC or each[2] not in names_of(each[1])
    ]
    assert hidden == []


def test_each_test_that_a_page_names_is_there() -> None:
    """The tables of the promises name a test for each: one that was renamed shows nothing."""
    missing = []
    for page in (ROOT / "docs" / name for name in ("reliability.md", "security.md", "threats.md")):
        for path, name in re.findall(r"(tests/[\w/]+\.py)((?:::\w+)*)", page.read_text()):
            test, names = ROOT / path, name.split("::")[1:]
            if not test.is_file() or any(each not in test.read_text() for each in names):
                missing.append(f"{page.name}: {path}{name}")
    assert missing == []


def test_the_page_on_lists_has_every_source_and_every_field() -> None:
    page = ROOT / "docs" / "issue-lists.md"
    sources = [
        word for row in first_cells(page, "Where it can be from") for word in words_in_code(row[0])
    ]
    assert sorted(sources) == sorted(each.name for each in SOURCES_OF_LISTS)
    text = page.read_text(encoding="utf-8")
    assert [each for each in FIELDS if f"`{each}`" not in text] == []
