"""The rows that `queen` wrote survive git and merge field by field; those of others stay theirs."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hives import Clock, git, records
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee import Hive
from queenbee.errors import NotFound
from queenbee.git import removed_rows as asking
from queenbee.git.removed_rows import removed_rows
from queenbee.services import settling
from queenbee.store.files import Appender
from queenbee.workflows.tracking.tracker import NewIssue, Tracker

if TYPE_CHECKING:
    from queenbee.services.keeping import Removed
    from queenbee.store.layout import Layout

Row = dict[str, Any]


@pytest.fixture
def tracker(hive: Hive, beads: Path) -> Path:
    hive.asks_git = removed_rows
    return beads / "issues.jsonl"


def new(hive: Hive, issue_id: str) -> None:
    Tracker(hive).new(NewIssue(f"Title of {issue_id}", issue_id=issue_id))


def commit_without_qb_2(hive: Hive, committed: Path, repo: Path) -> None:
    rewrite(committed, records(committed)[0])
    git(repo, "commit", "-qam", "without qb-2")
    write(hive)


def write(hive: Hive) -> None:
    """Writes something that has nothing to do with issues."""
    hive.messages.send("human", "Hello")


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
    def test_is_there_for_readers_and_back_at_the_next_write(
        self, hive: Hive, tracker: Path, repo: Path, commands: list[list[str]]
    ) -> None:
        git(repo, "commit", "-q", "--allow-empty", "-m", "none")
        new(hive, "qb-1")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
        new(hive, "qb-2")
        Tracker(hive).edit("qb-1", title="New title")
        before = tracker.read_bytes()
        for each in commands:
            git(repo, *each)
        taken = titles(tracker)
        assert taken != {"qb-1": "New title", "qb-2": "Title of qb-2"}
        assert hive.issues.get("qb-1").title == "New title"
        assert sorted(hive.issues.ids()) == ["qb-1", "qb-2"]
        assert titles(tracker) == taken
        write(hive)
        assert sorted(tracker.read_bytes().splitlines()) == sorted(before.splitlines())
        write(hive)
        assert sorted(tracker.read_bytes().splitlines()) == sorted(before.splitlines())

    def test_lets_a_stash_be_taken_back(self, hive: Hive, tracker: Path, repo: Path) -> None:
        new(hive, "qb-1")
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
        write(hive)
        assert sorted(titles(tracker)) == ["qb-1", "qb-2", "qb-3"]

    def test_can_be_claimed_and_edited(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        tracker.unlink()
        hive.assignments.claim("qb-1")
        tracker.unlink()
        Tracker(hive).edit("qb-1", priority=0)
        (row,) = records(tracker)
        assert (row["title"], row["priority"]) == ("Title of qb-1", 0)

    def test_is_back_at_once_if_it_was_taken_during_the_write(
        self, hive: Hive, tracker: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new(hive, "qb-1")
        new(hive, "qb-2")
        rows_of = settling.rows_of

        def taken(path: str, ids: set[str]) -> dict[str, Any]:
            monkeypatch.undo()
            tracker.unlink()
            return dict(rows_of(path, ids))

        monkeypatch.setattr(settling, "rows_of", taken)
        Tracker(hive).edit("qb-2", title="New title")
        assert titles(tracker) == {"qb-1": "Title of qb-1", "qb-2": "New title"}

    def test_comes_back_without_a_field_that_was_taken_out(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        Tracker(hive).close("qb-1", reason="done")
        closed = tracker.read_bytes()
        Tracker(hive).reopen("qb-1")
        tracker.write_bytes(closed)
        write(hive)
        assert records(tracker)[0]["status"] == "open"
        assert "closed_at" not in records(tracker)[0]

    def test_is_left_to_the_next_command_where_git_cannot_be_asked(
        self, hive: Hive, tracker: Path
    ) -> None:
        hive.asks_git = None
        new(hive, "qb-1")
        tracker.unlink()
        write(hive)
        assert not tracker.exists()
        assert hive.issues.get("qb-1").title == "Title of qb-1"
        hive.asks_git = removed_rows
        write(hive)
        assert titles(tracker) == {"qb-1": "Title of qb-1"}


class TestWhatSomebodyRemoved:
    @pytest.fixture
    def committed(self, hive: Hive, tracker: Path, repo: Path) -> Path:
        new(hive, "qb-1")
        new(hive, "qb-2")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "two")
        return tracker

    def test_by_a_commit_stays_away(self, hive: Hive, committed: Path, repo: Path) -> None:
        rewrite(committed, records(committed)[0])
        git(repo, "commit", "-qam", "without qb-2")
        assert sorted(hive.issues.ids()) == ["qb-1"]
        write(hive)
        with pytest.raises(NotFound):
            hive.issues.get("qb-2")
        Tracker(hive).edit("qb-1", priority=0)
        assert sorted(titles(committed)) == ["qb-1"]
        new(hive, "qb-2")
        assert sorted(titles(committed)) == ["qb-1", "qb-2"]

    @pytest.mark.parametrize("added", [[], [{"id": "qb-2", "title": "Of the merge"}]])
    def test_is_not_what_a_merge_leaves_out_that_takes_one_side(
        self, hive: Hive, committed: Path, repo: Path, added: list[Row]
    ) -> None:
        git(repo, "checkout", "-qb", "side")
        Tracker(hive).edit("qb-1", title="Of the side")
        git(repo, "commit", "-qam", "side")
        git(repo, "checkout", "-q", "-")
        for each in ("qb-3", "qb-4"):
            new(hive, each)
        rewrite(committed, *(row for row in records(committed) if row["id"] != "qb-1"))
        git(repo, "commit", "-qam", "qb-3 and qb-4, and without qb-1")
        rewrite(committed, *(row for row in records(committed) if row["id"] != "qb-4"))
        git(repo, "commit", "-qam", "without qb-4")
        git(repo, "merge", "-q", "-s", "ours", "--no-commit", "side")
        git(repo, "checkout", "side", "--", ".beads/issues.jsonl")
        if added:
            rewrite(committed, *records(committed), *added)
            git(repo, "add", ".beads")
        git(repo, "commit", "-qm", "the file of the side")
        assert sorted(hive.issues.ids()) == ["qb-1", "qb-2", "qb-3"]
        write(hive)
        assert sorted(titles(committed)) == ["qb-1", "qb-2", "qb-3"]

    def test_is_not_what_was_edited_on_the_side_that_a_merge_leaves_out(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        git(repo, "checkout", "-qb", "side")
        new(hive, "qb-3")
        git(repo, "commit", "-qam", "qb-3")
        Tracker(hive).edit("qb-3", title="Edited")
        git(repo, "commit", "-qam", "qb-3, edited")
        git(repo, "checkout", "-q", "-")
        git(repo, "merge", "-q", "-s", "ours", "side")
        write(hive)
        assert titles(committed)["qb-3"] == "Edited"

    def test_by_a_merge_that_both_sides_had_it_before_stays_away(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        git(repo, "checkout", "-qb", "side")
        git(repo, "commit", "-q", "--allow-empty", "-m", "side")
        git(repo, "checkout", "-q", "-")
        git(repo, "merge", "-q", "--no-ff", "--no-commit", "side")
        rewrite(committed, records(committed)[0])
        git(repo, "commit", "-qam", "merged, without qb-2")
        write(hive)
        assert sorted(titles(committed)) == ["qb-1"]

    def test_by_a_commit_of_an_older_state_of_all_files_is_back(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        new(hive, "qb-3")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "three")
        git(repo, "checkout", "-q", "HEAD~1", "--", ".beads")
        git(repo, "commit", "-qm", "an older state", "--", ".beads")
        assert "qb-3" not in titles(committed)
        write(hive)
        assert "qb-3" in titles(committed)

    def test_by_a_commit_of_an_older_state_is_back_if_another_edited_it_before(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        new(hive, "qb-3")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "three")
        Tracker(hive).edit("qb-3", title="Another")
        git(repo, "commit", "-qam", "edited")
        git(repo, "checkout", "-q", "HEAD~2", "--", ".beads")
        git(repo, "commit", "-qm", "an older state", "--", ".beads")
        write(hive)
        assert titles(committed)["qb-3"] == "Another"

    def test_by_a_commit_of_an_older_state_after_it_was_made_anew_is_back(
        self, hive: Hive, committed: Path, repo: Path, clock: Clock
    ) -> None:
        commit_without_qb_2(hive, committed, repo)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "the ledger")
        clock.advance(1)
        new(hive, "qb-2")
        git(repo, "commit", "-qam", "anew")
        git(repo, "checkout", "-q", "HEAD~1", "--", ".beads")
        git(repo, "commit", "-qm", "an older state", "--", ".beads")
        write(hive)
        assert "qb-2" in titles(committed)

    def test_by_a_revert_is_back(self, hive: Hive, committed: Path, repo: Path) -> None:
        new(hive, "qb-3")
        git(repo, "commit", "-qm", "a landing", "--", ".beads/issues.jsonl")
        git(repo, "revert", "--no-edit", "HEAD")
        assert "qb-3" not in titles(committed)
        write(hive)
        assert "qb-3" in titles(committed)

    def test_with_the_whole_file_stays_away(self, hive: Hive, committed: Path, repo: Path) -> None:
        git(repo, "rm", "-qf", ".beads/issues.jsonl")
        git(repo, "commit", "-qm", "no issues")
        write(hive)
        assert not committed.exists()

    def test_is_asked_again_before_it_is_written(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        rewrite(committed, records(committed)[0])
        assert len(hive.issues.ids()) == 2
        git(repo, "commit", "-qam", "without qb-2")
        write(hive)
        assert sorted(titles(committed)) == ["qb-1"]

    @pytest.mark.parametrize("commands", [[["stash", "-q"]], [["reset", "-q", "--hard"]]])
    def test_and_was_made_anew_survives_git(
        self, hive: Hive, committed: Path, repo: Path, clock: Clock, commands: list[list[str]]
    ) -> None:
        clock.advance(1)
        commit_without_qb_2(hive, committed, repo)
        Tracker(hive).new(NewIssue("Made anew", issue_id="qb-2"))
        for each in commands:
            git(repo, *each)
        assert hive.issues.get("qb-2").title == "Made anew"
        write(hive)
        assert titles(committed)["qb-2"] == "Made anew"

    def test_made_anew_and_removed_again_stays_away(
        self, hive: Hive, committed: Path, repo: Path, clock: Clock
    ) -> None:
        for _ in range(2):
            clock.advance(1)
            rewrite(committed, records(committed)[0])
            git(repo, "commit", "-qam", "without qb-2")
            assert sorted(hive.issues.ids()) == ["qb-1"]
            new(hive, "qb-2")
            git(repo, "commit", "-qam", "with qb-2")
        commit_without_qb_2(hive, committed, repo)
        assert sorted(titles(committed)) == ["qb-1"]

    def test_by_a_commit_that_is_taken_back_is_there(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        commit_without_qb_2(hive, committed, repo)
        git(repo, "reset", "-q", "--soft", "HEAD~1")
        assert sorted(hive.issues.ids()) == ["qb-1", "qb-2"]
        write(hive)
        assert sorted(titles(committed)) == ["qb-1", "qb-2"]

    def test_by_a_commit_that_is_taken_back_is_written_by_who_reads_no_issue(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        commit_without_qb_2(hive, committed, repo)
        git(repo, "reset", "-q", "--soft", "HEAD~1")
        write(hive)
        assert sorted(titles(committed)) == ["qb-1", "qb-2"]

    def test_stays_away_where_the_note_is_of_an_earlier_version(
        self, hive: Hive, committed: Path, repo: Path
    ) -> None:
        commit_without_qb_2(hive, committed, repo)
        path = Path(hive.layout.state_dir, "issues.json")
        note = json.loads(path.read_text())
        assert note["removed"] == ["qb-2"]
        path.write_text(json.dumps({name: note[name] for name in ("moment", "removed", "all")}))
        assert sorted(hive.issues.ids()) == ["qb-1"]
        write(hive)
        assert sorted(titles(committed)) == ["qb-1"]

    def test_before_a_shallow_clone_begins_stays_away(
        self, hive: Hive, committed: Path, repo: Path, tmp_path: Path
    ) -> None:
        rewrite(committed, records(committed)[0])
        git(repo, "commit", "-qam", "without qb-2")
        git(repo, "commit", "-q", "--allow-empty", "-m", "more")
        git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
        there = Hive.open(tmp_path / "shallow", droid="a", env={"QUEEN_DURABILITY": "buffered"})
        there.asks_git = removed_rows
        assert sorted(there.issues.ids()) == ["qb-1"]
        write(there)
        path = Path(there.layout.issues_path)
        assert sorted(titles(path)) == ["qb-1"]
        new(there, "qb-3")
        git(tmp_path / "shallow", "stash", "-q", "-u")
        write(there)
        assert "qb-3" in there.issues.ids()

    def test_without_a_commit_is_back(self, hive: Hive, committed: Path) -> None:
        rewrite(committed, records(committed)[0])
        write(hive)
        assert sorted(titles(committed)) == ["qb-1", "qb-2"]


class TestOtherPrograms:
    def test_change_rows_and_keep_what_they_changed(
        self, hive: Hive, tracker: Path, clock: Clock
    ) -> None:
        new(hive, "qb-1")
        later = {"title": "Theirs", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(tracker, {**records(tracker)[0], **later})
        write(hive)
        assert titles(tracker) == {"qb-1": "Theirs"}
        theirs = records(tracker)
        tracker.unlink()
        write(hive)
        assert records(tracker) == theirs

    def test_may_leave_the_time_as_it_was(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        rewrite(tracker, {**records(tracker)[0], "title": "By hand"})
        assert hive.issues.get("qb-1").title == "By hand"
        write(hive)
        tracker.unlink()
        assert hive.issues.get("qb-1").title == "By hand"

    def test_may_set_a_field_back(self, hive: Hive, tracker: Path, clock: Clock) -> None:
        new(hive, "qb-1")
        clock.advance(1)
        Tracker(hive).edit("qb-1", status="blocked")
        back = {"status": "open", "updated_at": "2030-01-01T00:00:00Z"}
        rewrite(tracker, {**records(tracker)[0], **back})
        write(hive)
        assert records(tracker)[0]["status"] == "open"

    def test_have_rows_that_are_only_theirs(self, hive: Hive, tracker: Path) -> None:
        rewrite(tracker, {"id": "bd-1", "title": "Theirs"})
        new(hive, "qb-1")
        rewrite(tracker, records(tracker)[1])
        write(hive)
        assert sorted(titles(tracker)) == ["qb-1"]

    def test_own_the_tracker_where_they_keep_it(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        tracker.unlink()
        (tracker.parent / "metadata.json").write_text("{}")
        write(hive)
        assert not tracker.exists()
        assert list(hive.issues.ids()) == []


class TestARow:
    @pytest.mark.parametrize("name", ["rev", "read", "deleted", "_migration"])
    def test_may_have_fields_that_mean_something_in_a_ledger(
        self, hive: Hive, tracker: Path, name: str
    ) -> None:
        rewrite(tracker, {"id": "qb-1", "title": "One", name: True})
        Tracker(hive).edit("qb-1", title="Two")
        tracker.unlink()
        Tracker(hive).edit("qb-1", title="Three")
        (row,) = records(tracker)
        assert (row["title"], row[name]) == ("Three", True)
        assert "rev" not in {*row} - {name}

    def test_keeps_every_digit(self, hive: Hive, tracker: Path) -> None:
        rewrite(tracker, {"id": "qb-1", "title": "One", "serial": 2**80 + 1})
        Tracker(hive).edit("qb-1", title="Two")
        tracker.unlink()
        Tracker(hive).edit("qb-1", title="Three")
        assert records(tracker)[0]["serial"] == 2**80 + 1


class TestAskingGit:
    @pytest.fixture
    def taken(self, hive: Hive, tracker: Path) -> Path:
        new(hive, "qb-1")
        tracker.unlink()
        return tracker

    @pytest.mark.parametrize("reads_first", [False, True])
    def test_keeps_no_other_writer_waiting(
        self, hive: Hive, taken: Path, repo: Path, reads_first: bool
    ) -> None:
        other = Hive.open(repo, droid="b", env={"QUEEN_DURABILITY": "buffered"})
        asked = []

        def while_another_writes(layout: Layout, since_ms: int) -> tuple[Removed, bool]:
            asked.append(since_ms)
            write(other)
            return removed_rows(layout, since_ms)

        hive.asks_git = while_another_writes
        if reads_first:
            assert hive.issues.ids() == ["qb-1"]
        write(hive)
        assert titles(taken) == {"qb-1": "Title of qb-1"}
        taken.unlink()
        Tracker(hive).edit("qb-1", title="New")
        assert titles(taken) == {"qb-1": "New"}
        assert len(asked) == 1

    def test_leaves_no_moment_in_which_the_file_lacks_rows_beside_a_new_one(
        self, hive: Hive, tracker: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else, somebody could commit it, and that would remove them."""
        new(hive, "qb-1")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "one")
        new(hive, "qb-2")
        git(repo, "commit", "-qam", "two")
        git(repo, "checkout", "-q", "HEAD~1", "--", ".beads/issues.jsonl")
        git(repo, "reset", "-q")
        replace_rows, seen = settling.replace_rows, []

        def replaced(path: str, edits: Any) -> Any:
            done = replace_rows(path, edits)
            seen.append(titles(tracker).keys())
            return done

        monkeypatch.setattr(settling, "replace_rows", replaced)
        with hive.transaction() as tx:  # Who reads issues before it has asked already.
            tx.put_issue({"id": "qb-3", "title": "Third"})
            git(repo, "commit", "-q", "--allow-empty", "-m", "meanwhile")
        assert seen == [{"qb-1", "qb-2", "qb-3"}]

    def test_in_vain_shows_the_row_and_writes_nothing(self, hive: Hive, taken: Path) -> None:
        hive.asks_git = lambda layout, since_ms: ({}, False)
        write(hive)
        assert hive.issues.get("qb-1").title == "Title of qb-1"
        assert not taken.exists()
        Tracker(hive).edit("qb-1", title="New")
        assert titles(taken) == {"qb-1": "New"}

    def test_takes_no_longer_than_it_may(
        self, hive: Hive, taken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = tmp_path / "bin" / "git"
        slow.parent.mkdir()
        slow.write_text(f'#!/bin/sh\nsleep 9\nexec {shutil.which("git")} "$@"\n')
        slow.chmod(0o755)
        monkeypatch.setattr(asking, "_LIMIT_S", 0.1)
        monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        write(hive)
        assert not taken.exists()
        assert hive.issues.ids() == ["qb-1"]

    def test_of_an_empty_repository_needs_no_commit(self, tmp_path: Path, clock: Clock) -> None:
        git(tmp_path, "init", "-q", "none")
        (tmp_path / "none" / ".beads").mkdir()
        env = {"QUEEN_DURABILITY": "buffered"}
        hive = Hive.open(tmp_path / "none", droid="a", env=env, clock=clock)
        hive.asks_git = removed_rows
        new(hive, "qb-1")
        Path(hive.layout.issues_path).unlink()
        write(hive)
        assert titles(Path(hive.layout.issues_path)) == {"qb-1": "Title of qb-1"}


FIELDS = ("title", "notes", "design")
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
        hive = Hive.open(path, droid="a", env={"QUEEN_DURABILITY": "buffered"}, clock=clock)
        hive.asks_git = lambda layout, since_ms: ({}, True)
        return hive

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
            file = Appender(target)
            file.append(b"".join(each + b"\n" for each in lines))
            file.close()
            tx.touch("issues")

    def write(self, number: int, _: int) -> None:
        write(self.hives[number])

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


@settings(max_examples=60)
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
        assert titles(tracker) == {"qb-1": "Title of qb-1", "qb-2": "Title of qb-2"}
        assert hive.issues.get("qb-9").title == "big"
        Tracker(hive).edit("qb-9", title="still big")
        assert hive.issues.get("qb-9").title == "still big"
        Tracker(hive).delete("qb-9", reason="too large")
        assert "qb-9" not in hive.issues.ids()
        new(hive, "qb-3")
        assert "qb-9" not in titles(tracker)

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
        assert titles(tracker) == {"qb-1": "big", "qb-2": "Title of qb-2"}

    def test_names_its_issue_by_its_id_alone(self, hive: Hive, tracker: Path) -> None:
        new(hive, "qb-1")
        self.ledger(
            tracker,
            {"id": "qb-5", "row:id": 5, "title": "five", "status": "open", "rev": 7},
            {"id": "qb-6", "row:id": "qb-1", "title": "six", "status": "tombstone", "rev": 7},
        )
        write(hive)
        assert sorted(hive.issues.all()) == ["qb-1", "qb-5"]
        assert hive.issues.get("qb-1").title == "Title of qb-1"

    def test_keeps_fields_that_are_called_as_the_ledger_calls_its_own(
        self, hive: Hive, tracker: Path
    ) -> None:
        row = {"id": "qb-1", "title": "t", "status": "open", "row:id": "zz", "rev": 3, "row:rev": 4}
        rewrite(tracker, row)
        Tracker(hive).edit("qb-1", priority=0)
        tracker.unlink()
        write(hive)
        [back] = records(tracker)
        assert {name: back[name] for name in row} == row
