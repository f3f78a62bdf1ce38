"""Landing the work on an issue: its checks first, its completion last, and who is told."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from bead_files import put_bead, ralph_bead
from hives import Queen, QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import Busy
from queenbee.git import hooks
from queenbee.git.landing import landed_issue
from queenbee.git.landing.arrivals import Arrival, sentences
from queenbee.services.leases import edits
from queenbee.services.telling.briefing import section
from queenbee.store.git_files import tree_id
from queenbee.store.lock import KernelLock


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A linked worktree with a commit."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    commit_file(tmp_path / "one", "new.txt", "x\n")
    return tmp_path / "one"


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def author(tree: Path) -> str:
    return git(tree, "log", "-1", "--format=%an").strip()


def test_what_has_landed_is_completed_however_long_others_write(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "gt-1", "title": "x", "status": "open"})
    quick("claim", "gt-1", as_="ui", cwd=tree)
    (beads / "queen.toml").write_text('lock_timeout = "0s"\n')
    complete, held, writers = landed_issue.complete, threading.Event(), []

    def write() -> None:
        with KernelLock(str(repo / ".git" / "queenbee" / "lock"), holder="another", timeout_s=30):
            held.set()
            time.sleep(0.3)

    def completed(*args: Any, **more: Any) -> Any:
        writers.append(threading.Thread(target=write))
        writers[0].start()
        held.wait(30)
        return complete(*args, **more)

    monkeypatch.setattr(landed_issue, "complete", completed)
    done = quick("land", "--unchecked", "--wait=0s", as_="ui", cwd=tree)
    writers[0].join()
    assert done.code == 0
    assert quick("issue", "assignments", "--status=all", "--json").json[0]["status"] == "completed"


class TestTheChecksOfABead:
    def claimed(self, quick: QuickQueen, repo: Path, tree: Path, *commands: str) -> None:
        write_lines(
            repo / ".beads" / "issues.jsonl", {"id": "gt-1", "title": "x", "status": "open"}
        )
        put_bead(repo, ralph_bead("gt-1", *commands))
        quick("claim", "gt-1", as_="ui", cwd=tree)

    def test_run_before_anything_lands(
        self, quick: QuickQueen, repo: Path, beads: Path, tree: Path
    ) -> None:
        self.claimed(quick, repo, tree, "test -e missing.txt")
        before = head(repo, "main")
        refused = quick("land", as_="ui", cwd=tree)
        assert (refused.code, "the checks of gt-1 failed" in refused.out) == (1, True)
        assert head(repo, "main") == before
        assert quick("issue", "assignments", "--json", as_="ui").json[0]["status"] == "active"

    def test_run_once_on_what_lands_and_complete_it(
        self, quick: QuickQueen, repo: Path, beads: Path, tree: Path, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        self.claimed(quick, repo, tree, f"git rev-parse HEAD >> {log}")
        commit_file(repo, "late.txt", "x\n")
        done = quick("land", as_="ui", cwd=tree)
        assert done.code == 0, done
        assert log.read_text() == f"{head(repo, 'main')}\n"
        (record,) = quick("issue", "assignments", "--status", "completed", "--json").json
        assert f"landed as {head(repo, 'main')[:10]}" in record["reason"]

    def test_are_not_run_for_a_bead_that_waits(
        self, quick: QuickQueen, repo: Path, beads: Path, tree: Path
    ) -> None:
        self.claimed(quick, repo, tree, "true")
        put_bead(repo, ralph_bead("gt-0", "true"))
        put_bead(repo, ralph_bead("gt-1", "true", dependencies=["gt-0"]))
        before = head(repo, "main")
        assert quick("land", as_="ui", cwd=tree).code == 5
        assert head(repo, "main") == before


def test_those_who_work_on_files_that_changed_are_told(
    quick: QuickQueen, repo: Path, tree: Path
) -> None:
    quick("reserve", "--shared", "new.txt", as_="api")
    quick("reserve", "--shared", "other.txt", as_="db")
    shown = quick("land", "--unchecked", as_="ui", cwd=tree)
    assert "told api that this changes files that they work on" in shown.out
    (message,) = quick("msg", "inbox", "--json", as_="api").json
    assert message["subject"] == "main has changed files that you work on"
    assert f"ui landed {head(repo, 'main')[:10]} on main, which changes new.txt" in message["body"]
    assert quick("msg", "inbox", "--json", as_="db").json == []


def test_who_has_an_issue_about_files_everywhere_is_told_of_each_landing(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path
) -> None:
    about = {"title": "rename it everywhere", "status": "open"}
    rows = ({**about, "id": "qb-1", "labels": ["across"]}, {**about, "id": "qb-2"})
    write_lines(beads / "issues.jsonl", *rows)
    quick("claim", "qb-1", as_="api")
    quick("claim", "qb-2", as_="db")
    done = quick("land", "--unchecked", "--json", as_="ui", cwd=tree)
    assert done.json["told"] == ["api"]
    (message,) = quick("msg", "inbox", "--json", as_="api").json
    assert "which changes new.txt" in message["body"]


def test_those_with_unmerged_work_in_files_that_changed_are_told_once_without_a_lease(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    for name, droid in (("two", "api"), ("three", "db"), ("four", "ops")):
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        quick("hive", "whoami", "--set", droid, cwd=tmp_path / name)
    (tmp_path / "two" / "README.md").write_text("theirs\n")
    commit_file(tmp_path / "three", "README.md", "theirs\n")
    quick("reserve", "--shared", "README.md", as_="db", cwd=tmp_path / "three")
    (tmp_path / "four" / "other.txt").write_text("y\n")
    commit_file(tree, "README.md", "mine\n")
    assert quick("land", "--unchecked", "--json", as_="ui", cwd=tree).json["told"] == ["api", "db"]
    for droid, many in (("api", 1), ("db", 1), ("ops", 0)):
        assert len(quick("msg", "inbox", "--json", as_=droid).json) == many, droid


def test_who_is_just_brought_to_what_landed_is_not_told(
    quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
) -> None:
    """Git writes the files of a worktree before it moves its branch."""
    old = (repo / "README.md").read_text()
    commit_file(repo, "kept.txt", "x\n")
    git(tree, "merge", "-q", "main")
    for name, droid in (("two", "api"), ("three", "db"), ("four", "ops")):
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        quick("hive", "whoami", "--set", droid, cwd=tmp_path / name)
        (tmp_path / name / "more.txt").write_text("mine\n")
        (tmp_path / name / "README.md").unlink()
    (tmp_path / "three" / "README.md").write_text(f"{old}theirs\n")
    (tmp_path / "three" / "more.txt").unlink()
    (tmp_path / "four" / "kept.txt").unlink()
    commit_file(tree, "kept.txt", "mine\n")
    commit_file(tree, "more.txt", "mine\n")
    git(tree, "rm", "-q", "README.md")
    git(tree, "commit", "-qm", "away")
    assert quick("land", "--unchecked", "--json", as_="ui", cwd=tree).json["told"] == ["db", "ops"]


class TestWhatCameIn:
    @pytest.fixture
    def behind(
        self, quick: QuickQueen, repo: Path, beads: Path, tree: Path, tmp_path: Path
    ) -> Path:
        """A worktree that changes README.md; `qb-1` of api landed there since, with two commits
        and a record, and then somebody committed on main.
        """
        write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
        two = tmp_path / "two"
        git(repo, "worktree", "add", "-q", str(two), "-b", "two")
        quick("claim", "qb-1", as_="api", cwd=two)
        text = (tree / "README.md").read_text()
        commit_file(two, "README.md", f"first\n{text}")
        commit_file(two, "two.txt", "x\n")
        assert quick("land", "--unchecked", "--reason", "all in", as_="api", cwd=two).code == 0
        commit_file(repo, "late.txt", "x\n")
        commit_file(tree, "README.md", f"{text}\n\n\nlast\n")
        return tree

    def test_is_named_with_three_files_and_how_many_more(self) -> None:
        files = [f"f{number}.py" for number in range(4)]
        come = Arrival("a" * 40, "x", "ann", files, issue_id="qb-1", droid="api")
        said = "which changes f0.py, f1.py, f2.py and 1 more too"
        assert sentences([come]) == [f"qb-1 by api (aaaaaaaaaa), {said}"]

    def test_is_said_in_one_line_with_what_changed_the_same_files(self) -> None:
        three = [
            Arrival(letter * 40, "x", "ann", files, issue_id=f"qb-{letter}", droid="api")
            for letter, files in (("a", ["f.py"]), ("b", []), ("c", ["f.py"]))
        ]
        assert sentences(three) == [
            "qb-a by api (aaaaaaaaaa), qb-c by api (cccccccccc), which change f.py too",
            "qb-b by api (bbbbbbbbbb)",
        ]

    @pytest.mark.some(1)
    @pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
    def test_is_named_with_the_files_that_this_branch_changes_too(
        self, quick: QuickQueen, repo: Path, beads: Path, behind: Path, strategy: str
    ) -> None:
        (beads / "queen.toml").write_text(f'[land]\nstrategy = "{strategy}"\n')
        commit_file(behind, "README.md", f"first\n{(behind / 'README.md').read_text()}")
        late, landed = git(repo, "rev-parse", "main", "main~1").split()
        done = quick("land", "--unchecked", as_="ui", cwd=behind)
        assert done.code == 0, done
        shown = [each for each in done.out.split("\n") if each.startswith("came in: ")]
        assert [each.replace("“", '"').replace("”", '"') for each in shown] == [
            f'came in: {late[:10]} "add late.txt" by {author(repo)}',
            f"came in: qb-1 by api ({landed[:10]}), which changes README.md too",
        ]

    @pytest.mark.parametrize("is_old", [False, True])
    def test_is_its_issues_by_the_field_and_in_old_records_by_the_reason(
        self, quick: QuickQueen, repo: Path, beads: Path, behind: Path, is_old: bool
    ) -> None:
        landed = git(repo, "rev-parse", "main~1").strip()
        (record,) = quick("issue", "assignments", "--status", "completed", "--json").json
        assert record["landed"] == landed
        changed = {"landed": None} if is_old else {"reason": "another version says it otherwise"}
        line = {**record, **changed, "rev": record["rev"] + 1}
        write_lines(beads / "queen_assignments.jsonl", line)
        done = quick("land", "--unchecked", "--json", as_="ui", cwd=behind)
        assert done.json["landing"]["came_in"][1]["issue_id"] == "qb-1"

    def test_is_in_the_json(self, quick: QuickQueen, repo: Path, behind: Path) -> None:
        late, landed = git(repo, "rev-parse", "main", "main~1").split()
        done = quick("land", "--unchecked", "--json", as_="ui", cwd=behind)
        assert done.json["landing"]["came_in"] == [
            {
                "issue_id": None,
                "droid": None,
                "beside": [],
                "commit": late,
                "subject": "add late.txt",
                "files": [],
            },
            {
                "issue_id": "qb-1",
                "droid": "api",
                "beside": [],
                "commit": landed,
                "subject": "Merge branch 'two'",
                "files": ["README.md"],
            },
        ]

    @pytest.mark.some(1)
    @pytest.mark.parametrize("strategy", ["merge", "rebase"])
    def test_is_named_with_the_conflict_and_not_again_after_it(
        self, quick: QuickQueen, repo: Path, beads: Path, behind: Path, strategy: str
    ) -> None:
        (beads / "queen.toml").write_text(f'[land]\nstrategy = "{strategy}"\n')
        commit_file(behind, "README.md", "other\n")
        refused = quick("land", "--unchecked", as_="ui", cwd=behind)
        assert refused.code == 5
        assert refused.out.count("came in: qb-1 by api (") == 1
        assert "late.txt" not in refused.err
        # Neither where somebody else was faster.
        commit_file(repo, "README.md", "third\n")
        said = ""
        for text in ("both\n", "all\n", "all of it\n"):
            (behind / "README.md").write_text(text)
            git(behind, "add", "README.md")
            done = quick("land", "--continue", as_="ui", cwd=behind)
            said += done.out
            if done.code == 0:
                break
        assert done.code == 0, done
        assert "came in: qb-1" not in said
        assert said.count("came in: ") == 1

    def test_names_no_file_if_both_only_add_to_a_change_log(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        commit_file(repo, "CHANGELOG.md", "- begun\n")
        git(tree, "merge", "-q", "--no-edit", "main")
        commit_file(repo, "CHANGELOG.md", "- begun\n- theirs\n")
        commit_file(tree, "CHANGELOG.md", "- begun\n- mine\n")
        said = quick("land", "--unchecked", as_="ui", cwd=tree).out
        assert "“add CHANGELOG.md” by" in said
        assert "which changes" not in said

    def test_is_no_commit_of_records_alone(self, quick: QuickQueen, repo: Path, tree: Path) -> None:
        commit_file(repo, "work.txt", "x\n")
        commit_file(repo, ".beads/notes.jsonl", "{}\n")
        shown = quick("land", "--unchecked", as_="ui", cwd=tree).out.split("\n")
        [came] = [each for each in shown if each.startswith("came in: ")]
        assert "work.txt" in came

    def test_names_at_most_five_landings(
        self, quick: QuickQueen, repo: Path, beads: Path, tree: Path
    ) -> None:
        for number in range(7):
            commit_file(repo, f"{number}.txt", "x\n")
        shown = quick("land", "--unchecked", as_="ui", cwd=tree).out.split("\n")
        came, more = (each for each in shown if each.startswith("came in: "))
        assert came.count(" by Tester") == 5
        assert more == "came in: 2 more landings"
        assert "came in: 2 more landings" in shown
        commit_file(tree, "more.txt", "x\n")
        assert "came in" not in quick("land", "--unchecked", as_="ui", cwd=tree).out


def test_a_commit_that_landing_makes_names_the_issue(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path
) -> None:
    write_lines(
        beads / "issues.jsonl", {"id": "qb-1", "title": "new  things\nof x", "status": "open"}
    )
    quick("claim", "qb-1", as_="ui", cwd=tree)
    commit_file(repo, "late.txt", "x\n")
    assert quick("land", "--unchecked", as_="ui", cwd=tree).code == 0
    said = git(repo, "log", "-1", "--format=%B", "main").splitlines()
    assert (said[0], "* qb-1: new  things of x" in said) == ("Merge branch 'one'", True)


def test_every_text_names_the_same_command(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    command = "queen land -m 'WHAT YOU DID' --next"
    assert f"when it is done: {command}\n" in quick("next", as_="ui", cwd=tree).out
    assert f"`{command}` commits" in quick("prime", as_="ui", cwd=tree).out
    assert f"`{command}` commits" in section()
    assert "queen land -m TEXT --next." in " ".join(quick("--help").out.split())


def test_abort_takes_nothing_else(quick: QuickQueen, tree: Path) -> None:
    assert quick("land", "--abort", "--next", as_="ui", cwd=tree).code == 2


class TestTheGuard:
    """In the hook `pre-commit` of the commit that ends a merge with conflicts."""

    @pytest.fixture
    def conflict(self, quick: QuickQueen, repo: Path, beads: Path, tree: Path) -> Path:
        """A worktree where landing resolves a conflict by itself, in a file that another droid has
        announced there.
        """
        (beads / "queen.toml").write_text('[land]\nunion = ["README.md"]\n')
        text = (tree / "README.md").read_text()
        commit_file(tree, "README.md", f"{text}from one\n")
        commit_file(repo, "README.md", f"{text}from main\n")
        hooks.install(hooks.HookFolder(str(repo)))
        other = Hive.open(tree, droid="api", env={})
        with other.transaction() as tx:
            fields = {"pattern": "README.md", "exclusive": False, "droid": "api"}
            made = {
                "tree_id": tree_id.keep_tree_id(other.layout),
                "session": "s",
                "status": "active",
            }
            ends = {"expires_at": "2099-01-01T00:00:00.000Z"}
            tx.create("reservations", {**fields, **made, **ends})
        return tree

    def test_lets_a_landing_pass_what_others_announced(
        self, queen: Queen, repo: Path, conflict: Path
    ) -> None:
        done = queen("land", "--unchecked", as_="ui", cwd=conflict)
        assert done.code == 0, done
        assert (repo / "README.md").read_text().endswith("from one\nfrom main\n")

    def test_asks_whether_the_turn_is_under_way(
        self, queen: Queen, repo: Path, conflict: Path
    ) -> None:
        (conflict / "README.md").write_text("by hand\n")
        git(conflict, "add", "README.md")
        for token in ("main/01HF0000000000000000000000", "main", "x"):
            env = {"QUEEN_LANDING": token}
            assert queen("guard", "check", "--staged", as_="ui", cwd=conflict, env=env).code == 1


def test_a_completion_that_fails_says_that_it_has_landed_and_is_done_by_the_next_call(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
    quick("claim", "qb-1", as_="ui", cwd=tree)

    def fails(*_: object, **__: object) -> object:
        raise Busy("the lock is taken")

    with monkeypatch.context() as broken:
        broken.setattr(landed_issue, "complete", fails)
        refused = quick("land", "--unchecked", as_="ui", cwd=tree)
    assert (refused.code, "landed on main; run queen land again" in refused.out) == (6, True)
    assert head(repo, "main") == head(tree)
    assert quick("land", "--unchecked", as_="ui", cwd=tree).code == 0
    (done,) = quick("issue", "assignments", "--status", "completed", "--json").json
    assert done["reason"] == f"landed as {head(repo, 'main')[:10]}"


def test_what_was_announced_and_landed_is_announced_no_longer(
    quick: QuickQueen, repo: Path, beads: Path, tree: Path
) -> None:
    hive = Hive.open(tree, droid="ui", env={"QUEEN_DURABILITY": "buffered"})
    files = ("new.txt", "later.txt")
    edits.keep(hive.reservations, edits.look(hive.reservations, files, "s1"), "s1")
    (tree / "later.txt").write_text("not committed")
    assert quick("land", "--unchecked", as_="ui", cwd=tree).code == 0
    assert [lease.pattern for lease in hive.reservations.find()] == ["later.txt"]
