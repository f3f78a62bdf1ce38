"""Rows are added to the tracker's file as a whole, and no other byte of it is touched."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path

import pytest
from hives import write_lines
from hypothesis import given
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.core.beads import Issue, read_rows
from queenbee.core.readiness import ends_that_matter, is_work, open_standings
from queenbee.errors import Busy, InvalidInput, Unreadable, Unwritable
from queenbee.store import issues_file
from queenbee.store.issues_file import (
    append_rows,
    read,
    read_rows_exactly,
    read_unsettled,
    rows_at,
)

ROW = {"id": "qb-1", "title": "One", "status": "open"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "issues.jsonl")


def added(path: str, *lines: bytes) -> bytes:
    append_rows(path, lines).close()
    return Path(path).read_bytes()


class TestAppending:
    def test_makes_the_file(self, path: str) -> None:
        assert added(path, b'{"id":"a"}', b'{"id":"b"}') == b'{"id":"a"}\n{"id":"b"}\n'

    def test_comes_after_existing_rows(self, path: str) -> None:
        Path(path).write_bytes(b"whatever\r\n")
        assert added(path, b"x") == b"whatever\r\nx\n"

    def test_ends_a_torn_last_line_and_keeps_its_bytes(self, path: str) -> None:
        Path(path).write_bytes(b'{"id":"a"}\n{"id":"to')
        assert added(path, b"x") == b'{"id":"a"}\n{"id":"to\nx\n'

    def test_is_one_write(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        Path(path).write_bytes(b"torn")
        written: list[bytes] = []
        write = os.write

        def watched(fd: int, data: bytes) -> int:
            written.append(bytes(data))
            return write(fd, data)

        monkeypatch.setattr(os, "write", watched)
        added(path, b"x", b"y")
        assert written == [b"\nx\ny\n"]

    @given(st.integers(0, 11))
    def test_leaves_nothing_when_the_disk_is_full_at_any_byte(self, room: int) -> None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "issues.jsonl")
            file.write_bytes(b"old\n")
            write = os.write

            def full(fd: int, data: bytes) -> int:
                nonlocal room
                if room <= 0:
                    raise OSError(errno.ENOSPC, "No space left on device")
                count = write(fd, bytes(data)[:room])
                room -= count
                return count

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "write", full)
                with pytest.raises(Unwritable, match="nothing was recorded"):
                    append_rows(str(file), [b"first", b"second"])
            assert file.read_bytes() == b"old\n"

    def test_is_taken_back_as_a_whole(self, path: str) -> None:
        Path(path).write_bytes(b"torn")
        receipt = append_rows(path, [b"x", b"y"])
        receipt.take_back()
        receipt.close()
        assert Path(path).read_bytes() == b"torn"

    def test_does_not_follow_a_link_out_of_the_hive(self, path: str, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.write_bytes(b"mine\n")
        Path(path).symlink_to(other)
        with pytest.raises((Unreadable, Unwritable)):
            append_rows(path, [b"x"])
        assert other.read_bytes() == b"mine\n"

    def test_is_refused_if_the_tracker_replaced_the_file_in_between(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path(path).write_bytes(b"old\n")
        replaced_during_a_write(path, monkeypatch)
        with pytest.raises(Busy, match="was replaced by another program"):
            append_rows(path, [b"x"])
        assert Path(path).read_bytes() == b"new\n"


def replaced_during_a_write(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the file be replaced, as Beads does, at the moment of the next write to it."""
    write = os.write

    def replacing(fd: int, data: bytes) -> int:
        monkeypatch.undo()
        Path(path + ".new").write_bytes(b"new\n")
        os.replace(path + ".new", path)
        return write(fd, data)

    monkeypatch.setattr(os, "write", replacing)


class TestReading:
    def test_counts_lines_that_are_neither_rows_nor_memories(self, path: str) -> None:
        write_lines(Path(path), ROW, "<<<<<<< HEAD", '{"_type":"memory"}', "", '{"id":')
        found = read(path)
        assert found.rows == [ROW]
        assert [number for number, _ in found.unusable] == [2, 5]

    def test_shows_an_issue_whose_row_is_torn_as_unreadable(self, path: str) -> None:
        torn = '{"title":"\\"id\\":\\"no\\"","id":"qb-\\u0037","comments":[{"id":"qb-9"'
        write_lines(Path(path), ROW, torn)
        found = read(path)
        assert [row["id"] for row in found.rows] == [ROW["id"], "qb-7"]
        assert found.rows[1]["status"] == "unreadable"
        assert not found.anonymous

    def test_takes_a_readable_row_before_a_torn_one(self, path: str) -> None:
        write_lines(Path(path), f'{{"id":"{ROW["id"]}","stat', ROW)
        assert read(path).rows == [ROW]

    @pytest.mark.parametrize(
        ("line", "anonymous"),
        [
            ("=======", False),
            ('"status":"open"}', True),
            ('{"id":7,', True),
            ('{"_type":"m"', False),
        ],
    )
    def test_says_whether_a_line_may_be_the_row_of_any_issue(
        self, path: str, line: str, anonymous: bool
    ) -> None:
        write_lines(Path(path), ROW, line)
        assert read(path).anonymous is anonymous

    def test_finds_nothing_in_a_missing_file(self, path: str) -> None:
        assert (read(path).rows, read(path).unusable) == ([], [])
        assert read_rows_exactly(path) == []

    def test_keeps_every_digit_where_a_row_is_to_be_written_again(self, path: str) -> None:
        long = 123456789012345678901234567890
        write_lines(Path(path), json.dumps({**ROW, "serial": long}))
        assert read_rows_exactly(path)[0]["serial"] == long


