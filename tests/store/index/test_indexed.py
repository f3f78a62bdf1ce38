"""The index answers exactly as the fold in memory does, whatever happened to the files."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from extent import examples
from hives import git, is_open
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_files import content

from queenbee import Hive
from queenbee.errors import Held, Taken, Unreadable
from queenbee.store.engines import opening
from queenbee.store.index import intake as index_intake
from queenbee.store.index import tables as index_tables
from queenbee.store.index.folding import Taker
from queenbee.store.index.indexed import Indexed
from queenbee.store.index.tables import remove
from queenbee.store.ledger import rotation
from queenbee.store.ledger.batch import Position
from queenbee.store.ledger.ledger import Ledger
from queenbee.store.state import Folded

KIND = "messages"
IDS = [f"qm-{n}" for n in range(6)]
DROIDS = ["alice", "bob", "queen"]


def line_of(draw_id, rev, to, read, body, minute, **more):
    fields = {
        "id": draw_id,
        "created_at": f"2026-01-01T00:{minute:02d}:00.000Z",
        "from": "alice",
        "to": to,
        "body": body,
        "read": read,
        **more,
    }
    if rev:
        fields["rev"] = rev
    return json.dumps(fields, separators=(",", ":")).encode()


lines = st.builds(
    line_of,
    st.sampled_from(IDS),
    st.integers(0, 4),
    st.sampled_from(DROIDS),
    st.booleans(),
    st.sampled_from(["", "hello world", "läuft ✓"]),
    st.integers(0, 3),
    deleted=st.booleans(),
    thread_id=st.sampled_from([None, "qm-0", 7]),
)
junk = st.sampled_from([b"{torn", b"<<<<<<< ours", b"[]", b"", b'{"_migration":"v1_to_v2"}'])
any_line = st.one_of(lines, lines, lines, junk)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(lines, min_size=1, max_size=3)),
        st.tuples(st.just("append by a reader"), st.lists(lines, max_size=3)),
        st.tuples(st.just("foreign"), st.lists(any_line, min_size=1, max_size=3)),
        st.tuples(st.just("rewrite"), st.integers(0, 2**16)),
        st.tuples(st.just("rewrite_to"), st.integers(0, 4)),
        st.tuples(st.just("unended"), lines),
        st.tuples(st.just("strip"), st.none()),
        st.tuples(st.just("crlf"), st.just(None)),
        st.tuples(st.just("read"), st.just(None)),
        st.tuples(st.just("rotate"), st.sets(st.sampled_from(IDS), min_size=1)),
        st.tuples(st.just("pull segment"), st.lists(lines, min_size=1, max_size=3)),
        st.tuples(st.just("lose segment"), st.integers(0, 3)),
        st.tuples(st.just("forget note"), st.just(None)),
    ),
    min_size=1,
    max_size=9,
)


def apply(step, argument, ledger):
    """Does to the files what a writer, a foreign tool, or git would do."""
    path = ledger.path
    if step == "append":
        receipt = ledger.append(argument)
        receipt.close()
    elif step == "foreign":
        with open(path, "ab") as file:
            file.write(b"".join(each + b"\n" for each in argument))
    elif step == "unended":
        with open(path, "ab") as file:
            file.write(argument)
    elif step == "rotate":
        rotation.rotate(ledger, lambda fields: fields["id"] in argument)
    elif step == "pull segment":
        name = ledger.archive.next_name(ledger.archive.listing())
        os.makedirs(ledger.archive.folder, exist_ok=True)
        with open(ledger.archive.path(name), "wb") as file:
            file.write(b"".join(each + b"\n" for each in argument))
    elif step == "lose segment":
        for name in list(ledger.archive.listing())[argument : argument + 1]:
            os.unlink(ledger.archive.path(name))
    elif step == "forget note":
        for name in ("journal.jsonl.archived",):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(os.path.dirname(path), name))
    elif os.path.exists(path):
        with open(path, "rb") as file:
            data = file.read()
        if step == "rewrite_to":
            data = b"".join(data.splitlines(keepends=True)[:argument])
        elif step == "rewrite":
            shuffled = data.split(b"\n")
            random.Random(argument).shuffle(shuffled)
            data = b"\n".join(shuffled[: max(1, len(shuffled) - argument % 3)]) + b"\n"
        elif step == "strip":
            data = data.rstrip(b"\n")
        else:
            data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        os.unlink(path)
        with open(path, "wb") as file:
            file.write(data)


def answers(records):
    """Everything that services may ask, in one value."""
    records.refresh()
    by_id = sorted(records.everything(), key=lambda fields: fields["id"])
    return {
        "everything": by_id,
        "get": [records.get(each) for each in IDS],
        "exact": [records.exact(each) for each in IDS],
        "history": [records.history(each) for each in IDS],
        "first": [records.first_line(each) for each in IDS],
        "to": [records.select({"to": each}) for each in DROIDS],
        "unread": [records.select({"to": each, "read": False}, limit=2) for each in DROIDS],
        "newest": records.select({"from": "alice"}, newest_first=True, limit=3),
        "since": records.select({}, since_ms=1_767_225_660_000),
        "thread": records.select({"thread_id": "qm-0"}),
        "project": sorted(records.project(("id", "to"), {}), key=str),
        "body": sorted(records.project(("id", "body"), {"to": "bob"}), key=str),
        "distinct": {each for each in records.distinct("to") if each is not None},
        "greatest": records.greatest("thread_id"),
        "unusable": records.unusable,
        "migrations": len({json.dumps(each) for each in records.migrations}),
    }


def check_history(tmp_path, history):
    """Asserts that an index kept along, one built at the end, and the fold answer alike."""
    shutil.rmtree(tmp_path, ignore_errors=True)
    os.makedirs(tmp_path)
    paths = str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal.jsonl")
    writer = Ledger(*paths)
    kept = Indexed(KIND, Ledger(*paths), str(tmp_path / "kept.sqlite3"))
    try:
        for step, argument in history:
            if step == "read":
                kept.refresh()
            elif step == "append by a reader":
                kept.refresh()
                kept.append(argument).close()
            else:
                apply(step, argument, writer)
        truth = answers(Folded(KIND, Ledger(*paths)))
        late = Indexed(KIND, Ledger(*paths), str(tmp_path / "late.sqlite3"))
        try:
            assert answers(late) == truth
            assert answers(kept) == truth
        finally:
            late.close()
    finally:
        kept.close()


@pytest.mark.slow
@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps)
def test_an_index_answers_as_the_fold_does_after_any_history(tmp_path, history):
    """Writers, foreign tools, git, torn lines: the index is never worth more or less."""
    check_history(tmp_path / "hive", history)


def test_lines_that_git_took_out_of_the_ledger_are_looked_for_in_the_journal(tmp_path):
    one = line_of("qm-1", 1, "bob", False, "hello world", 0)
    two = line_of("qm-2", 1, "bob", False, "hello world", 1)
    history = [("append", [one]), ("append", [two]), ("rewrite", 1), ("rewrite", 2)]
    check_history(tmp_path / "hive", history)


def test_a_segment_that_git_brought_is_read(tmp_path):
    one = line_of("qm-1", 1, "bob", False, "hello world", 0)
    history = [("append", [one]), ("read", None), ("pull segment", [one.replace(b"-1", b"-2")])]
    check_history(tmp_path / "hive", history)


def test_a_foreign_line_that_git_took_away_is_gone(tmp_path):
    one = line_of("qm-1", 1, "bob", False, "hello world", 0)
    history = [("append", [one]), ("foreign", [one.replace(b"-1", b"-2")]), ("read", None)]
    history += [("rewrite_to", 1)]
    check_history(tmp_path / "hive", history)


class TestPlacesOfTheArchive:
    """Where a line without `rev` stands is what it means, and what a note says must be of here."""

    bare = line_of("qm-1", 0, "bob", False, "hello world", 0)
    three = line_of("qm-1", 3, "alice", False, "", 1)

    def test_a_segment_that_left_takes_its_places_along(self, tmp_path):
        history = [
            ("append", [self.three]),
            ("pull segment", [self.bare]),
            ("append", [line_of("qm-2", 1, "bob", False, "", 0)]),
            ("read", None),
            ("lose segment", 0),
        ]
        check_history(tmp_path / "hive", history)

    def test_a_new_index_has_them_too(self, tmp_path):
        """What a segment brought is also in the journal by then, behind other lines."""
        history = [
            ("append", [self.three]),
            ("pull segment", [self.bare]),
            ("pull segment", [line_of("qm-1", 0, "queen", True, "later", 2)]),
            ("append", [line_of("qm-2", 1, "bob", False, "", 0)]),
        ]
        check_history(tmp_path / "hive", history)

    def test_what_git_took_away_stands_behind_what_is_written_then(self, tmp_path):
        history = [
            ("append", [line_of("qm-2", 1, "bob", False, "", 0)]),
            ("append", [self.three]),
            ("read", None),
            ("rewrite_to", 1),
            ("read", None),
            ("foreign", [self.bare]),
        ]
        check_history(tmp_path / "hive", history)

    def test_a_note_of_another_hive_says_nothing(self, tmp_path):
        one = line_of("qm-1", 1, "bob", False, "", 0)
        folders = []
        for name in ("theirs", "ours"):
            os.makedirs(tmp_path / name)
            paths = tmp_path / name / "queen_messages.jsonl", tmp_path / name / "journal.jsonl"
            folders.append(Ledger(*map(str, paths)))
        theirs, ours = folders
        theirs.append([one]).close()
        ours.append([line_of("qm-2", 1, "bob", False, "", 0)]).close()
        rotation.rotate(theirs, lambda fields: True)
        indexed = Indexed(KIND, Ledger(ours.path, ours.journal_path), str(tmp_path / "index"))
        indexed.refresh()
        shutil.copytree(theirs.archive.folder, ours.archive.folder)
        shutil.copy(theirs.journal_path + ".archived", ours.journal_path + ".archived")
        indexed.refresh()
        assert indexed.get("qm-1") is not None
        indexed.close()


def test_an_agreement_ends_with_the_archive_that_it_was_made_with(tmp_path):
    """One process rotates, git cleans the segment away, a process without an index heals."""
    paths = str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal.jsonl")
    ledger = Ledger(*paths)
    ledger.append([line_of("qm-1", 1, "bob", False, "", 0)]).close()
    rotation.rotate(ledger, lambda fields: True)
    folded = Folded(KIND, ledger)
    folded.refresh()
    indexed = Indexed(KIND, ledger, str(tmp_path / "index"))
    indexed.refresh()
    indexed.agree(folded.agreed)
    indexed.close()
    shutil.rmtree(ledger.archive.folder)
    Ledger(*paths).append([]).close()
    late = Ledger(*paths)
    indexed = Indexed(KIND, late, str(tmp_path / "index"))
    indexed.refresh()
    indexed.append([line_of("qm-2", 1, "bob", False, "", 0)]).close()
    indexed.close()
    with open(late.journal_path, "rb") as file:
        assert len(file.readlines()) == 2


@pytest.fixture
def files(tmp_path):
    """A ledger of 3 MiB, written by us, and its index, in use."""
    paths = str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal.jsonl")
    ledger = Ledger(*paths)
    many = [line_of(f"qm-{n:05}", 1, DROIDS[n % 3], False, "x" * 900, n % 60) for n in range(3000)]
    ledger.append(many).close()
    return ledger, str(tmp_path / "index.sqlite3")


def opened(files):
    ledger, path = files
    found = Indexed(KIND, Ledger(ledger.path, ledger.journal_path), path)
    found.refresh()
    return found


class TestRewrittenWhileItIsRead:
    """Git, or a rotation, does not wait for a reader."""

    def put_before(self, ledger, raw):
        """Replaces the ledger as a pull does: another inode."""
        with open(ledger.path, "rb") as file:
            data = file.read()
        os.unlink(ledger.path)
        with open(ledger.path, "wb") as file:
            file.write(raw + b"\n" + data)

    @pytest.mark.slow
    @pytest.mark.parametrize("call", [4, 6, 8])
    def test_a_ledger_is_read_again_from_there(self, files, call, monkeypatch):
        monkeypatch.setattr(index_intake, "_CHUNK_BYTES", 1024 * 1024)
        ledger, path = files
        self.put_before(ledger, b"{torn")
        indexed = Indexed(KIND, ledger, path)
        chunks, calls = ledger.chunks, []

        def rewrite_in_between(*args, **more):
            calls.append(args)
            if len(calls) == call:
                self.put_before(ledger, b"{torn")
            return chunks(*args, **more)

        monkeypatch.setattr(ledger, "chunks", rewrite_in_between)
        indexed.refresh()
        assert len(calls) > call
        indexed.refresh()
        assert (indexed.unusable, len(indexed.everything())) == (2, 3000)
        indexed.close()

    def test_also_one_that_was_rewritten_before(self, files, monkeypatch):
        """While it is compared with the journal, another pull replaces it."""
        ledger, _ = files
        indexed = opened(files)
        self.put_before(ledger, line_of("qm-one", 1, "bob", False, "", 0))
        compare = index_intake._Pass._compare

        def pull_in_between(turn):
            monkeypatch.setattr(index_intake._Pass, "_compare", compare)
            self.put_before(ledger, line_of("qm-two", 1, "bob", False, "", 0))
            compare(turn)

        monkeypatch.setattr(index_intake._Pass, "_compare", pull_in_between)
        indexed.refresh()
        assert len(indexed.everything()) == 3002
        indexed.refresh()
        assert len(indexed.everything()) == 3002
        indexed.close()


def test_an_index_that_is_up_to_date_is_not_written_to(files, monkeypatch):
    """A hot command only reads, and waits for nobody."""
    opened(files).close()
    monkeypatch.setattr(index_tables.Tables, "transaction", None)
    again = opened(files)
    assert len(again.everything()) == 3000
    assert again._folded is None
    again.close()


def test_an_index_is_taken_up_where_the_last_process_left_it(files):
    """A second process reads only what was appended since."""
    opened(files).close()
    files[0].append([line_of("qm-new", 1, "bob", False, "", 1)]).close()
    again = opened(files)
    assert again.get("qm-new")["to"] == "bob"
    assert len(again.everything()) == 3001
    again.close()


@pytest.fixture
def taken(monkeypatch):
    """The lines that indexes fold from now on."""
    lines = []
    take = Taker.take
    monkeypatch.setattr(
        Taker, "take", lambda self, some, **how: (lines.extend(some), take(self, some, **how))[1]
    )
    return lines


def put(path, data):
    """Replaces a file as git does: another inode."""
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(data)


PULLED = line_of("qm-pulled", 1, "bob", False, "", 1)


class TestWhatGitDoesToTheLedger:
    """Only the lines that the journal lacks are read again."""

    @pytest.mark.parametrize("at", [0, 1500, 3000])
    def test_a_pull_brings_lines(self, files, taken, at):
        ledger = files[0]
        opened(files).close()
        taken.clear()
        lines = content(ledger.path).splitlines(keepends=True)
        put(ledger.path, b"".join([*lines[:at], PULLED + b"\n", *lines[at:]]))
        again = opened(files)
        assert again.get("qm-pulled") is not None
        assert taken == [PULLED]
        again.close()

    def test_a_reset_takes_them_away_again(self, files, taken):
        """What only the ledger had never was; what the journal has stays."""
        ledger = files[0]
        before = content(ledger.path)
        put(ledger.path, PULLED + b"\n" + before)
        indexed = opened(files)
        assert indexed.foreign()
        taken.clear()
        put(ledger.path, before[: before.index(b"\n", len(before) // 2) + 1])
        indexed.refresh()
        assert indexed.get("qm-pulled") is None
        assert len(indexed.everything()) == 3000
        assert (indexed.foreign(), taken) == ("", [])
        indexed.close()

    def test_a_record_that_never_was_leaves_no_trace(self, files):
        """Also not for followers."""
        ledger = files[0]
        before = content(ledger.path)
        put(ledger.path, before + PULLED + b"\n")
        indexed = opened(files)
        _, cursor = indexed.changes(None)
        put(ledger.path, before)
        indexed.refresh()
        assert indexed.changes(cursor)[0] is None
        _, cursor = indexed.changes(None)
        late = line_of("qm-late", 1, "bob", False, "", 1)
        indexed.append([late]).close()
        indexed.refresh()
        assert indexed.changes(cursor)[0] == ["qm-late"]
        indexed.close()

    def test_worktrees_of_a_bare_repository_take_turns(self, files, taken, tmp_path):
        """Each has a ledger of its own, all one journal and one index."""
        ledger, path = files
        other = str(tmp_path / "other.jsonl")
        with open(other, "wb") as file:
            file.write(PULLED + b"\n" + content(ledger.path))
        opened(files).close()
        taken.clear()
        for _ in range(2):
            for tracked, there in ((other, True), (ledger.path, False)):
                indexed = Indexed(KIND, Ledger(tracked, ledger.journal_path), path)
                indexed.refresh()
                assert (indexed.get("qm-pulled") is not None) is there
                indexed.close()
        assert taken == [PULLED, PULLED]


class TestAClone:
    """There is no journal until the first write."""

    @pytest.fixture(params=["one file", "an archive"])
    def clone(self, request, files, tmp_path):
        ledger = files[0]
        if request.param == "an archive":
            rotation.rotate(ledger, lambda fields: str(fields["id"]) < "qm-02900")
        folder = tmp_path / "clone"
        os.makedirs(folder / "journal")
        shutil.copy(ledger.path, folder)
        if os.path.exists(ledger.archive.folder):
            shutil.copytree(ledger.archive.folder, folder / "archive")
        paths = folder / "queen_messages.jsonl", folder / "journal" / "messages.jsonl"
        return Ledger(*map(str, paths)), str(folder / "index.sqlite3")

    def test_is_read_once(self, clone, taken):
        opened(clone).close()
        assert len(taken) == 3000
        opened(clone).close()
        assert len(taken) == 3000

    def test_is_right_too_where_the_writer_has_no_index(self, clone):
        opened(clone).close()
        Ledger(clone[0].path, clone[0].journal_path).append([PULLED]).close()
        again = opened(clone)
        assert len(again.everything()) == 3001
        again.close()

    def test_a_pull_before_the_first_write_takes_lines_along(self, clone):
        before = content(clone[0].path)
        put(clone[0].path, PULLED + b"\n" + before)
        opened(clone).close()
        put(clone[0].path, before)
        again = opened(clone)
        assert len(again.everything()) == 3000
        again.close()


def test_a_loose_line_that_another_clone_archived_is_not_lost(files):
    """Pulled twice: first in the ledger, then in a segment instead."""
    ledger = files[0]
    before = content(ledger.path)
    put(ledger.path, before + PULLED + b"\n")
    indexed = opened(files)
    put(ledger.path, before)
    os.makedirs(ledger.archive.folder)
    with open(ledger.archive.path("queen_messages.1.jsonl"), "wb") as file:
        file.write(PULLED + b"\n")
    indexed.refresh()
    assert indexed.get("qm-pulled") is not None
    indexed.close()


@pytest.mark.slow
def test_unusable_lines_are_counted_once_however_often_git_rewrites_the_ledger(files, monkeypatch):
    """Also where a piece that was read ends elsewhere than a block, and where some went away."""
    monkeypatch.setattr(index_intake, "_CHUNK_BYTES", 700_000)
    with open(files[0].path, "rb") as file:
        data = file.read().splitlines()
    found = opened(files)
    told, true = [], []
    for places in ([10, 900, 1500, 2900], [10, 900, 2000, 2400, 2950], [10], [10, 11, 2999]):
        now = list(data)
        for place in reversed(places):
            now.insert(place, b"{torn")
        os.unlink(files[0].path)
        with open(files[0].path, "wb") as file:
            file.write(b"\n".join(now) + b"\n{torn"[: 1 + 5 * (len(places) % 2)])
        truth = Folded(KIND, Ledger(files[0].path, files[0].journal_path))
        for each in (found, truth):
            each.refresh()
        told.append(found.unusable)
        true.append(truth.unusable)
    assert told == true == [4, 6, 2, 4]
    found.close()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"garbage" * 1000, b"SQLite format 3\0" + b"\0" * 4096])
def test_a_corrupt_index_is_built_anew(files, damage):
    """Whatever stands in the index file, the answers are those of the ledger."""
    opened(files).close()
    remove(files[1])
    with open(files[1], "wb") as file:
        file.write(damage)
    again = opened(files)
    assert len(again.everything()) == 3000
    again.close()


def test_an_index_of_another_version_is_built_anew(files):
    """Tables are only read by the version that wrote them."""
    opened(files).close()
    database = sqlite3.connect(files[1])
    database.execute("PRAGMA user_version = 999")
    database.execute("DELETE FROM records")
    database.commit()
    database.close()
    again = opened(files)
    assert len(again.everything()) == 3000
    again.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", [1, 7, 40, 200, -2])
def test_damage_that_a_question_comes_upon_is_repaired(files, page):
    """The first page is whole, so the tables open; what is in them is not to be had."""
    found = opened(files)
    truth = answers(found)
    found.close()
    size = os.path.getsize(files[1])
    with open(files[1], "r+b") as file:
        file.seek(page * 4096 if page > 0 else size + page * 4096)
        file.write(random.Random(page).randbytes(2 * 4096))
    for _ in range(2):
        again = opened(files)
        assert answers(again) == truth
        again.close()
    database = sqlite3.connect(files[1])
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()


def test_an_index_that_cannot_be_used_is_not_left_open(files, databases, monkeypatch):
    """Neither one that is damaged, nor one that another process holds, nor over a bad ledger."""
    opened(files).close()
    with open(files[1], "r+b") as file:
        file.write(b"not a database at all" * 1000)
    opened(files).close()
    monkeypatch.setattr(index_tables, "_WAIT_S", 0.0)
    winner = sqlite3.connect(files[1], isolation_level=None)
    winner.execute("BEGIN IMMEDIATE")
    files[0].append([line_of("qm-new", 1, "bob", False, "", 1)]).close()
    assert len(opened(files).everything()) == 3001
    assert list(map(is_open, databases)) == [each is winner for each in databases]
    winner.close()

    os.rename(files[0].path, files[0].path + ".aside")
    os.mkdir(files[0].path)
    monkeypatch.setattr(opening, "INDEX_FROM_BYTES", 0)
    with pytest.raises(Unreadable):
        opening.open_records(KIND, Ledger(files[0].path, files[0].journal_path), files[1])
    assert len(databases) == 6
    assert not any(map(is_open, databases))


def test_an_index_that_another_process_holds_is_left_to_it(files, monkeypatch):
    """A lost race: the ledger is read, and the index of the one who won stays as it is."""
    opened(files).close()
    monkeypatch.setattr(index_tables, "_WAIT_S", 0.0)
    winner = sqlite3.connect(files[1], isolation_level=None)
    winner.execute("BEGIN IMMEDIATE")
    files[0].append([line_of("qm-new", 1, "bob", False, "", 1)]).close()
    before = os.stat(files[1]).st_ino
    loser = opened(files)
    assert loser.get("qm-new")["to"] == "bob"
    assert len(loser.everything()) == 3001
    assert (loser.unusable, loser.migrations, os.stat(files[1]).st_ino) == (0, [], before)
    winner.execute("ROLLBACK")
    winner.close()
    loser.close()


def test_an_index_is_built_anew_in_its_place(tmp_path):
    """Others wait for the one who builds it; were the file replaced, each would build one."""
    paths = str(tmp_path / "queen_messages.jsonl"), str(tmp_path / "journal.jsonl")
    with open(paths[0], "wb") as file:
        file.write(line_of("qm-1", None, "bob", False, "", 0) + b"\n")
    place = Ledger(*paths), str(tmp_path / "index.sqlite3")
    mine, theirs = opened(place), opened(place)
    before = os.stat(place[1]).st_ino
    with open(paths[0], "wb") as file:
        file.write(line_of("qm-2", None, "bob", False, "", 0) + b"\n")
    for each in (mine, theirs):
        each.refresh()
        assert [fields["id"] for fields in each.everything()] == ["qm-2"]
        each.close()
    assert os.stat(place[1]).st_ino == before


def test_what_an_index_cannot_remember_of_a_write_stops_no_write(files, monkeypatch):
    """The lines are in both files by then."""
    found = opened(files)
    found.ledger.append([line_of("qm-new", 1, "bob", False, "", 1)]).close()

    def refused(*_args):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(index_tables.Tables, "put_position", refused)
        found.agree(Position())
    found.refresh()
    assert found.get("qm-new") is not None
    found.close()


def test_an_index_deleted_while_it_is_used_does_not_change_an_answer(files):
    """Promise 6: indexes are disposable at any time."""
    found = opened(files)
    remove(files[1])
    files[0].append([line_of("qm-new", 1, "bob", False, "", 1)]).close()
    found.refresh()
    assert found.get("qm-new") is not None
    assert len(found.everything()) == 3001
    found.close()


def test_changes_tell_a_follower_what_other_processes_took_in(files):
    """A follower's cursor spans processes, since the log of changes is in the index."""
    mine, theirs = opened(files), opened(files)
    everything, cursor = mine.changes(None)
    assert everything is None
    files[0].append([line_of("qm-new", 1, "bob", False, "", 1)]).close()
    theirs.refresh()
    mine.refresh()
    changed, _ = mine.changes(cursor)
    assert changed == ["qm-new"]
    mine.close()
    theirs.close()


