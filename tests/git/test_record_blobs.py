"""What is committed as records without a check: records that were understood, and nothing else."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import QuickQueen, add_hook, commit_file, git, write_lines

from queenbee import Hive
from queenbee.documents.ralph.bead_files import find_bead, update_bead
from queenbee.git.landed import commit_records
from queenbee.git.landing import Rules, land
from queenbee.git.objects import Objects
from queenbee.workflows.running import bead_folders

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ESCAPED = TOKEN.replace("g", "\\u0067")


@pytest.fixture
def hive(repo: Path, quick: QuickQueen) -> Hive:
    """A hive in git, with a record that is not committed."""
    quick("init")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-1", "title": "One", "status": "open"})
    commit_file(repo, "a.txt", "a\n")
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a hive")
    assert quick("claim", "q-1", as_="ui").code == 0
    return Hive.open(repo, droid="ui", env={})


def files(repo: Path) -> set[str]:
    """Returns what the last commit changed."""
    return {*git(repo, "show", "--format=", "--name-only", "HEAD").split()}


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


def test_only_records_are_committed_and_their_bytes(hive: Hive, repo: Path) -> None:
    (repo / ".beads" / ".env").write_text(f"AWS_SECRET_ACCESS_KEY={TOKEN}\n")
    (repo / ".beads" / "dump.bin").write_bytes(bytes(2**20))
    (repo / ".beads" / "active").mkdir()
    (repo / ".beads" / "active" / "draft.json").write_text('{"id": "dra')
    (repo / ".beads" / "queen.toml").write_text('[land]\ncheck = "true"\n')
    (repo / ".beads" / "queen_strange.jsonl").write_text('{"id": "x"}\n')
    said = commit_records(hive, is_end=True)
    assert said == (
        ".beads/queen_strange.jsonl is not committed: this version knows no such records"
    )
    assert files(repo) == {".beads/queen_assignments.jsonl", ".beads/issues.jsonl"} & files(repo)
    assert git(repo, "log", "-1", "--format=%s").strip() == "records"
    path = ".beads/queen_assignments.jsonl"
    assert git(repo, "show", f"HEAD:{path}") == (repo / path).read_text()
    assert path not in git(repo, "status", "--porcelain")
    assert commit_records(hive, is_end=True) == ""  # It was said.


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"id": "q-2", "title": f"use {TOKEN}"}, "line 2: the title seems to hold a secret"),
        (b"<<<<<<< HEAD", "line 2 is no record"),
        ('{"id": "q-2", "title": "half', "line 2 is no record"),
        (f'{{"id": "q-2", "title": "{ESCAPED}"}}', "line 2: the title seems to hold a secret"),
        ({"id": "q-2", "x": {TOKEN: 1}}, "line 2: the row seems to hold a secret"),
        (f'{{"id": "q-2", "x": {{"{ESCAPED}": 1}}}}', "line 2: the row seems to hold a secret"),
        ({"id": "q-2", "seen_at": TOKEN}, "line 2: the row seems to hold a secret"),
        ({"id": "q-2", "metadata": {"password": "hunter2Zq9x"}}, "line 2: the row seems to hold"),
        (f'{{"id": "q-2", "title": "{TOKEN}", "title": "x"}}', "line 2 is no record: a field is"),
        (f'{{"id": "q-2", "x": {{"a": "{ESCAPED}", "a": ""}}}}', "line 2 is no record: a field is"),
    ],
)
def test_a_line_that_is_not_a_record_or_holds_a_secret_keeps_its_file_out(
    hive: Hive, repo: Path, line: dict[str, str] | str | bytes, why: str
) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", line)
    before = git(repo, "show", "HEAD:.beads/issues.jsonl")
    said = commit_records(hive, is_end=False)
    assert f".beads/issues.jsonl is not committed: {why}" in said
    assert git(repo, "show", "HEAD:.beads/issues.jsonl") == before
    assert ".beads/queen_assignments.jsonl" in files(repo)


def test_what_was_committed_before_is_not_judged_again(hive: Hive, repo: Path) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-2", "title": f"use {TOKEN}"})
    git(repo, "commit", "-qam", "somebody wanted it")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-3", "title": "Three"})
    assert commit_records(hive, is_end=False) == ""
    assert "q-3" in git(repo, "show", "HEAD:.beads/issues.jsonl")


def test_others_write_while_git_gets_the_records_and_no_part_of_that_is_committed(
    hive: Hive, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Hive.open(repo, droid="db", env={})
    other.layout.settings.lock_timeout_s = 1
    path = ".beads/queen_assignments.jsonl"
    before = (repo / path).read_text()
    read = Objects.read

    def meanwhile(self: Objects, name: str) -> tuple[str, str, bytes] | None:
        monkeypatch.undo()
        other.assignments.claim("q-2")
        return read(self, name)

    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-2", "title": "Two", "status": "open"})
    monkeypatch.setattr(Objects, "read", meanwhile)
    commit_records(hive, is_end=False)
    assert git(repo, "show", f"HEAD:{path}") == before
    assert "q-2" in (repo / path).read_text()


def bead(repo: Path, hive: Hive, name: str) -> Path:
    """Returns a bead of somebody's, once QueenBee has written it."""
    path = repo / ".beads" / "active" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"id": name, "intent": "x", "status": "pending"}))
    folders = bead_folders(hive)
    update_bead(find_bead(folders, name), lambda document: document.update(tried=1), folders)
    return path


