"""A row of the tracker's file is replaced in place, and no other byte of it is touched."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hives import exported, write_lines
from hypothesis import given
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.core.beads import read_rows
from queenbee.core.row_edits import Edit
from queenbee.errors import Busy, InvalidInput, Unreadable, Unwritable
from queenbee.services.care.exporting import export_issues
from queenbee.store import safe_open
from queenbee.store.tracker import tracker_memory
from queenbee.store.tracker.issues_write import edited, replace_rows
from queenbee.store.whole_files import unfinished

Row = dict[str, object]

ROW = {"id": "qb-1", "title": "One", "status": "open"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "issues.jsonl")


def replace(path: str, *edits: Edit) -> None:
    replace_rows(path, lambda: edits, lambda: nullcontext(True))


def put(path: str, *rows: dict[str, object]) -> bytes:
    replace(path, *map(Edit, rows))
    return Path(path).read_bytes()


ROWS = st.fixed_dictionaries(
    {"id": st.sampled_from(["qb-1", "qb-2", "qb/3"])},
    optional={
        "title": st.text(max_size=3),
        "updated_at": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        "dependencies": st.just([{"issue_id": "qb-2", "depends_on_id": "qb-1"}]),
    },
)
LINES = st.one_of(
    ROWS.map(lambda row: json.dumps(row).encode()),
    ROWS.map(
        lambda row: json.dumps(row).replace("qb/3", "qb\\/3").replace("-1", "\\u002d1").encode()
    ),
    st.sampled_from([b"", b"<<<<<<< HEAD", b'{"_type":"memory"}', b'{"id":"qb-1","ti', b"\xff"]),
)


class TestReplacing:
    def test_makes_the_file(self, path: str) -> None:
        assert put(path, {"id": "a"}, {"id": "b"}) == b'{"id":"a"}\n{"id":"b"}\n'

    def test_adds_a_new_row_after_the_others(self, path: str) -> None:
        Path(path).write_bytes(b"whatever\r\n")
        assert put(path, {"id": "x"}) == b'whatever\r\n{"id":"x"}\n'

    def test_ends_a_torn_last_line_and_keeps_its_bytes(self, path: str) -> None:
        Path(path).write_bytes(b'{"id":"a"}\n{"id":"to')
        assert put(path, {"id": "x"}) == b'{"id":"a"}\n{"id":"to\n{"id":"x"}\n'

    @given(
        st.lists(LINES, max_size=8), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), ROWS, ROWS
    )
    def test_leaves_one_row_of_the_id_and_every_other_byte(
        self, lines: list[bytes], ending: bytes, torn: bool, row: Row, was: Row
    ) -> None:
        data = ending.join(lines) + (b"" if torn else ending)
        before = [one.removesuffix(b"\r") for one in data.split(b"\n")]
        edit = Edit({**was, **row}, was)
        after = [one.removesuffix(b"\r") for one in edited(data, [edit]).split(b"\n")]
        known = read_rows(rows_in(before))
        others = [one for one in before if not is_row_of(one, edit.issue_id)]
        kept = [one for one in after if not is_row_of(one, edit.issue_id)]
        assert [one for one in kept if one] == [one for one in others if one]
        (now,) = (one for one in rows_in(after) if one["id"] == edit.issue_id)
        old = known.get(edit.issue_id)
        assert now == ({**edit.row} if old is None else edit.made_on(dict(old.fields)))

    def test_keeps_every_digit_and_the_order_of_the_fields(self, path: str) -> None:
        row = '{"z": 123456789012345678901234567890, "id": "qb-1", "title": "One", "a": 1}\n'
        Path(path).write_text(row, encoding="utf-8")
        changed = put(path, {"id": "qb-1", "title": "Two"})
        assert changed == (
            b'{"z":123456789012345678901234567890,"id":"qb-1","title":"Two","a":1}\n'
        )

    def test_takes_a_field_away(self, path: str) -> None:
        write_lines(Path(path), {"id": "qb-1", "status": "closed", "closed_at": "now"})
        was = {"id": "qb-1", "status": "closed", "closed_at": "now"}
        replace(path, Edit({"id": "qb-1", "status": "open"}, was))
        assert Path(path).read_bytes() == b'{"id":"qb-1","status":"open"}\n'

    def test_changes_nothing_where_the_row_is_already_so(self, path: str) -> None:
        write_lines(Path(path), ROW)
        before = os.stat(path)
        assert put(path, dict(ROW)) == Path(path).read_bytes()
        assert os.stat(path).st_ino == before.st_ino

    def test_keeps_the_mode_of_the_file(self, path: str) -> None:
        write_lines(Path(path), ROW)
        os.chmod(path, 0o640)
        put(path, {"id": "x"})
        assert os.stat(path).st_mode & 0o777 == 0o640

    @given(st.integers(0, 30))
    def test_leaves_the_old_file_when_the_disk_is_full_at_any_byte(self, room: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "issues.jsonl")
            file.write_bytes(b"old\n")

            def full(fd: int) -> None:
                os.ftruncate(fd, min(room, os.fstat(fd).st_size))
                raise OSError(errno.ENOSPC, "No space left on device")

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(os, "fsync", full)
                with pytest.raises(Unwritable, match="No space left"):
                    replace(str(file), Edit({"id": "a"}), Edit({"id": "b"}))
            assert file.read_bytes() == b"old\n"
            assert os.listdir(folder) == ["issues.jsonl"]

    def test_does_not_follow_a_link_out_of_the_hive(self, path: str, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.write_bytes(b"mine\n")
        Path(path).symlink_to(other)
        with pytest.raises((Unreadable, Unwritable)):
            replace(path, Edit({"id": "x"}))
        assert other.read_bytes() == b"mine\n"
        assert Path(path).is_symlink()

    def test_removes_what_a_writer_left_that_was_killed(self, path: str, tmp_path: Path) -> None:
        left = Path(unfinished(path))
        left.write_bytes(b"half")
        os.utime(left, (0, 0))
        put(path, {"id": "x"})
        assert os.listdir(tmp_path) == ["issues.jsonl"]

    @pytest.mark.parametrize("in_place", [True, False], ids=["in-place", "by-name"])
    def test_makes_the_edit_again_on_what_another_program_wrote_meanwhile(
        self, path: str, in_place: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path(path).write_bytes(b'{"id":"qb-1","title":"old","notes":"old"}\n')
        theirs = b'{"id":"qb-1","title":"old","notes":"new"}\n{"id":"qb-2"}\n'
        written_during_a_write(path, theirs, in_place, monkeypatch)
        ours = {"id": "qb-1", "title": "NEW", "notes": "old"}
        replace(path, Edit(ours, {**ours, "title": "old"}))
        assert Path(path).read_bytes() == theirs.replace(b'"title":"old"', b'"title":"NEW"')

    def test_notices_another_content_of_the_same_size_and_time(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path(path).write_bytes(b'{"id":"qb-1","n":1}\n')
        theirs = b'{"id":"qb-1","n":2}\n'
        written_during_a_write(path, theirs, True, monkeypatch, time_ns=os.stat(path).st_mtime_ns)
        replace(path, Edit({"id": "qb-1", "t": 1}, {"id": "qb-1"}))
        assert Path(path).read_bytes() == b'{"id":"qb-1","n":2,"t":1}\n'

    def test_keeps_what_another_program_adds_at_the_last_moment(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path(path).write_bytes(b'{"id":"a"}\n')
        replace = safe_open.replace

        def late(source: str, target: str) -> None:
            with open(target, "ab") as file:
                file.write(b'{"id":"late"}\n')
            replace(source, target)

        monkeypatch.setattr(safe_open, "replace", late)
        put(path, {"id": "x"})
        assert Path(path).read_bytes() == b'{"id":"a"}\n{"id":"x"}\n{"id":"late"}\n'

    def test_gives_up_on_a_file_that_never_stops_changing(
        self, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        count = iter(range(1000))
        Path(path).write_bytes(b"")
        fsync = os.fsync

        def rewritten(fd: int) -> None:
            Path(path).write_bytes(b"%d\n" % next(count))
            fsync(fd)

        monkeypatch.setattr(os, "fsync", rewritten)
        with pytest.raises(Busy, match="again and again"):
            replace(path, Edit({"id": "x"}))
        assert b"x" not in Path(path).read_bytes()


def is_row_of(line: bytes, issue_id: str) -> bool:
    return any(row["id"] == issue_id for row in rows_in([line]))


def rows_in(lines: list[bytes]) -> list[Row]:
    found = []
    for line in lines:
        with suppress(ValueError):
            row = json.loads(line)
            found += [row] if "id" in row else []
    return found


def written_during_a_write(
    path: str,
    data: bytes,
    in_place: bool,
    monkeypatch: pytest.MonkeyPatch,
    *,
    time_ns: int | None = None,
) -> None:
    """Lets another program write the file once, right before its new version is on disk."""
    fsync = os.fsync

    def writing(fd: int) -> None:
        monkeypatch.undo()
        other = path if in_place else f"{path}.new"
        Path(other).write_bytes(data)
        if time_ns is not None:
            os.utime(other, ns=(time_ns, time_ns))
        os.replace(other, path)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", writing)


class TestReading:
    @pytest.fixture
    def tracker(self, beads: Path) -> Path:
        return beads / "issues.jsonl"

    def test_counts_lines_that_are_neither_rows_nor_memories(
        self, hive: Hive, tracker: Path
    ) -> None:
        write_lines(tracker, ROW, "<<<<<<< HEAD", '{"_type":"memory"}', "", '{"id":')
        assert hive.tracker().everything() == {"qb-1": ROW}
        assert hive.issues.unusable_lines == [2, 5]

    def test_shows_an_issue_whose_row_is_torn_as_unreadable(
        self, hive: Hive, tracker: Path
    ) -> None:
        torn = '{"title":"\\"id\\":\\"no\\"","id":"qb-\\u0037","comments":[{"id":"qb-9"'
        write_lines(tracker, ROW, torn)
        found = hive.tracker().everything()
        assert [*found] == ["qb-1", "qb-7"]
        assert found["qb-7"]["status"] == "unreadable"
        assert not hive.tracker().is_anonymous
        assert [*hive.tracker().everything(exact=True)] == ["qb-1"]
        assert export_issues(hive) == 0

    def test_takes_a_readable_row_before_a_torn_one(self, hive: Hive, tracker: Path) -> None:
        write_lines(tracker, '{"id":"qb-1","stat', ROW)
        assert hive.tracker().everything() == {"qb-1": ROW}

    @pytest.mark.parametrize(
        ("line", "anonymous"),
        [
            ("=======", False),
            ('"status":"open"}', True),
            ('{"id":7,', True),
            ('{"id":"a\\ud800b","title":"half of a pair"}', True),
            ('{"_type":"m"', False),
        ],
    )
    def test_says_whether_a_line_may_be_the_row_of_any_issue(
        self, hive: Hive, tracker: Path, line: str, anonymous: bool
    ) -> None:
        write_lines(tracker, ROW, line)
        assert hive.tracker().is_anonymous is anonymous

    @pytest.mark.parametrize("owned", [False, True])
    def test_takes_no_id_that_cannot_be_stored_for_damage(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch, owned: bool
    ) -> None:
        """The memory is not set aside, nor for such an id that is asked for."""
        hive.issues.new("first")
        monkeypatch.setattr(
            tracker_memory, "unreadable_in", lambda data: [(1, "a\ud800b", False)] * bool(data)
        )
        monkeypatch.setattr(tracker_memory.TrackerMemory, "is_owned", lambda self: owned)
        write_lines(tracker, "{")
        with pytest.raises(InvalidInput):
            hive.tracker()
        monkeypatch.undo()
        with pytest.raises(InvalidInput, match="is not UTF-8 text"):
            hive.tracker().rows(["a\udcffb"])
        assert hive.engine.memory.database.aside() == []

    def test_finds_nothing_in_a_missing_file(self, hive: Hive) -> None:
        assert (hive.tracker().everything(), hive.issues.unusable_lines) == ({}, [])

    def test_keeps_every_digit_where_a_row_is_to_be_written_again(
        self, hive: Hive, tracker: Path
    ) -> None:
        long = 123456789012345678901234567890
        write_lines(tracker, json.dumps({**ROW, "serial": long}))
        assert hive.issues.rows()["qb-1"]["serial"] == long

    def test_parses_no_line_again_that_it_had_before(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_lines(tracker, *({"id": f"qb-{n}", "title": "x"} for n in range(5)))
        assert len(hive.tracker().everything()) == 5
        parsed: list[bytes] = []
        real = tracker_memory.decode_records

        def counting(lines: Any, *more: Any) -> Any:
            parsed.extend(lines)
            return real(lines, *more)

        monkeypatch.setattr(tracker_memory, "decode_records", counting)
        write_lines(tracker, ROW)
        assert len(hive.tracker().everything()) == 5
        assert [json.loads(each) for each in parsed] == [ROW]

    def test_reads_no_byte_while_the_file_is_the_same(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_lines(tracker, ROW)
        os.utime(tracker, ns=(10**18 + 1, 10**18 + 1))
        while hive.tracker().has_settled is False:
            time.sleep(0.01)  # Right after a change, it may change again without another time.
        monkeypatch.setattr(tracker_memory, "read_after", None)
        assert hive.tracker().everything() == {"qb-1": ROW}

    @pytest.mark.parametrize("same_time", [False, True])
    def test_sees_a_change_of_the_same_size(
        self, hive: Hive, tracker: Path, same_time: bool
    ) -> None:
        for title in ("one", "two", "six"):
            tracker.write_text(json.dumps({**ROW, "title": title}) + "\n")
            if same_time:
                os.utime(tracker, ns=(10**18, 10**18))
            assert hive.tracker().everything()["qb-1"]["title"] == title


class TestATransaction:
    def test_adds_a_row_when_it_ends(self, hive: Hive, beads: Path) -> None:
        with hive.transaction() as tx:
            tx.put_issue(ROW)
            assert hive.issues.ids() == []
        assert hive.issues.get("qb-1").title == "One"
        assert not (beads / "issues.jsonl").exists()
        assert exported(beads / "issues.jsonl") == [ROW]

    def test_that_fails_adds_none(self, hive: Hive) -> None:
        with pytest.raises(ZeroDivisionError), hive.transaction() as tx:
            tx.put_issue(ROW)
            raise ZeroDivisionError
        assert hive.issues.ids() == []

    def test_adds_none_where_a_ledger_cannot_be_written(self, hive: Hive, beads: Path) -> None:
        write_lines(beads / "issues.jsonl", ROW)
        (beads / "queen_verifications.jsonl").mkdir()
        with pytest.raises((Unreadable, Unwritable)), hive.transaction() as tx:
            tx.put_issue({**ROW, "title": "Two"})
            tx.create("verifications", {"subject_id": "qb-1"})
        assert hive.issues.get("qb-1").title == "One"

    def test_refuses_a_row_that_no_reader_takes(self, hive: Hive) -> None:
        with pytest.raises(InvalidInput, match="a line holds at most"), hive.transaction() as tx:
            tx.put_issue({**ROW, "description": "x" * 2**20})
        assert hive.issues.ids() == []
