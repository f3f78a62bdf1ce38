"""Changes of issues survive git, merge field by field, and reach the file when it is exported."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from acting import answer
from extent import examples
from hives import Clock, QuickQueen, git, records, write_lines
from hypothesis import given, settings
from hypothesis import strategies as st
from stamps import format_ms
from trackers import NewIssue, Tracker, export_issues

from queenbee import Hive

Row = dict[str, Any]


@pytest.fixture
def tracker(hive: Hive, beads: Path) -> Path:
    return beads / "issues.jsonl"


def new(hive: Hive, issue_id: str) -> None:
    Tracker(hive).new(NewIssue(f"Title of {issue_id}", issue_id=issue_id))


def rewrite(path: Path, *rows: Row) -> None:
    """Does what another program does."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def titles(path: Path) -> dict[str, object]:
    return {row["id"]: row.get("title") for row in records(path)} if path.exists() else {}


class TestWhatGitTakesAway:
    @pytest.mark.parametrize(
        "commands",
        [
            [["reset", "-q", "--hard"]],
            [["checkout", "-q", "--", ".beads"]],
            [["stash", "-q", "-u"]],
            [["clean", "-fdq"], ["reset", "-q", "--hard"]],
            [["stash", "-q"], ["checkout", "-q", "--detach", "HEAD~1"]],
        ],
        ids=["reset", "checkout", "stash", "clean", "detach"],
    )
    def test_is_there_for_readers_and_back_at_the_next_export(
        self, hive: Hive, tracker: Path, repo: Path, commands: list[list[str]]
    ) -> None:
        git(repo, "commit", "-q", "--allow-empty", "-m", "none")
        new(hive, "qb-1")
        export_issues(hive)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
        new(hive, "qb-2")
        Tracker(hive).edit("qb-1", title="New title")
        export_issues(hive)
        before = tracker.read_bytes()
        for each in commands:
            git(repo, *each)
        taken = titles(tracker)
        assert taken != {"qb-1": "New title", "qb-2": "Title of qb-2"}
        assert hive.issues.get("qb-1").title == "New title"
        assert sorted(hive.issues.ids()) == ["qb-1", "qb-2"]
        assert titles(tracker) == taken
        export_issues(hive)
        assert sorted(tracker.read_bytes().splitlines()) == sorted(before.splitlines())
        export_issues(hive)
        assert sorted(tracker.read_bytes().splitlines()) == sorted(before.splitlines())

    def test_lets_a_stash_be_taken_back(self, hive: Hive, tracker: Path, repo: Path) -> None:
        new(hive, "qb-1")
        export_issues(hive)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
        new(hive, "qb-2")
        (repo / "README.md").write_text("mine\n")
        git(repo, "stash", "-q")
        new(hive, "qb-3")
        with pytest.raises(AssertionError, match="would be overwritten"):
            git(repo, "stash", "pop")
        git(repo, "checkout", "-q", "--", ".beads")
        git(repo, "stash", "pop", "-q")
        assert (repo / "README.md").read_text() == "mine\n"
        export_issues(hive)
        assert sorted(titles(tracker)) == ["qb-1", "qb-2", "qb-3"]

    def test_can_be_claimed_and_edited(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        export_issues(hive)
        tracker.unlink()
        hive.assignments.claim("qb-1")
        Tracker(hive).edit("qb-1", priority=0)
        export_issues(hive)
        (row,) = records(tracker)
        assert (row["title"], row["priority"]) == ("Title of qb-1", 0)

    def test_comes_back_without_a_field_that_was_taken_out(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        Tracker(hive).close("qb-1", reason="done")
        export_issues(hive)
        closed = tracker.read_bytes()
        Tracker(hive).reopen("qb-1")
        tracker.write_bytes(closed)
        export_issues(hive)
        assert records(tracker)[0]["status"] == "open"
        assert "closed_at" not in records(tracker)[0]

    def test_is_in_the_ledger_whose_rows_are_exported(
        self, hive: Hive, tracker: Path, repo: Path
    ) -> None:
        new(hive, "qb-1")
        git(repo, "add", "-A")
        git(repo, "stash", "-q")
        assert not Path(hive.layout.ledger_path("issues")).exists()
        export_issues(hive)
        assert [row["id"] for row in records(tracker)] == ["qb-1"]
        assert [line["id"] for line in records(tracker.parent / "queen_issues.jsonl")] == ["qb-1"]


class TestTheFile:
    def test_is_in_nobodys_way_when_others_changes_are_pulled(
        self, hive: Hive, tracker: Path, repo: Path, tmp_path: Path
    ) -> None:
        rewrite(tracker, *({"id": f"qb-{n}", "title": "x", "status": "open"} for n in (1, 2)))
        git(repo, "add", ".beads/issues.jsonl")
        git(repo, "commit", "-qm", "two")
        git(tmp_path, "clone", "-q", str(repo), "colleague")
        Tracker(hive).edit("qb-1", title="Mine")
        new(hive, "qb-3")
        hive.assignments.claim("qb-3")
        hive.assignments.complete("qb-3")
        there = tmp_path / "colleague" / ".beads" / "issues.jsonl"
        later = {"title": "Theirs", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(there, records(there)[0], {**records(there)[1], **later})
        git(there.parent, "commit", "-qam", "theirs")
        git(repo, "pull", "-q", "--ff-only", str(tmp_path / "colleague"), "HEAD")
        found = {key: issue.title for key, issue in hive.issues.all().items()}
        assert found == {"qb-1": "Mine", "qb-2": "Theirs", "qb-3": "Title of qb-3"}

    def test_that_an_earlier_version_changed_in_place_loses_nothing(
        self, hive: Hive, tracker: Path, repo: Path
    ) -> None:
        rewrite(tracker, {"id": "qb-1", "title": "Committed", "status": "open"})
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
        row = {
            "id": "qb-1",
            "title": "Mine",
            "status": "open",
            "updated_at": "2026-01-01T00:00:00Z",
        }
        ledger = tracker.parent / "queen_issues.jsonl"
        rewrite(
            ledger,
            {"id": "qb-1", "title": "Committed", "status": "open", "rev": 1},
            {"id": "qb-1", "title": "Mine", "updated_at": row["updated_at"], "rev": 2},
        )
        rewrite(tracker, row, {"id": "qb-2", "title": "Only here", "status": "open"})
        assert titles(tracker) == {key: one.title for key, one in hive.issues.all().items()}
        git(repo, "checkout", "-q", "--", ".beads/issues.jsonl")
        assert hive.issues.get("qb-1").title == "Mine"

    def test_has_the_rows_that_count_after_the_command(
        self, hive: Hive, tracker: Path, quick: QuickQueen
    ) -> None:
        new(hive, "qb-1")
        assert quick("issue", "export").out == "1 row written to .beads/issues.jsonl\n"
        assert titles(tracker) == {"qb-1": "Title of qb-1"}
        assert quick("issue", "export", "--json").json == {
            "path": ".beads/issues.jsonl", "written": 0, "owner": None,
        }  # fmt: skip

    def test_is_left_to_the_program_that_owns_it(
        self, hive: Hive, tracker: Path, quick: QuickQueen
    ) -> None:
        new(hive, "qb-1")
        (tracker.parent / "dolt").mkdir()
        assert quick("issue", "export").out == "bd writes .beads/issues.jsonl itself\n"
        assert not tracker.exists()


class TestWhatSomebodyRemoved:
    def test_is_back_at_the_next_export_and_a_tombstone_stays(
        self, hive: Hive, tracker: Path, repo: Path
    ) -> None:
        for each in ("qb-1", "qb-2"):
            new(hive, each)
        export_issues(hive)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "two")
        rewrite(tracker, records(tracker)[0])
        git(repo, "commit", "-qam", "without qb-2")
        assert sorted(hive.issues.ids()) == ["qb-1", "qb-2"]
        Tracker(hive).delete("qb-1")
        export_issues(hive)
        assert [(row["id"], row["status"]) for row in records(tracker)] == [
            ("qb-1", "tombstone"), ("qb-2", "open"),
        ]  # fmt: skip


class TestOtherPrograms:
    def test_undo_nothing_by_what_they_copied(
        self, hive: Hive, tracker: Path, clock: Clock
    ) -> None:
        new(hive, "qb-1")
        export_issues(hive)
        assert hive.issues.get("qb-1").title == "Title of qb-1"
        clock.advance(1)
        Tracker(hive).edit("qb-1", title="Mine")
        later = {"status": "blocked", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(tracker, {**records(tracker)[0], **later})
        issue = hive.issues.get("qb-1")
        assert (issue.title, issue.status) == ("Mine", "blocked")
        export_issues(hive)
        assert titles(tracker) == {"qb-1": "Mine"}
        assert records(tracker)[0]["status"] == "blocked"

    def test_change_rows_and_keep_what_they_changed(
        self, hive: Hive, tracker: Path, clock: Clock
    ) -> None:
        new(hive, "qb-1")
        export_issues(hive)
        later = {"title": "Theirs", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(tracker, {**records(tracker)[0], **later})
        export_issues(hive)
        assert titles(tracker) == {"qb-1": "Theirs"}
        theirs = records(tracker)
        tracker.unlink()
        export_issues(hive)
        assert records(tracker) == theirs

    def test_may_leave_the_time_as_it_was(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        export_issues(hive)
        rewrite(tracker, {**records(tracker)[0], "title": "By hand"})
        assert hive.issues.get("qb-1").title == "By hand"
        export_issues(hive)
        tracker.unlink()
        assert hive.issues.get("qb-1").title == "By hand"

    def test_may_set_a_field_back(self, hive: Hive, tracker: Path, clock: Clock) -> None:
        new(hive, "qb-1")
        clock.advance(1)
        Tracker(hive).edit("qb-1", status="blocked")
        export_issues(hive)
        back = {"status": "open", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(tracker, {**records(tracker)[0], **back})
        export_issues(hive)
        assert records(tracker)[0]["status"] == "open"

    @pytest.mark.parametrize("undo", ["open", "title"])
    def test_are_undone_by_who_sets_what_was_there_before(
        self, hive: Hive, tracker: Path, undo: str
    ) -> None:
        """The ledger has the value already; what counts is the file's."""
        new(hive, "qb-1")
        export_issues(hive)
        [row] = records(tracker)
        now = format_ms(hive.now_ms())
        if undo == "open":
            rewrite(tracker, {**row, "status": "closed", "closed_at": now, "updated_at": now})
            assert hive.issues.get("qb-1").done
            assert not Tracker(hive).reopen("qb-1").done
        else:
            rewrite(tracker, {**row, "title": "Theirs", "updated_at": now})
            assert Tracker(hive).edit("qb-1", title=str(row["title"])).title == row["title"]
        export_issues(hive)
        assert (records(tracker)[0]["status"], titles(tracker)["qb-1"]) == ("open", row["title"])

    def test_that_open_what_was_completed_leave_it_to_be_completed_again(
        self, hive: Hive, tracker: Path, clock: Clock
    ) -> None:
        new(hive, "qb-1")
        for _ in range(2):
            hive.assignments.claim("qb-1")
            answer(hive, "complete", "qb-1")
            export_issues(hive)
            [row] = records(tracker)
            assert row["status"] == "closed"
            clock.advance(1)
            opened = {**row, "status": "open", "updated_at": format_ms(hive.now_ms())}
            rewrite(tracker, {name: each for name, each in opened.items() if name != "closed_at"})
            clock.advance(1)

    def test_have_rows_that_are_only_theirs(self, hive: Hive, tracker: Path) -> None:
        rewrite(tracker, {"id": "bd-1", "title": "Theirs"})
        new(hive, "qb-1")
        export_issues(hive)
        rewrite(tracker, records(tracker)[1])
        export_issues(hive)
        assert sorted(titles(tracker)) == ["qb-1"]

    def test_own_the_tracker_where_they_keep_it(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        (tracker.parent / "metadata.json").write_text("{}")
        export_issues(hive)
        assert not tracker.exists()
        assert list(hive.issues.ids()) == []


class TestAnExport:
    def test_keeps_nobody_waiting_and_undoes_no_change_made_meanwhile(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new(hive, "qb-1")
        other = Hive.open(hive.layout.root, droid="db", env={})
        other.layout.settings.lock_timeout_s = 1
        sync = os.fsync

        def meanwhile(fd: int) -> None:
            if any(tracker.parent.glob(".issues.jsonl.*")):
                monkeypatch.undo()
                Tracker(other).edit("qb-1", title="Later")
            sync(fd)

        monkeypatch.setattr(os, "fsync", meanwhile)
        export_issues(hive)
        assert hive.issues.get("qb-1").title == titles(tracker)["qb-1"] == "Later"


class TestARow:
    @pytest.mark.parametrize("name", ["rev", "read", "deleted", "_migration"])
    def test_may_have_fields_that_mean_something_in_a_ledger(
        self, hive: Hive, tracker: Path, name: str
    ) -> None:
        rewrite(tracker, {"id": "qb-1", "title": "One", name: True})
        Tracker(hive).edit("qb-1", title="Two")
        tracker.unlink()
        Tracker(hive).edit("qb-1", title="Three")
        export_issues(hive)
        (row,) = records(tracker)
        assert (row["title"], row[name]) == ("Three", True)
        assert "rev" not in {*row} - {name}

    def test_keeps_every_digit(self, hive: Hive, tracker: Path) -> None:
        rewrite(tracker, {"id": "qb-1", "title": "One", "serial": 2**80 + 1})
        Tracker(hive).edit("qb-1", title="Two")
        tracker.unlink()
        Tracker(hive).edit("qb-1", title="Three")
        export_issues(hive)
        assert records(tracker)[0]["serial"] == 2**80 + 1


FIELDS = ("title", "acceptance_criteria", "description")
"""Each clone edits one of them."""
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), st.integers(0, 2), st.integers(0, 5)),
        st.tuples(st.just("old"), st.integers(0, 2), st.integers(0, 9)),
        st.tuples(st.just("take"), st.integers(0, 2), st.integers(0, 2)),
        st.tuples(st.just("write"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("clock"), st.integers(0, 2), st.integers(-3, 3)),
    ),
    max_size=14,
)


class Clones:
    """Three clones without git, which take lines of each other, and whose files go back in time."""

    def __init__(self, folder: Path) -> None:
        self.clocks = [Clock() for _ in FIELDS]
        self.hives = [self._open(folder / str(number)) for number in range(3)]
        self.versions: list[list[bytes]] = [[b""] for _ in FIELDS]
        self.last: dict[str, object] = {}
        new(self.hives[0], "qb-1")
        self.exchange()

    def _open(self, path: Path) -> Hive:
        (path / ".beads").mkdir(parents=True)
        clock = self.clocks[int(path.name)]
        return Hive.open(path, droid="a", env={"QUEEN_DURABILITY": "buffered"}, clock=clock)

    def file(self, number: int) -> Path:
        return Path(self.hives[number].layout.issues_path)

    def note(self) -> None:
        for number, known in enumerate(self.versions):
            known.append(self.file(number).read_bytes() if self.file(number).exists() else b"")

    def edit(self, number: int, value: int) -> None:
        self.clocks[number].now_ms += 1
        self.last[FIELDS[number]] = str(value)
        Tracker(self.hives[number]).edit("qb-1", **{FIELDS[number]: str(value)})

    def old(self, number: int, which: int) -> None:
        """Does what git does: an older version of the file is there."""
        known = self.versions[number]
        self.file(number).write_bytes(known[which % len(known)])

    def take(self, number: int, other: int) -> None:
        """Takes the lines of another clone, as `queen sync` does."""
        source = Path(self.hives[other].layout.ledger_path("issues"))
        target = self.hives[number].layout.ledger_path("issues")
        known = set(Path(target).read_bytes().splitlines()) if Path(target).exists() else set()
        lines = [each for each in source.read_bytes().splitlines() if each not in known]
        with self.hives[number].transaction() as tx:
            write_lines(Path(target), *lines)
            tx.touch("issues")

    def write(self, number: int, _: int) -> None:
        export_issues(self.hives[number])

    def clock(self, number: int, seconds: int) -> None:
        self.clocks[number].advance(seconds)

    def exchange(self) -> None:
        for _ in range(2):
            for number in range(3):
                for other in range(3):
                    if (
                        number != other
                        and Path(self.hives[other].layout.ledger_path("issues")).exists()
                    ):
                        self.take(number, other)


@settings(max_examples=examples(60))
@given(STEPS)
def test_clones_keep_what_each_changed_and_end_alike(
    steps: list[tuple[str, int, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clones = Clones(Path(folder))
        for what, number, value in steps:
            getattr(clones, what)(number, value)
            clones.note()
        clones.exchange()
        for number in range(3):
            clones.write(number, 0)
        rows = [clones.file(number).read_bytes() for number in range(3)]
        assert [json.loads(one) for one in rows[1:]] == [json.loads(rows[0])] * 2
        row = json.loads(rows[0])
        assert {name: row.get(name) for name in clones.last} == clones.last


class TestWhatOthersMade:
    """Lines that another clone sent, and rows that another program wrote."""

    def ledger(self, tracker: Path, *lines: Row) -> None:
        with (tracker.parent / "queen_issues.jsonl").open("a") as file:
            file.writelines(f"{json.dumps(line)}\n" for line in lines)

    def test_stops_no_write_where_a_row_of_it_fits_into_no_line(
        self, hive: Hive, tracker: Path
    ) -> None:
        parts = ({"id": "qb-9", "title": "big", f"x{at}": "a" * 600_000} for at in range(3))
        self.ledger(tracker, *({**part, "rev": at} for at, part in enumerate(parts, start=1)))
        for issue_id in ("qb-1", "qb-2"):
            new(hive, issue_id)
        export_issues(hive)
        assert titles(tracker) == {"qb-1": "Title of qb-1", "qb-2": "Title of qb-2"}
        assert hive.issues.get("qb-9").title == "big"
        Tracker(hive).edit("qb-9", title="still big")
        assert hive.issues.get("qb-9").title == "still big"
        Tracker(hive).delete("qb-9", reason="too large")
        assert "qb-9" not in hive.issues.ids()
        new(hive, "qb-3")
        export_issues(hive)
        assert titles(tracker).keys() == {"qb-1", "qb-2", "qb-3"}

    def test_with_the_last_revision_ends_alike_everywhere(
        self, hive: Hive, tracker: Path, tmp_path: Path, clock: Clock
    ) -> None:
        last = {"id": "qb-1", "title": "theirs", "status": "open", "rev": 2**53 - 1}
        self.ledger(tracker, last)
        for title in ("one", "two"):
            clock.advance(1)
            Tracker(hive).edit("qb-1", title=title)
            assert hive.issues.get("qb-1").title == title
        path = tracker.parent / "queen_issues.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        assert len(lines) == 3
        there = tmp_path / "there" / ".beads"
        there.mkdir(parents=True)
        (there / path.name).write_bytes(b"".join(reversed(lines)))
        assert Hive.open(there.parent).issues.get("qb-1").title == "two"

    def test_can_be_edited_where_its_row_just_fits_into_the_file(
        self, hive: Hive, tracker: Path
    ) -> None:
        row = {"id": "qb-1", "title": "big", "status": "open", "rev": 1, "description": ""}
        left = 1_048_574 - len(json.dumps(row))
        rewrite(tracker, {**row, "description": "a" * left})
        new(hive, "qb-2")
        Tracker(hive).edit("qb-1", status="in_progress", description="small")
        assert hive.issues.get("qb-1").status == "in_progress"
        export_issues(hive)
        assert titles(tracker) == {"qb-1": "big", "qb-2": "Title of qb-2"}

    def test_names_its_issue_by_its_id_alone(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        self.ledger(
            tracker,
            {"id": "qb-5", "row:id": 5, "title": "five", "status": "open", "rev": 7},
            {"id": "qb-6", "row:id": "qb-1", "title": "six", "status": "tombstone", "rev": 7},
        )
        export_issues(hive)
        assert sorted(hive.issues.all()) == ["qb-1", "qb-5"]
        assert hive.issues.get("qb-1").title == "Title of qb-1"

    def test_keeps_fields_that_are_called_as_the_ledger_calls_its_own(
        self, hive: Hive, tracker: Path
    ) -> None:
        row = {"id": "qb-1", "title": "t", "status": "open", "row:id": "zz", "rev": 3, "row:rev": 4}
        rewrite(tracker, row)
        Tracker(hive).edit("qb-1", priority=0)
        tracker.unlink()
        export_issues(hive)
        [back] = records(tracker)
        assert {name: back[name] for name in row} == row