def test_a_bead_is_committed_as_it_was_last_written_and_not_otherwise(
    hive: Hive, repo: Path
) -> None:
    ours, theirs = bead(repo, hive, "ours"), bead(repo, hive, "theirs")
    theirs.write_text('{"id": "theirs", "intent": "half')
    commit_records(hive, is_end=True)
    assert {".beads/active/ours.json"} == {each for each in files(repo) if "active" in each}
    folders = bead_folders(hive)
    update_bead(find_bead(folders, "ours"), lambda it: it.update(status="completed"), folders)
    assert not ours.exists()
    commit_records(hive, is_end=True)
    listed = git(repo, "ls-tree", "-r", "--name-only", "HEAD", "--", ".beads")
    assert ("completed/ours.json" in listed, "active/ours.json" in listed) == (True, False)


def stop_at_edit(repo: Path) -> None:
    commit_file(repo, "b.txt", "b\n")
    git(repo, "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")


def at_a_conflict(*command: str) -> Callable[[Path], None]:
    def begin(repo: Path) -> None:
        git(repo, "checkout", "-q", "-b", "other")
        commit_file(repo, "a.txt", "other\n")
        (repo / "mail").write_text(git(repo, "format-patch", "-1", "--stdout"))
        git(repo, "checkout", "-q", "main")
        commit_file(repo, "a.txt", "main\n")
        with pytest.raises(AssertionError):
            git(repo, *command)

    return begin


def stage(repo: Path) -> None:
    (repo / "own.txt").write_text("x\n")
    git(repo, "add", "own.txt")


STATES: dict[str, tuple[Callable[[Path], object], str]] = {
    "rebase": (stop_at_edit, "git rebase is under way"),
    "merge": (at_a_conflict("merge", "other"), "git merge is under way"),
    "cherry-pick": (at_a_conflict("cherry-pick", "other"), "git cherry-pick is under way"),
    "revert": (at_a_conflict("revert", "other"), "git revert is under way"),
    "am": (at_a_conflict("am", "mail"), "git am is under way"),
    "bisect": (lambda repo: git(repo, "bisect", "start"), "git bisect is under way"),
    "detached": (lambda repo: git(repo, "checkout", "-q", "--detach"), " switch main"),
    "staged": (stage, "something is staged"),
}