def test_a_line_without_rev_that_comes_back_is_not_a_new_revision(tmp_path):
    """Git takes a foreign line and our update of it away; the next write brings both back."""
    first = line_of("qm-1", None, "bob", False, "hello world", 0)
    update = line_of("qm-1", 2, "bob", True, "hello world", 0)
    history = [
        ("foreign", [line_of("qm-0", 1, "bob", False, "", 0)]),
        ("append", []),
        ("foreign", [first]),
        ("append", [update]),
        ("read", None),
        ("rewrite_to", 1),
        ("append", [line_of("qm-2", 1, "bob", False, "", 2)]),
        ("read", None),
        ("append", [line_of("qm-3", 1, "bob", False, "", 2)]),
        ("read", None),
    ]
    check_history(tmp_path / "hive", history)


_UNENDED_AND_SPOILED = [
    ("append", [line_of("qm-0", 1, "bob", False, "", 0)]),
    ("foreign", [line_of("qm-1", 1, "bob", False, "hello world", 0)]),
    ("read", None),
    ("strip", None),
    ("read", None),
    ("foreign", [line_of("qm-2", 1, "bob", False, "", 2)]),
]
"""A merge tool leaves the last line without a newline, so that the next one spoils both."""


def test_a_foreign_line_that_loses_its_newline_may_still_change(tmp_path):
    check_history(tmp_path / "hive", _UNENDED_AND_SPOILED)


