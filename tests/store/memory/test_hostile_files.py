"""A memory that is not as QueenBee would have made it: work goes on, by what the ledgers have."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hives import Queen, QuickQueen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_places import Place, line
from memory_worlds import Happening

from queenbee.errors import QueenError
from queenbee.store.memory import salvage, tables
from queenbee.store.memory.files_memory import FilesMemory

ENDLESS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS seq, 'messages' AS kind, 'qm-' || i AS id, x'7b7d' AS raw, 1 AS sum, "
    "0 AS loose, 0 AS archived FROM n"
)
HUGE = 2**63 - 1
DOUBLING = (
    "CREATE TRIGGER t AFTER INSERT ON lines WHEN new.seq < 100 BEGIN INSERT INTO lines VALUES "
    "(new.seq + 1000, new.kind, new.id, new.raw, new.sum, new.loose, new.archived); END"
)
WITHOUT_CHECKS = "PRAGMA ignore_check_constraints = ON"


def as_view(table: str, select: str) -> tuple[str, ...]:
    return f'DROP TABLE "{table}"', f'CREATE VIEW "{table}" AS {select}'


LAYOUTS: dict[str, tuple[str, ...]] = {
    "lines is an endless view": as_view("lines", ENDLESS),
    "lines is a view of them": (
        "ALTER TABLE lines RENAME TO kept", "CREATE VIEW lines AS SELECT * FROM kept",
    ),
    "lines is an empty view": as_view("lines", f"SELECT * FROM ({ENDLESS}) LIMIT 0"),
    "meta is an endless view": as_view("meta", "SELECT i AS key, i AS value FROM ("
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)"),
    "records are a view": as_view("records messages", "SELECT 1 AS id"),
    "a trigger deletes each line": (
        "CREATE TRIGGER t AFTER INSERT ON lines BEGIN DELETE FROM lines WHERE seq = new.seq; END",
    ),
    "a trigger refuses each line": (
        "CREATE TRIGGER t BEFORE INSERT ON lines BEGIN SELECT raise(ABORT, 'no'); END",
    ),
    "a trigger doubles each line": (DOUBLING,),
    "no table of lines": ("DROP TABLE lines",),
    "no table of ledgers": ("DROP TABLE ledgers",),
    "no table of notes": ("DROP TABLE meta",),
    "no marks": ("DROP TABLE marks",),
    "no records": ('DROP TABLE "records messages"',),
    "lines without a column": (
        "DROP INDEX loose_lines", "ALTER TABLE lines DROP COLUMN archived",
    ),
    "lines without sums": (
        "ALTER TABLE lines RENAME COLUMN sum TO total",
    ),
    "lines with another column": ("ALTER TABLE lines ADD COLUMN more TEXT NOT NULL DEFAULT 'x'",),
    "no index of lines": ("DROP INDEX later_lines",),
    "no index of records": ('DROP INDEX "messages by 1"',),
    "a unique index": ("CREATE UNIQUE INDEX u ON lines (seq, archived)",),
    "another table": ("CREATE TABLE other (x)",),
    "statistics": ("ANALYZE",),
    "version -1": ("PRAGMA user_version = -1",),
    "version 0": ("PRAGMA user_version = 0",),
}  # fmt: skip

ROWS: dict[str, tuple[str, ...]] = {
    "no last number": ("DELETE FROM meta WHERE key = 'seq'",),
    "the last number is below": ("UPDATE meta SET value = 0 WHERE key = 'seq'",),
    "the last number is negative": ("UPDATE meta SET value = -5 WHERE key = 'seq'",),
    "the last number is great": ("UPDATE meta SET value = 1000000000000000 WHERE key = 'seq'",),
    "the last number is huge": (f"UPDATE meta SET value = {HUGE} WHERE key = 'seq'",),
    "the last number is a text": ("UPDATE meta SET value = 'x' WHERE key = 'seq'",),
    "each note is a text": ("UPDATE meta SET value = 'x' WHERE key != 'fold'",),
    "each note is huge": (f"UPDATE meta SET value = {HUGE} WHERE key != 'fold'",),
    "the last change is below": ("UPDATE meta SET value = 0 WHERE key = 'change messages'",),
    "a line has a huge number": (
        WITHOUT_CHECKS, f"UPDATE lines SET seq = {HUGE} WHERE seq = (SELECT max(seq) FROM lines)",
    ),
    "a line has a great number": (
        "UPDATE lines SET seq = 1000000000000000 WHERE seq = (SELECT max(seq) FROM lines)",
    ),
    "lines are texts": (WITHOUT_CHECKS, "UPDATE lines SET raw = CAST(raw AS TEXT)"),
    "sums are texts": (WITHOUT_CHECKS, "UPDATE lines SET sum = 'x'"),
    "lines are of another kind": ("UPDATE lines SET kind = 'reservations'",),
    "lines are of no kind": ("UPDATE lines SET kind = ''",),
    "lines are all of one record": ("UPDATE lines SET first = 1 WHERE seq > 1",),
    "lines are of themselves": ("UPDATE lines SET first = seq",),
    "lines are of one that is not there": ("UPDATE lines SET first = 77777",),
    "lines are of no record": ("UPDATE lines SET first = 0",),
    "lines are of a text": (WITHOUT_CHECKS, "UPDATE lines SET first = 'x'"),
    "lines are nobody's": (
        "UPDATE lines SET loose = 77",
    ),
    "offsets are texts": (WITHOUT_CHECKS, "UPDATE ledgers SET offset = 'x', inode = 'y'"),
    "offsets are huge": (WITHOUT_CHECKS, f"UPDATE ledgers SET offset = {HUGE}"),
    "offsets are negative": (WITHOUT_CHECKS, "UPDATE ledgers SET offset = -7"),
    "sums of ledgers are texts": ("UPDATE ledgers SET sum = 'x'",),
    "sums of ledgers are long": (f"UPDATE ledgers SET sum = '{'9' * 5000}'",),
    "what is due is a text": (
        WITHOUT_CHECKS, "UPDATE ledgers SET due_offset = 'x', due_sum = 'y', due_ns = 'z'",
    ),
    "all is due": (
        f"UPDATE ledgers SET due_to = {2**53}, due_ns = changed_ns, due_offset = offset",
    ),
    "notes of the archive are none": ("UPDATE ledgers SET archive = '[[1,'",),
    "notes of the archive are others": ("UPDATE ledgers SET archive = '{\"a\":3}'",),
    "ledgers are recorded to nothing": ("UPDATE ledgers SET recorded_to = 0",),
    "ledgers are recorded to too much": ("UPDATE ledgers SET recorded_to = 1000000000000000",),
    "ledgers have the number of recorded lines": (WITHOUT_CHECKS, "UPDATE ledgers SET number = 0"),
    "ledgers have numbers that are texts": (WITHOUT_CHECKS, "UPDATE ledgers SET number = 'x'"),
    "bodies are texts": (
        "UPDATE \"records reservations\" SET body = 'x', told = 'y', seq = 'z'",
    ),
    "records point elsewhere": ('UPDATE "records messages" SET seq = 10 * seq, told = 10 * told',),
    "a kind that cannot be a file": ("INSERT INTO meta VALUES (char(98,111,114,110,32,0,47), 1)",),
    "a text that is none": ("UPDATE meta SET value = CAST(x'ff' AS TEXT) WHERE key = 'seq'",),
    "no lines": ("DELETE FROM lines",),
    "no ledgers": ("DELETE FROM ledgers",),
    "no notes": ("DELETE FROM meta",),
}  # fmt: skip


@pytest.fixture
def memory(small: Path, quick: QuickQueen) -> Happening:
    """The memory of a hive with a line that git took away, and with both kinds of grants."""
    quick("claim", "qb-1", as_="reviewer")
    quick("reserve", "src/a.py", as_="reviewer")
    quick("msg", "send", "ui-engineer", "again", as_="reviewer")
    happening = Happening(small)
    happening.change()
    return happening


def ledgers(repo: Path) -> dict[str, list[bytes]]:
    found = sorted((repo / ".beads").glob("queen_*.jsonl"))
    return {path.name: path.read_bytes().splitlines() for path in found}


def works_as_ever(quick: QuickQueen, repo: Path) -> None:
    """Every line is there once; reads and writes do what they do in any hive."""
    before, started_s = ledgers(repo), time.monotonic()
    sent = quick("msg", "send", "ui-engineer", "new", as_="reviewer")
    assert sent.code == 0, sent.err
    bodies = [m["body"] for m in quick("msg", "inbox", "--json", as_="ui-engineer").json]
    assert sorted(bodies) == ["again", "hello", "new"]
    assert quick("reserve", "docs/x.md", as_="ui-engineer").code == 5
    assert quick("claim", "qb-1", as_="ui-engineer").code == 5
    doctor = quick("doctor", "--fix", as_="reviewer")
    assert doctor.code == 0, doctor.out
    after = ledgers(repo)
    assert {name: after[name][: len(lines)] for name, lines in before.items()} == before
    assert all(set(Counter(lines).values()) == {1} for lines in after.values())
    assert sum(map(len, after.values())) == sum(map(len, before.values())) + 1
    left = [row for row in quick("doctor", "--json").json if row["code"] != "set_aside"]
    assert [row for row in left if row["severity"] == "error"] == []
    assert time.monotonic() - started_s < 20


@pytest.mark.parametrize("name", LAYOUTS)
def test_other_tables_are_set_aside_and_made_anew(
    quick: QuickQueen, small: Path, memory: Happening, name: str
) -> None:
    memory.change(*LAYOUTS[name])
    works_as_ever(quick, small)
    assert len([p for p in state(small) if "damaged" in p.name]) >= 1
    with closing(sqlite3.connect(memory.path)) as database:
        assert tables.is_as_made(tables.schema_of(database))


@pytest.mark.parametrize("name", ROWS)
def test_other_rows_stop_nothing(
    quick: QuickQueen, small: Path, memory: Happening, name: str
) -> None:
    memory.change(*ROWS[name])
    works_as_ever(quick, small)


def test_numbers_go_on_after_the_greatest(
    quick: QuickQueen, small: Path, memory: Happening
) -> None:
    """A note of it that is too low is not even damage."""
    memory.change(*ROWS["the last number is below"])
    assert quick("msg", "send", "ui-engineer", "new", as_="reviewer").code == 0
    assert not [path for path in state(small) if "damaged" in path.name]


# Files of other programs.

FOREIGN: dict[str, tuple[str, ...]] = {
    "names its program": ("PRAGMA application_id = 252006673", "CREATE TABLE places (url)"),
    "is empty, and names its program": ("PRAGMA application_id = 7", "VACUUM"),
    "has other tables": ("CREATE TABLE places (url)", "INSERT INTO places VALUES ('x')"),
    "has a table of our name": ("CREATE TABLE lines (text)", "PRAGMA user_version = 1"),
    "has version -1": ("PRAGMA user_version = -1", "CREATE TABLE places (url)"),
    "has our version": (f"PRAGMA user_version = {tables.LINES_VERSION}", "CREATE TABLE p (url)"),
    "keeps a log": ("PRAGMA journal_mode = WAL", "CREATE TABLE places (url)"),
}
COMMANDS = (
    "msg inbox",
    "msg send ui-engineer hello",
    "claim qb-1",
    "hive index rebuild",
    "doctor --fix",
)


@pytest.mark.some(12)
@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("name", FOREIGN)
def test_a_database_of_another_program_is_refused_and_left_alone(
    quick: QuickQueen, small: Path, name: str, words: str
) -> None:
    happening = Happening(small)
    happening.remove()
    with closing(sqlite3.connect(happening.path, isolation_level=None)) as database:
        for each in FOREIGN[name]:
            database.execute(each)
    before, written = happening.path.read_bytes(), ledgers(small)
    refused = quick(*words.split(" "), as_="reviewer")
    assert refused.code == 7
    said, hint = refused.err.strip().splitlines()[-2:]
    assert f"{happening.path} is the database of another program" in said
    assert f"mv {happening.path}" in hint
    assert (happening.path.read_bytes(), ledgers(small)) == (before, written)
    happening.path.rename(happening.path.with_name("as the hint says"))
    assert quick(*words.split(" "), as_="reviewer").code == 0


def test_a_log_of_another_program_is_left_alone(quick: QuickQueen, small: Path) -> None:
    happening = Happening(small)
    happening.remove()
    with closing(sqlite3.connect(happening.path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("PRAGMA application_id = 7")
        other.execute("CREATE TABLE places (url)")
        files = [happening.path, Path(f"{happening.path}-wal")]
        before = [path.read_bytes() for path in files]
        copies = [happening.path.with_name(f"copy{n}") for n in range(2)]
        for path, data in zip(copies, before, strict=True):
            path.write_bytes(data)
    happening.remove()
    for copy, path in zip(copies, files, strict=True):
        copy.rename(path)
    assert "another program" in quick("msg", "send", "a", "x", as_="reviewer").err
    assert [path.read_bytes() for path in files] == before


def test_an_empty_file_is_a_new_memory(quick: QuickQueen, small: Path) -> None:
    happening = Happening(small)
    happening.remove()
    with closing(sqlite3.connect(happening.path)) as database:
        database.execute("VACUUM")
    works_as_if_new(quick)


def works_as_if_new(quick: QuickQueen) -> None:
    assert quick("msg", "send", "ui-engineer", "new", as_="reviewer").code == 0
    assert len(quick("msg", "inbox", "--json", as_="ui-engineer").json) == 2


# What only the memory has.


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "name", ["lines with another column", "a trigger refuses each line", "no index of lines",
             "no marks", "version -1", "no records"],
)  # fmt: skip
def test_lines_that_git_took_away_are_carried_over(
    quick: QuickQueen, small: Path, memory: Happening, name: str
) -> None:
    (small / ".beads" / "queen_messages.jsonl").write_bytes(b"")
    memory.change(*LAYOUTS[name])
    bodies = [each["body"] for each in quick("msg", "inbox", "--json", as_="ui-engineer").json]
    assert sorted(bodies) == ["again", "hello"]
    [said] = [each for each in quick("doctor", "--json").json if each["code"] == "set_aside"]
    assert "all its lines are in the new one" in said["message"]


@pytest.mark.parametrize("name", ["lines is an endless view", "lines is a view of them"])
def test_doctor_says_what_may_be_lost(
    quick: QuickQueen, small: Path, memory: Happening, name: str
) -> None:
    memory.change(*LAYOUTS[name])
    quick("msg", "inbox", as_="reviewer")
    [said] = [each for each in quick("doctor", "--json").json if each["code"] == "set_aside"]
    assert "part of it cannot be read: a line that git had removed" in said["message"]
    assert said["hint"].startswith("if you do not need it: rm ")


@pytest.mark.parametrize("gap", [1000, 10**15])
def test_reading_passes_damaged_pages_whatever_the_numbers_are(tmp_path: Path, gap: int) -> None:
    place = Place(tmp_path)
    place.record(*(line(f"qm-{number:03}", 1, body="x" * 200) for number in range(200)))
    path = place.state_dir / "hive.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE lines SET seq = seq + ? WHERE seq > 150", (gap,))
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    for number in (60, 120):
        at = data.index(b'"qm-%03d"' % number) // 4096 * 4096
        data[at : at + 4096] = b"\xff" * 4096
    path.write_bytes(data)
    started_s = time.monotonic()
    found = salvage.salvaged(str(path))
    ids = {json.loads(each)["id"] for each in found.lines["messages"]}
    assert {"qm-000", "qm-090", "qm-199"} <= ids
    assert len(ids) > 160
    assert not found.is_whole
    assert time.monotonic() - started_s < 5


def test_a_folder_where_nothing_can_be_renamed_is_read_by_what_the_ledgers_have(
    queen: Queen, small: Path, memory: Happening
) -> None:
    memory.change(*LAYOUTS["lines is an endless view"])
    folder = memory.path.parent
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    try:
        ran = queen("msg", "inbox", "--json", as_="ui-engineer", unprivileged=True)
        assert sorted(each["body"] for each in ran.json) == ["again", "hello"]
        refused = queen("msg", "send", "ui-engineer", "x", as_="reviewer", unprivileged=True)
        assert (refused.code, "cannot be" in refused.err) == (7, True)
    finally:
        folder.chmod(mode)


def test_a_process_that_has_it_open_sees_that_its_tables_were_changed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with closing(FilesMemory(place.layout)) as memory:
        memory.write({"messages": [line("qm-1")]})
        with closing(sqlite3.connect(memory.database.path, isolation_level=None)) as other:
            for each in LAYOUTS["a trigger deletes each line"]:
                other.execute(each)
        memory.write({"messages": [line("qm-2")]})
        memory.write({"messages": [line("qm-3")]})
        assert place.recorded() == [line("qm-1"), line("qm-2"), line("qm-3")]
    assert place.content() == b"".join(line(f"qm-{n}") + b"\n" for n in (1, 2, 3))
    assert place.state().keys() == {"qm-1", "qm-2", "qm-3"}


# What the doctor finds.

DIFFERING = {
    "a record is gone": 'DELETE FROM "records messages" WHERE change = 1',
    "a record has another owner": 'UPDATE "records messages" SET "to" = \'x\'',
    "a record is read": 'UPDATE "records messages" SET read = 1',
    "a record is another": 'UPDATE "records messages" SET seq = (SELECT max(seq) FROM lines '
    "WHERE kind = 'messages')",
    "a record has another line": 'UPDATE "records messages" SET told = (SELECT max(seq) FROM lines '
    "WHERE kind = 'messages')",
    "a line is gone": "DELETE FROM lines WHERE seq = (SELECT min(seq) FROM lines WHERE kind = "
    "'messages')",
    "a line is nobody's": "UPDATE lines SET loose = 77 WHERE kind = 'messages'",
}


@pytest.mark.parametrize("name", DIFFERING)
def test_the_doctor_finds_and_mends_what_differs_from_the_ledgers(
    quick: QuickQueen, small: Path, memory: Happening, name: str
) -> None:
    memory.change(DIFFERING[name])
    before = ledgers(small)
    found = quick("doctor", "--json").json
    assert {each["code"] for each in found} & {"index", "set_aside"}
    assert quick("doctor", "--fix").code == 0
    assert quick("doctor", "--json").code == 0
    bodies = [each["body"] for each in quick("msg", "inbox", "--json", as_="ui-engineer").json]
    assert sorted(bodies) == ["again", "hello"]
    assert ledgers(small) == before


# Anything.

IN_ORDER = [line(f"qm-{n}", 1, body="x" * n) for n in range(8)]
VALUES = st.sampled_from(
    ["NULL", "0", "-1", "1", "2", "1.5", "'x'", "x'00'", "''", "10000000000", str(HUGE),
     f"-{HUGE}", "'messages'", "'reservations'", "'[]'", "CAST(x'ff' AS TEXT)", "rowid"],
)  # fmt: skip
COLUMNS = {
    "lines": ["seq", "kind", "first", "raw", "sum", "loose", "archived"],
    "ledgers": ["number", "path", "kind", "inode", "offset", "sum", "changed_ns", "is_whole",
                "recorded_to", "unusable", "archive", "settled_bytes", "due_offset", "due_sum",
                "due_ns", "due_to"],
    "meta": ["key", "value"],
    "records messages": ["change", "id", "told", "created_ms", "read", "deleted", "end_key", "seq",
                         "body", "body_sum", "to", "from"],
    "marks": ["kind", "id", "name"],
}  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Returns a change of any table, of its rows or of its definition."""
    table = draw(st.sampled_from([*COLUMNS]))
    column = draw(st.sampled_from(COLUMNS[table]))
    value = draw(VALUES)
    if table in ("ledgers", "meta", "marks"):  # They have no row ids.
        value = value.replace("rowid", "0")
    first = f'"{column}" = (SELECT min("{column}") FROM "{table}")'
    return draw(
        st.sampled_from(
            [
                f'UPDATE OR REPLACE "{table}" SET "{column}" = {value}',
                f'UPDATE OR REPLACE "{table}" SET "{column}" = {value} WHERE {first}',
                f'DELETE FROM "{table}" WHERE "{column}" > {value}',
                f'DELETE FROM "{table}"',
                f'DROP TABLE "{table}"',
                f'ALTER TABLE "{table}" RENAME TO other',
                f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO other',
                f'ALTER TABLE "{table}" ADD COLUMN other DEFAULT {value}',
                f'CREATE INDEX more ON "{table}" ("{column}")',
                f'CREATE TRIGGER more AFTER INSERT ON "{table}" BEGIN DELETE FROM "{table}"; END',
                f'CREATE VIEW other AS SELECT * FROM "{table}"',
                f"UPDATE sqlite_master SET sql = NULL WHERE name = '{table}'",
                f"UPDATE sqlite_master SET rootpage = 2 WHERE name = '{table}'",
                f"UPDATE sqlite_master SET tbl_name = 'lines' WHERE name = '{table}'",
                "PRAGMA user_version = -1",
                "PRAGMA user_version = 0",
                "PRAGMA journal_mode = DELETE",
            ]
        )
    )


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(changes=st.lists(statements(), min_size=1, max_size=4), is_gone=st.booleans())
def test_any_change_of_the_file_stops_nothing(
    tmp_path_factory: pytest.TempPathFactory, changes: list[str], is_gone: bool
) -> None:
    """Each line of the ledger is there once, and each new one; after a rebuild, all is as it
    should be.
    """
    place = Place(tmp_path_factory.mktemp("place"))
    place.record(*IN_ORDER)
    if is_gone:  # What git took away may come back, once; or it is lost.
        place.ledger().write_bytes(b"".join(each + b"\n" for each in IN_ORDER[4:]))
    with closing(sqlite3.connect(place.state_dir / "hive.sqlite3", isolation_level=None)) as other:
        for each in (WITHOUT_CHECKS, "PRAGMA writable_schema = ON", *changes):
            with suppress(sqlite3.Error):
                other.execute(each)
    new = [line("qm-new"), line("qm-newer")]
    started_s = time.monotonic()
    place.state()
    for each in new:
        place.record(each)
    with closing(FilesMemory(place.layout)) as memory:
        memory.rebuild()
        known = {hash(raw) for (raw,) in memory.database.ask("SELECT raw FROM lines")}
        assert memory.differing("messages", known) == 0
    assert time.monotonic() - started_s < 5
    there = place.content().splitlines()
    assert len(there) == len({*there}), changes
    assert {*there} >= {*IN_ORDER[4:], *new}
    assert {*there} <= {*IN_ORDER, *new}
    assert place.state().keys() >= {json.loads(each)["id"] for each in there}


def test_a_refusal_is_one_of_ours(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.record(*IN_ORDER)
    path = place.state_dir / "hive.sqlite3"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA application_id = 5")
    with pytest.raises(QueenError, match="the database of another program"):
        place.record(line("qm-new"))


def state(repo: Path) -> list[Path]:
    return sorted((repo / ".git" / "queenbee").glob("hive.sqlite3*"))
