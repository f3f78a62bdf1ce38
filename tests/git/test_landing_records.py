"""A landing carries the records of the hive, so that the main worktree is clean after it."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, add_hook, commit_file, git, write_lines

from queenbee import Hive
from queenbee.git.contents.running_hooks import HOOK_BY_ALIAS, HOOK_BY_GIT
from queenbee.git.run import user_git
from queenbee.services.waiting import landing_steps
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store import waiting_line


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def files(tree: Path, commit: str) -> dict[str, str]:
    """Returns the blobs of a commit, without those of the records."""
    listed = git(tree, "ls-tree", "-r", commit, "--", ".").splitlines()
    blobs = {path: said.split()[2] for said, path in (each.split("\t") for each in listed)}
    return {path: blob for path, blob in blobs.items() if not path.startswith(".beads/queen_")}


@pytest.fixture(autouse=True)
def _in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed here is whoever lands."""
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")


@pytest.fixture
def tracked(repo: Path, beads: Path, quick: QuickQueen) -> Path:
    """A repository that has its records in git, with two issues."""
    rows = [{"id": f"q-{each}", "title": f"Issue {each}", "status": "open"} for each in (1, 2)]
    write_lines(beads / "issues.jsonl", *rows)
    quick("init")
    quick("config", "set", "land.check", "true")
    quick("msg", "send", "ui", "hello", "--new", as_="boss")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    return repo


@pytest.fixture
def tree(tracked: Path, tmp_path: Path) -> Path:
    return worktree(tracked, tmp_path / "ui")


def worktree(repo: Path, path: Path) -> Path:
    git(repo, "worktree", "add", "-q", str(path), "-b", path.name)
    commit_file(path, f"{path.name}.txt", "x\n")
    return path


@pytest.mark.some(1)
@pytest.mark.parametrize("strategy", ["merge", "squash", "rebase"])
def test_a_landing_leaves_the_main_worktree_clean(
    quick: QuickQueen, tracked: Path, tree: Path, strategy: str
) -> None:
    quick("config", "set", "land.strategy", strategy)
    git(tracked, "commit", "-qam", "settings")
    quick("claim", "q-1", as_="ui", cwd=tree)
    before, log = head(tracked), tracked / ".git" / "log"
    done = quick("land", "--check", f"git rev-parse HEAD >> {log}", as_="ui", cwd=tree)
    assert done.code == 0, done.err
    assert git(tracked, "status", "--porcelain") == git(tree, "status", "--porcelain") == ""
    steps = git(tracked, "rev-list", "--first-parent", f"{before}..main").split()
    assert len(steps) == 2  # What the landing wrote itself, after it, is committed alone.
    assert "q-1" in git(tracked, "show", f"{steps[1]}:.beads/queen_assignments.jsonl")
    assert files(tracked, steps[1]) == files(tracked, log.read_text().strip())
    assert {*git(tracked, "diff", "--name-only", *steps[::-1]).split()} <= {
        f".beads/{each}" for each in ("queen_assignments.jsonl", "queen_issues.jsonl",
                                      "queen_messages.jsonl", "issues.jsonl")
    }  # fmt: skip
    assert head(tree) == head(tracked)
    assert git(tree, "symbolic-ref", "--short", "HEAD").strip() == "ui"