@pytest.mark.parametrize("state", sorted(STATES))
def test_nothing_is_committed_while_a_person_is_in_the_midst_of_something(
    hive: Hive, repo: Path, state: str
) -> None:
    begin, why = STATES[state]
    begin(repo)
    before, index = head(repo), git(repo, "ls-files", "--stage")
    said = commit_records(hive, is_end=True)
    assert said.startswith("the records are not committed: ")
    assert why in said
    assert commit_records(hive, is_end=True) == ""
    assert (head(repo), git(repo, "ls-files", "--stage")) == (before, index)


def test_it_is_said_again_after_it_was_over(hive: Hive, repo: Path, quick: QuickQueen) -> None:
    for number in range(2):
        stage(repo)
        assert "something is staged" in commit_records(hive, is_end=True)
        git(repo, "rm", "-q", "--cached", "own.txt")
        assert commit_records(hive, is_end=True) == ""
        quick("msg", "send", "boss", f"text {number}", "--new", as_="ui")


def test_the_hooks_of_the_user_run(hive: Hive, repo: Path) -> None:
    add_hook(repo, "pre-commit", f"git diff --cached --name-only > {repo}/.git/seen\n")
    commit_records(hive, is_end=False)
    assert ".beads/queen_assignments.jsonl" in (repo / ".git" / "seen").read_text()
    add_hook(repo, "pre-commit", "exit 1\n")
    before = head(repo)
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "q-2", "title": "Two"})
    commit_records(hive, is_end=False)
    assert head(repo) == before
    assert git(repo, "diff", "--cached", "--name-only") == ""
    assert not (repo / ".git" / "index.lock").exists()


def test_what_a_person_stages_during_the_commit_is_refused_and_not_committed(
    hive: Hive, repo: Path
) -> None:
    text = f"unset GIT_INDEX_FILE; echo x > own.txt; git add own.txt 2> {repo}/.git/said; true"
    add_hook(repo, "pre-commit", f"{text}\n")
    commit_records(hive, is_end=False)
    assert "index.lock" in (repo / ".git" / "said").read_text()
    assert "own.txt" not in files(repo)


def test_a_branch_that_is_begun_during_the_commit_does_not_get_it(hive: Hive, repo: Path) -> None:
    before = head(repo)
    add_hook(repo, "pre-commit", "git switch -qc fix")
    assert commit_records(hive, is_end=True) == ""
    assert git(repo, "rev-parse", "fix") == head(repo) == before
    assert git(repo, "log", "-1", "--format=%s", "main").strip() == "records"
    assert git(repo, "diff", "--cached", "--name-only") == ""
    assert (repo / ".beads" / "queen_assignments.jsonl").read_text()


def test_it_waits_for_a_git_that_is_at_work(hive: Hive, repo: Path) -> None:
    (repo / ".git" / "index.lock").write_text("")
    before = head(repo)
    commit_records(hive, is_end=False)
    assert head(repo) == before
    assert (repo / ".git" / "index.lock").exists()