class TestATransaction:
    def test_adds_a_row_when_it_ends(self, hive: Hive, beads: Path) -> None:
        with hive.transaction() as tx:
            tx.append_issue(ROW)
            assert not (beads / "issues.jsonl").exists()
        assert (beads / "issues.jsonl").read_bytes() == (
            b'{"id":"qb-1","title":"One","status":"open"}\n'
        )
        assert hive.issues.get("qb-1").title == "One"

    def test_that_fails_adds_none(self, hive: Hive, beads: Path) -> None:
        with pytest.raises(ZeroDivisionError), hive.transaction() as tx:
            tx.append_issue(ROW)
            raise ZeroDivisionError
        assert not (beads / "issues.jsonl").exists()

    def test_takes_its_rows_back_where_a_ledger_cannot_be_written(
        self, hive: Hive, beads: Path
    ) -> None:
        write_lines(beads / "issues.jsonl", ROW)
        before = (beads / "issues.jsonl").read_bytes()
        (beads / "queen_verifications.jsonl").mkdir()
        with pytest.raises((Unreadable, Unwritable)), hive.transaction() as tx:
            tx.append_issue({**ROW, "title": "Two"})
            tx.create("verifications", {"subject_id": "qb-1"})
        assert (beads / "issues.jsonl").read_bytes() == before

    def test_refuses_a_row_that_no_reader_takes(self, hive: Hive, beads: Path) -> None:
        with pytest.raises(InvalidInput, match="a line holds at most"), hive.transaction() as tx:
            tx.append_issue({**ROW, "description": "x" * 2**20})
        assert not (beads / "issues.jsonl").exists()

    @pytest.mark.linux
    @pytest.mark.parametrize(("durability", "waits"), [("synced", 1), ("buffered", 0)])
    def test_waits_for_the_disk_as_the_hive_is_set(
        self, repo: Path, durability: str, waits: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hive = Hive.open(repo, droid="ui", env={"QUEEN_DURABILITY": durability})
        synced: list[str] = []
        monkeypatch.setattr(
            os, "fdatasync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        )
        with hive.transaction() as tx:
            tx.append_issue(ROW)
            assert synced == []
        assert synced == [hive.layout.issues_path] * waits


IDS = st.sampled_from(["qb-1", "qb-2", "qb-3", "qb-wisp-4"])
DEPENDENCY = st.fixed_dictionaries(
    {
        "depends_on_id": IDS,
        "type": st.sampled_from(["blocks", "conditional-blocks", "waits-for", "parent-child"]),
    }
)
TRACKED = st.fixed_dictionaries(
    {"id": IDS, "status": st.sampled_from(["open", "closed", "tombstone", "deferred"])},
    optional={
        "updated_at": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "?"]),
        "issue_type": st.sampled_from(["task", "gate", ["task"], "ours"]),
        "close_reason": st.sampled_from(["it failed", "Completed"]),
        "defer_until": st.just("2999-01-01T00:00:00Z"),
        "is_template": st.booleans(),
        "dependencies": st.lists(DEPENDENCY, max_size=2),
        "metadata": st.sampled_from([{"status": "open", "id": "qb-1"}, {}]),
    },
)


class TestReadingWhatIsNotSettled:
    @given(st.lists(TRACKED, max_size=12), st.integers(1, 400), st.booleans())
    def test_answers_as_reading_everything_does(
        self, rows: list[dict[str, object]], piece_bytes: int, torn: bool
    ) -> None:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(issues_file, "_PIECE_BYTES", piece_bytes)
            path = os.path.join(folder, "issues.jsonl")
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            Path(path).write_text(text.removesuffix("\n") if torn else text, encoding="utf-8")
            everything = read_rows(read(path).rows)
            found = read_unsettled(path)
            assert found is not None
            settled = rows_at(path, found.settled)
            assert {**found.rows, **settled} == {k: one.fields for k, one in everything.items()}
            assert all(map(is_work, read_rows(settled.values()).values()))
            some = {key: Issue(row) for key, row in found.rows.items()}
            ends = ends_that_matter(some.values()) & settled.keys()
            some.update((key, Issue(settled[key])) for key in ends)
            assert _standings(some) == _standings(everything)

    @pytest.mark.parametrize(
        "line",
        [b"{", b"[]", b'"id"', b"{}", b'{"id":5}', b'{"id":""}', b'{"id":["x"]}', b"<<<<<<< a"],
    )
    def test_leaves_a_line_that_is_no_issue_to_reading_everything(
        self, path: str, line: bytes
    ) -> None:
        Path(path).write_bytes(b'{"id":"qb-1","status":"closed"}\n' + line + b"\n")
        assert read_unsettled(path) is None

    def test_leaves_a_row_that_is_too_deep_or_too_long_to_reading_everything(
        self, path: str
    ) -> None:
        for value in ("[" * 128 + "]" * 128, f'"{"x" * 1024 * 1024}"'):
            Path(path).write_text(f'{{"id":"qb-1","x":{value}}}\n', encoding="utf-8")
            assert read_unsettled(path) is None

    def test_notices_that_the_file_was_replaced(self, path: str) -> None:
        Path(path).write_bytes(b'{"id":"qb-1","status":"closed"}\n')
        found = read_unsettled(path)
        assert found is not None
        os.rename(path, f"{path}.old")
        Path(path).write_bytes(b'{"id":"qb-1","status":"open"}\n')
        assert rows_at(path, found.settled) == {}


def _standings(issues: dict[str, Issue]) -> dict[str, dict[str, object]]:
    found = open_standings(issues, holders={}, now_ms=0, held_back={}, everything=True)
    # Of two parents that are blocked, the first row names what their child waits for.
    return {
        key: {
            **each.to_dict(),
            "waits_for": bool(each.waits_for),
            "parent": each.has_open_children,
        }
        for key, each in found.items()
    }