def test_a_line_that_no_newline_ends_yet_counts(tmp_path):
    history = [
        ("append", [line_of("qm-0", 1, "bob", False, "", 0)]),
        ("read", None),
        ("unended", line_of("qm-1", 1, "bob", False, "", 1)),
    ]
    check_history(tmp_path / "hive", history)


def test_also_at_the_end_of_a_long_ledger(tmp_path, monkeypatch):
    """What is read of it first does not show its end."""
    monkeypatch.setattr(index_intake, "_CHUNK_BYTES", 500)
    history = [
        ("append", [line_of(f"qm-{n}", 1, "bob", False, "x" * 300, 0) for n in range(5)]),
        ("foreign", [line_of("qm-5", 1, "bob", False, "", 1)]),
        ("read", None),
        ("strip", None),
    ]
    check_history(tmp_path / "hive", history)


def test_a_question_that_no_index_can_answer_is_refused(files):
    """Also once it was built anew: it is the question that is wrong."""
    found = opened(files)
    with pytest.raises(AssertionError):
        found.distinct("body")
    assert found.get("qm-00000")["from"] == "alice"
    assert found._folded is None
    found.close()


@pytest.mark.parametrize("kind", ["reservations", "assignments"])
@pytest.mark.parametrize("of", [0, 2, 5])
def test_a_changed_bit_gives_nobody_what_another_holds(tmp_path, monkeypatch, kind, of):
    """Neither in what a grant holds nor in its status, its line, or the SQL indexes."""
    monkeypatch.setattr(opening, "INDEX_FROM_BYTES", 0)
    git(tmp_path, "init", "-q")
    (tmp_path / ".beads").mkdir()
    ada = Hive.open(tmp_path, droid="ada", env={})
    ada.reservations.reserve(["src/a.py", "src/held.py", "src/z.py"])
    for issue_id in ("shop-1", "shop-held", "shop-9"):
        ada.assignments.claim(issue_id)
    assert len(ada.reservations.find()) == len(ada.assignments.find()) == 3
    path = Path(ada.layout.index_path(kind))
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    whole = path.read_bytes()
    for found in list(re.finditer(rb"active|src/held\.py|shop-held", whole)):
        changed = bytearray(whole)
        changed[found.start() + of % len(found[0])] ^= 1 << of
        remove(str(path))
        path.write_bytes(changed)
        bob = Hive.open(tmp_path, droid="bob", env={})
        with pytest.raises((Held, Taken)):
            if kind == "reservations":
                bob.reservations.reserve(["src/held.py"])
            else:
                bob.assignments.claim("shop-held")