def test_a_lock_of_one_who_was_killed_is_in_nobodys_way(hive: Hive, repo: Path) -> None:
    """Of one who lives it is: the lock is held, whatever the file looks like."""
    lock = repo / ".git" / "index.lock"
    held = "import sys, time; from queenbee.git.index_lock import IndexLock\n"
    held += "with IndexLock(sys.argv[1]): print(1, flush=True); time.sleep(60)"
    command = [sys.executable, "-c", held, str(repo / ".git")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        before = head(repo)
        commit_records(hive, is_end=True)
        assert (head(repo), lock.exists()) == (before, True)
        holder.kill()
    assert lock.exists()
    commit_records(hive, is_end=True)
    assert (head(repo) == before, lock.exists()) == (False, False)


def land_another(repo: Path) -> None:
    tree = repo.with_name("tree")
    git(repo, "worktree", "add", "-q", str(tree))
    commit_file(tree, "b.txt", "b\n")
    land(Hive.open(tree, droid="ui", env={}), check=None, wait_s=20, rules=Rules())


MENDERS: dict[str, Callable[[Path, Hive, QuickQueen], object]] = {
    "the next landing": lambda repo, hive, quick: land_another(repo),
    "the next commit of records": lambda repo, hive, quick: commit_records(hive, is_end=False),
    "doctor": lambda repo, hive, quick: quick("doctor", "--fix"),
}


def stopped(repo: Path, how: str) -> int:
    """Has a commit of records stopped as soon as the branch has moved; returns its status."""
    add_hook(repo, "reference-transaction", f"[ $1 != committed ] || kill {how}\n")
    code = "import sys; from queenbee import Hive; from queenbee.git.landed import commit_records\n"
    code += "commit_records(Hive.open(sys.argv[1], droid='ui', env={}), is_end=True)"
    done = subprocess.run([sys.executable, "-c", code, str(repo)], check=False)
    (repo / ".git" / "hooks" / "reference-transaction").unlink()
    assert ".beads/queen_assignments.jsonl" in files(repo)
    return done.returncode


def nothing_is_left(repo: Path) -> bool:
    names = {each.name for each in (repo / ".git").iterdir()}
    is_left = "index.lock" in names or any(each.startswith("queenbee-rec") for each in names)
    return not is_left and git(repo, "diff", "--cached", "--name-only") == ""


def test_who_is_interrupted_before_the_index_follows_leaves_nothing_staged(
    hive: Hive, repo: Path
) -> None:
    assert stopped(repo, "-INT $(ps -o ppid= -p $PPID)") == -signal.SIGINT
    assert nothing_is_left(repo)


@pytest.mark.parametrize("mender", MENDERS)
@pytest.mark.parametrize("has_lock", [True, False], ids=["locked", "a person removed the lock"])
def test_who_is_killed_before_the_index_follows_leaves_nothing_staged(
    hive: Hive, repo: Path, quick: QuickQueen, mender: str, *, has_lock: bool
) -> None:
    """The next commit of a person would take the records back."""
    assert stopped(repo, "-9 $(ps -o ppid= -p $PPID) $PPID") == -signal.SIGKILL
    assert git(repo, "diff", "--cached", "--name-only") == ".beads/queen_assignments.jsonl\n"
    if not has_lock:
        (repo / ".git" / "index.lock").unlink()
    MENDERS[mender](repo, hive, quick)
    assert nothing_is_left(repo)


def test_what_a_person_has_staged_since_somebody_was_killed_stays_staged(
    hive: Hive, repo: Path, quick: QuickQueen
) -> None:
    stopped(repo, "-9 $(ps -o ppid= -p $PPID) $PPID")
    (repo / ".git" / "index.lock").unlink()
    stage(repo)
    quick("doctor", "--fix")
    assert "own.txt" in git(repo, "diff", "--cached", "--name-only")


@pytest.mark.parametrize("secret", [{"notes": f"use {TOKEN}"}, {"x": {TOKEN: 1}}])
def test_a_bead_into_which_somebody_wrote_a_secret_stays_where_it_was(
    hive: Hive, repo: Path, secret: dict[str, object]
) -> None:
    """Also if QueenBee wrote the file last, and moved it: what was committed of it is kept."""
    ours = bead(repo, hive, "ours")
    commit_records(hive, is_end=True)
    ours.write_text(json.dumps({"id": "ours", "intent": "x", "status": "pending", **secret}))
    folders = bead_folders(hive)
    update_bead(find_bead(folders, "ours"), lambda it: it.update(status="completed"), folders)
    said = commit_records(hive, is_end=True)
    assert ".beads/completed/ours.json is not committed: the bead: the " in said
    listed = git(repo, "ls-tree", "-r", "--name-only", "HEAD", "--", ".beads")
    assert ("completed/ours.json" in listed, "active/ours.json" in listed) == (False, True)