def test_a_landing_carries_what_git_took_away_while_the_check_ran(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    quick("issue", "new", "Third", "--id", "q-3", as_="boss")
    git(tracked, "add", ".beads")
    git(tracked, "commit", "-qm", "records")
    quick("issue", "new", "Fourth", "--id", "q-4", as_="boss")
    back = f"git -C {tracked} checkout -q HEAD~1 -- .beads && git -C {tracked} reset -q"
    assert quick("land", "--check", f"{back} && true", as_="ui", cwd=tree).code == 0
    landed = git(tracked, "log", "-1", "--format=%H", "--merges", "main").strip()
    rows = git(tracked, "show", f"{landed}:.beads/issues.jsonl")
    assert [each for each in ("q-3", "q-4") if each not in rows] == []


def test_a_loop_makes_one_commit_an_issue_and_one_at_its_end(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    before = head(tracked)
    quick("next", as_="ui", cwd=tree)
    for name in ("a", "b"):
        (tree / name).write_text("x\n")
        done = quick("land", "-m", f"add {name}", "--next", as_="ui", cwd=tree)
        assert done.code == 0, done.err
    subjects = git(tracked, "log", "--first-parent", "--format=%s", f"{before}..main").splitlines()
    assert (len(subjects), subjects[0]) == (3, "records")
    assert git(tracked, "status", "--porcelain") == ""


def test_what_is_written_to_the_records_during_the_check_is_carried_and_nothing_is_lost(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    program = Path(sys.executable).with_name("queen")
    say = f"{program} msg send boss 'during the check' --as ui"
    # The other program moves main in between, with records alone: nothing is checked twice.
    commits = f"git -C {tracked} commit -qm records --only -- .beads"
    log = tracked / ".git" / "log"
    check = f"echo once >> {log}; {say}; {commits}; {say}"
    done = quick("land", "--check", check, as_="ui", cwd=tree)
    assert done.code == 0, done.err
    assert log.read_text() == "once\n"
    assert git(tracked, "status", "--porcelain") == ""
    ledger = git(tracked, "show", "main:.beads/queen_messages.jsonl")
    assert ledger.count("during the check") == 2 * 2  # As the subject, and as the body.
    assert ledger == (tracked / ".beads" / "queen_messages.jsonl").read_text()


def test_what_somebody_else_changed_during_the_check_is_checked_with_it(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    (tracked / "README.md").write_text("changed\n")
    log = tracked / ".git" / "log"
    check = f"cat README.md >> {log}; git -C {tracked} commit -qam change || true"
    quick("claim", "q-1", as_="ui", cwd=tree)
    assert quick("land", "--check", check, as_="ui", cwd=tree).code == 0
    assert log.read_text() == "a repository\nchanged\n"
    assert (tracked / "README.md").read_text() == "changed\n"
    assert git(tracked, "status", "--porcelain") == ""


def test_what_is_staged_or_changed_in_the_main_worktree_stays_so(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    (tracked / "staged.txt").write_text("x\n")
    git(tracked, "add", "staged.txt")
    (tracked / "README.md").write_text("changed\n")
    assert quick("land", as_="ui", cwd=tree).code == 0
    assert git(tracked, "status", "--porcelain").splitlines() == [" M README.md", "A  staged.txt"]
    assert git(tracked, "status", "--porcelain", "--", ".beads") == ""


def test_a_landing_that_git_refuses_stages_nothing(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    (tracked / "ui.txt").write_text("in the way\n")
    quick("claim", "q-1", as_="ui", cwd=tree)
    refused = quick("land", as_="ui", cwd=tree)
    assert (refused.code, "ui.txt" in refused.err) == (5, True)
    assert git(tracked, "diff", "--cached", "--name-only") == ""
    assert "q-1" in (tracked / ".beads" / "queen_assignments.jsonl").read_text()


@pytest.mark.parametrize("setting", [("land.records", "false"), None])
def test_records_that_are_not_for_the_branches_of_the_code_stay_out(
    quick: QuickQueen, tracked: Path, tree: Path, setting: tuple[str, str] | None
) -> None:
    if setting is not None:
        quick("config", "set", *setting)
        git(tracked, "commit", "-qam", "settings")
    else:  # As `queen sync setup` leaves it.
        with (tracked / ".beads" / "queen.toml").open("a") as file:
            file.write('[sync]\nledgers = "branch"\n')
        git(tracked, "commit", "-qam", "settings")
    commit = head(tree)
    quick("claim", "q-1", as_="ui", cwd=tree)
    assert quick("land", as_="ui", cwd=tree).code == 0
    assert files(tracked, "main").keys() >= files(tree, commit).keys()
    assert '"issue_id":"q-1"' not in git(tracked, "log", "-p", "main", "--", ".beads")


def test_a_commit_that_others_may_have_is_kept(
    queen: Queen, tracked: Path, tree: Path, tmp_path: Path
) -> None:
    git(tracked, "init", "-q", "--bare", str(tmp_path / "remote"))
    git(tree, "remote", "add", "origin", str(tmp_path / "remote"))
    git(tree, "push", "-q", "origin", "ui")
    own = head(tree)
    queen("claim", "q-1", as_="ui", cwd=tree)
    done = queen("land", as_="ui", cwd=tree)
    assert done.code == 0, done.err
    assert own in git(tracked, "rev-list", "main").split()


@pytest.mark.slow
def test_a_landing_that_was_killed_leaves_the_records_as_they_are(
    queen: Queen, tracked: Path, tree: Path, tmp_path: Path
) -> None:
    deadly, ledger = tmp_path / "smudge", tracked / ".beads" / "queen_messages.jsonl"
    kill = f"case $PWD in {tracked}) kill -9 $(ps -o ppid= -p $PPID) $PPID ;; esac"
    deadly.write_text(f"#!/bin/sh\n{kill}\ncat\n")
    deadly.chmod(0o755)
    git(tracked, "config", "filter.deadly.smudge", str(deadly))
    (tracked / ".git" / "info" / "attributes").write_text("ui.txt filter=deadly\n")
    other = worktree(tracked, tmp_path / "api")
    queen("msg", "send", "boss", "carried", as_="ui", cwd=tree)
    before, said = head(tracked), ledger.read_bytes()
    started = queen.start("land", cwd=tree, as_="ui")
    started.communicate(timeout=60)
    assert started.returncode == -signal.SIGKILL
    assert (head(tracked), ledger.read_bytes()) == (before, said)
    deadly.write_text("#!/bin/sh\ncat\n")
    done = queen("land", as_="api", cwd=other)
    assert (done.code, "left alone" in done.out) == (0, False)
    assert ledger.read_bytes().startswith(said)
    assert git(tracked, "status", "--porcelain") == ""
    assert queen("land", as_="ui", cwd=tree).code == 0
    assert git(tracked, "status", "--porcelain") == ""
    assert ledger.read_text() == git(tracked, "show", "main:.beads/queen_messages.jsonl")


@pytest.mark.slow
def test_a_batch_leaves_the_main_worktree_clean(
    queen: Queen, tracked: Path, tmp_path: Path
) -> None:
    trees = [worktree(tracked, tmp_path / f"w{number}") for number in range(3)]
    queen("claim", "q-1", as_="w1", cwd=trees[1])
    go, began, before = tmp_path / "go", tmp_path / "began", head(tracked)
    began.touch()
    check = f"echo >> {began}; while [ ! -e {go} ]; do sleep 0.05; done"
    started, folder = [], Path(folder_of(Hive.open(tracked, droid="w0", env={}), "main"))
    folder.mkdir(parents=True, exist_ok=True)
    # A check that has just begun gives way to those who come: within a fifth of this time.
    (folder / landing_steps.PACE).write_text('{"check_s": 3600.0}')
    for tree in trees:
        more = ("land", "--check", check)
        started.append(queen.start(*more, cwd=tree, as_=tree.name))
        until(lambda: len(list(waiting_line.live(str(folder)))) == len(started))
        until(lambda: len(began.read_text()) == len(started))
    go.touch()
    done = [(each.communicate(timeout=120), each.returncode) for each in started]
    assert [code for _, code in done] == [0, 0, 0], done
    assert git(tracked, "status", "--porcelain") == ""
    steps = git(tracked, "log", "--first-parent", "--format=%s", f"{before}..main").splitlines()
    assert steps[-1] == "Merge branches 'w0', 'w1' and 'w2' into main"
    assert {*steps[:-1]} <= {"records"}, steps


def until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_a_hook_of_an_index_puts_nothing_else_into_what_lands(
    quick: QuickQueen, tracked: Path, tree: Path
) -> None:
    here = f'[ "$(git rev-parse --show-toplevel)" = {tracked} ] || exit 0'
    adds = f'[ -z "$IN" ] && [ -n "$GIT_INDEX_FILE" ] || exit 0\n{here}\nIN=1 git add -A\n'
    add_hook(tracked, "post-index-change", adds)
    quick("claim", "q-1", as_="ui", cwd=tree)
    (tracked / "wip.txt").write_text("wip\n")
    (tracked / "README.md").write_text("unfinished\n")
    before = git(tracked, "rev-parse", "main").strip()
    assert quick("land", as_="ui", cwd=tree).code == 0
    changed = git(tracked, "log", "-m", "--name-only", "--format=", f"{before}..main")
    assert not {"wip.txt", "README.md"} & {*changed.split()}


def test_a_hook_puts_nothing_else_into_the_commit_of_records(
    quick: QuickQueen, tracked: Path, tree: Path, tmp_path: Path
) -> None:
    steps = tmp_path / "steps"
    only = '[ "$(git branch --show-current)" = main ] || exit 0\n'
    add_hook(tracked, "pre-commit", f"{only}git add -A\n")
    add_hook(tracked, "commit-msg", 'git add -A\necho "Signed-off-by: me" >> "$1"\n')
    add_hook(tracked, "reference-transaction", f'[ "$1" != committed ] || cat >> {steps}\n')
    quick("claim", "q-1", as_="ui", cwd=tree)
    (tracked / "wip.txt").write_text("wip\n")
    (tracked / "README.md").write_text("unfinished\n")
    done = quick("land", as_="ui", cwd=tree)
    assert done.code == 0 and "a hook of git staged other files" in done.out
    assert "Signed-off-by: me" in git(tracked, "log", "-1", "--format=%B", "main")
    moves = [each.split() for each in steps.read_text().splitlines() if "refs/heads/main" in each]
    assert len(moves) > 1
    for _, commit, _ in moves:
        assert "wip.txt" not in files(tracked, commit)
        assert git(tracked, "show", f"{commit}:README.md") != "unfinished\n"
    assert git(tracked, "status", "--porcelain").splitlines() == [" M README.md", "?? wip.txt"]
    assert (tracked / "wip.txt").read_text() == "wip\n"
    quick("claim", "q-2", as_="ui", cwd=tree)
    again = quick("complete", "q-2", as_="ui", cwd=tree)
    assert again.code == 0 and "a hook of git" not in again.out
    assert "wip.txt" not in files(tracked, "main")


@pytest.mark.some(1)
@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_what_a_hook_says_of_the_records_is_told(
    quick: QuickQueen, tracked: Path, tree: Path, hook: str
) -> None:
    only = '[ "$(git branch --show-current)" = main ] || exit 0\n'
    add_hook(tracked, hook, f"{only}echo no ticket; exit 3\n")
    quick("claim", "q-1", as_="ui", cwd=tree)
    done = quick("land", as_="ui", cwd=tree)
    assert "the records are not committed: no ticket" in done.out + done.err, done


def test_a_hook_in_a_folder_of_the_settings_is_asked_about_the_records(
    quick: QuickQueen, tracked: Path, tree: Path, tmp_path: Path
) -> None:
    add_hook(tracked, "commit-msg", '[ "$(git branch --show-current)" != main ] || exit 3\n')
    (tracked / ".git" / "hooks").rename(tmp_path / "hooks")
    git(tracked, "config", "core.hooksPath", str(tmp_path / "hooks"))
    quick("claim", "q-1", as_="ui", cwd=tree)
    done = quick("land", as_="ui", cwd=tree)
    assert "the records are not committed: status 3" in done.out + done.err, done


@pytest.mark.parametrize("has_command", [True, False])
def test_a_hook_is_run_by_any_git(repo: Path, has_command: bool) -> None:
    add_hook(repo, "commit-msg", 'echo "$# $2" >> "$1"; [ "$2" != no ] || exit 3\n')
    message = repo / "message"
    for word, status in (("no", 3), ("a b", 0)):
        way = HOOK_BY_GIT if has_command else HOOK_BY_ALIAS
        hook = (*way, "commit-msg", "--", str(message), word)
        assert user_git(*hook, cwd=str(repo))[0] == status
    assert message.read_text() == "2 no\n2 a b\n"
    assert user_git(*way, "pre-push", "--", cwd=str(repo))[0] == 0
