"""The documentation says what is so: the parts inside."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from extent import examples
from hives import git
from hypothesis import example, given, settings
from pages import ROOT
from record_lines import any_lines

from queenbee.cli import exits
from queenbee.cli.terminal import MEANINGS
from queenbee.core.fold import Table
from queenbee.core.kinds import KINDS
from queenbee.core.records import Assignment, Flag, Message, OptionalText, Record, Reservation, Text
from queenbee.errors import QueenError
from queenbee.store import settings as hive_settings
from queenbee.store.codec import Unusable, decode, is_migration
from queenbee.store.creating import in_toml

FORMAT = ROOT / "docs" / "format.md"

READER = ROOT / "docs" / "examples" / "reader.py"

SCRIPTING = ROOT / "docs" / "scripting.md"


def first_cells(page: Path, heading: str) -> list[list[str]]:
    """Returns the cells of the rows of the first table in a section."""
    _, _, section = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    rows = re.findall(r"^\|(.*)\|$", section.partition("\n## ")[0], re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows[2:]]


def words_in_code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_exit_status_is_listed():
    listed = {
        int(status)
        for row in first_cells(SCRIPTING, "Exit status")
        for status in re.findall(r"\d+", row[0])
    }
    public = {name: value for name, value in vars(exits).items() if not name.startswith("_")}
    assert listed == {value for value in public.values() if isinstance(value, int)}


def test_every_code_of_a_refusal_is_listed_with_its_exit_status():
    listed = {
        code: int(row[1])
        for row in first_cells(SCRIPTING, "Errors")
        for code in words_in_code(row[0])
    }

    def below(kind: type[QueenError]) -> Iterator[type[QueenError]]:
        yield kind
        for each in kind.__subclasses__():
            yield from below(each)

    for kind in below(QueenError):
        error = kind.__new__(kind)
        assert listed[kind.code] == exits.exit_code(error), kind


def test_every_word_for_a_state_is_listed_with_its_color_and_symbol():
    rows = first_cells(ROOT / "docs" / "terminal.md", "Colors")
    listed = {(row[0], row[1], frozenset(row[3].split(", "))) for row in rows}
    # A mark and another spelling are no words of a page.
    unlisted = {"*", "in_progress", "on_hold"}
    assert listed == {(each.color, each.symbol, each.words - unlisted) for each in MEANINGS}


def test_every_setting_of_the_format_is_listed_as_its_row_in_the_code_says():
    told = {words_in_code(row[0])[0]: row[1:] for row in first_cells(FORMAT, "Settings")}
    listed = [setting for setting in hive_settings.SETTINGS if setting.name in told]
    assert [setting.name for setting in listed] == list(told)
    assert {"format", "state", "engine.kind"} <= told.keys()
    for setting in listed:
        allowed, default, meaning = told[setting.name]
        assert allowed.replace("`", "") == setting.type.allowed
        assert default == f"`{in_toml(setting.default)}`"
        assert meaning.startswith(setting.sentence)


@pytest.mark.parametrize("record", [Message, Assignment, Reservation])
def test_every_field_of_a_record_is_described(record):
    text = FORMAT.read_text(encoding="utf-8")
    section = text.partition("\n## Records\n")[2].partition("\n## ")[0]
    described = set(words_in_code(section))
    fields = {
        attribute.name
        for kind in (Record, record)
        for attribute in vars(kind).values()
        if isinstance(attribute, Text | OptionalText | Flag)
    }
    assert fields <= described


@pytest.fixture(scope="module")
def reader():
    """The program that reads a hive without QueenBee."""
    return runpy.run_path(str(READER))


@pytest.mark.slow
def test_the_reader_of_the_format_reads_what_a_stash_took_away(repo, queen):
    queen("claim", "shop-1", "--new", as_="ui")
    queen("reserve", "src/", "--issue", "shop-1", as_="ui")
    queen("complete", "shop-1", "--reason", "tax is in", as_="ui")
    other = {"id": "qa-1", "agent": "api", "issue_id": "shop-2", "status": "active"}
    with (repo / ".beads" / "queen_assignments.jsonl").open("a") as ledger:
        ledger.write(json.dumps(other) + "\n")

    def read():
        line = [sys.executable, str(READER)]
        return subprocess.run(line, cwd=repo, capture_output=True, text=True, timeout=60).stdout

    ours = "2 ui completed shop-1\n"
    assert read() == f"{ours}1 api active shop-2\n2 ui released shop-1\n"
    git(repo, "stash", "-uq")
    assert read() == f"{ours}2 ui released shop-1\n"


ENDED = b'{"id":"qa-1","rev":2,"status":"completed","updated_at":"2024-12-14T10:00:00Z"}'

RENEWED = b'{"id":"qa-1","rev":2,"status":"active","updated_at":"2024-12-14T11:00:00Z"}'


@pytest.mark.slow
@given(lines=any_lines())
@example(lines=[ENDED, RENEWED])
@example(lines=[RENEWED, ENDED])
@settings(max_examples=examples(300))
def test_the_reader_in_the_format_folds_as_queenbee_does(reader, lines):
    table = Table(KINDS["reservations"].aliases)
    for raw in lines:
        try:
            fields = decode(raw)
        except Unusable:
            continue
        if not is_migration(fields):
            table.add(raw, fields)
    ours = {identifier: entry.fields for identifier, entry in table.entries.items()}
    assert reader["fold"](lines) == ours
