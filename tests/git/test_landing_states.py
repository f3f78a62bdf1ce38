"""Landing as a state machine: whatever the last one left, each call ends, and loses nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import QueenError
from queenbee.git.landing import NotLanded, Rules, Work, abort, land
from queenbee.git.landing.commands import ACTION
from queenbee.git.landing.moving.healing import STEPS, Found, remedy
from queenbee.git.landing.work import ASKED
from queenbee.services.care.doctor import examine
from queenbee.services.waiting.landing_steps import Promises, Step
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store import waiting_line


def opened(tree: Path, droid: str = "") -> Hive:
    return Hive.open(tree, droid=droid or tree.name, env={})


def landed(tree: Path, **more: object) -> str | None:
    wanted = {"check": None, "wait_s": 10, "rules": Rules(), **more}
    return land(opened(tree), **wanted).commit  # type: ignore[arg-type]


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Trees:
    """The main worktree, one whose landing stopped in some state, and that of another droid."""

    def __init__(self, repo: Path, tmp_path: Path) -> None:
        self.repo = repo
        self.one, self.other = tmp_path / "one", tmp_path / "other"
        for tree in (self.one, self.other):
            git(repo, "worktree", "add", "-q", str(tree), "-b", tree.name)
            commit_file(tree, f"{tree.name}.txt", "x\n")
        self.folder = Path(folder_of(opened(self.one), "main"))

    def conflicting(self) -> str:
        """Lets the target change a file that the worktree changes too; returns its new commit."""
        commit_file(self.one, "README.md", "one\n")
        commit_file(self.repo, "README.md", "main\n")
        return head(self.repo)

    def promise(self, issue_id: str | None = None) -> None:
        """Promises the worktree what it has asked for."""
        asked = {"head": head(self.one)}
        (self.repo / ".git" / "worktrees" / "one" / ASKED).write_text(json.dumps(asked))
        said = {"commit": head(self.one), "issue_id": issue_id, **asked}
        Promises(str(self.folder), str(self.one)).add(**said)

    def step(self, name: str, tree: Path, before: str, after: str) -> None:
        with Step.of(str(self.folder), str(tree)) as step:
            step.write(name, before=before, after=after, branch=tree.name)


def nothing(trees: Trees) -> None:
    """No landing before."""


def conflict(trees: Trees) -> None:
    trees.conflicting()
    with pytest.raises(NotLanded):
        landed(trees.one)


def conflict_of_a_rebase(trees: Trees) -> None:
    trees.conflicting()
    with pytest.raises(NotLanded):
        landed(trees.one, rules=Rules(strategy="rebase"))


def resolved(trees: Trees) -> None:
    conflict(trees)
    (trees.one / "README.md").write_text("both\n")
    git(trees.one, "add", "README.md")


def committed_by_hand(trees: Trees) -> None:
    resolved(trees)
    git(trees.one, "commit", "-q", "--no-edit")


def killed_at_a_conflict(trees: Trees) -> None:
    before, after = head(trees.one), trees.conflicting()
    before = head(trees.one)
    with pytest.raises(AssertionError):
        git(trees.one, "merge", "-q", after)
    trees.step("merge", trees.one, before, after)


def killed_and_then_resolved_by_hand(trees: Trees) -> None:
    killed_at_a_conflict(trees)
    (trees.one / "README.md").write_text("both\n")
    git(trees.one, "add", "README.md")


def killed_and_then_another_merge(trees: Trees) -> None:
    trees.step("merge", trees.one, head(trees.one), head(trees.repo))
    git(trees.one, "merge", "-q", "--no-commit", "--no-ff", "other")


def killed_and_then_another_rebase(trees: Trees) -> None:
    trees.step("rebase", trees.one, head(trees.one), head(trees.repo))
    commit_file(trees.other, "README.md", "other\n")
    commit_file(trees.one, "README.md", "one\n")
    with pytest.raises(AssertionError):
        git(trees.one, "rebase", "-q", "other")


def killed_with_the_target_half_moved(trees: Trees) -> None:
    trees.step("advance", trees.repo, head(trees.repo), head(trees.one))
    (trees.repo / "one.txt").write_text("x\n")


def killed_after_the_target_moved(trees: Trees) -> None:
    git(trees.repo, "merge", "-q", "--ff-only", "one")
    trees.promise()


def promised_and_then_killed(trees: Trees) -> None:
    trees.promise()


def torn(trees: Trees) -> None:
    for tree in (trees.one, trees.repo):
        trees.step("merge", tree, "a", "b")
    for path in trees.folder.iterdir():
        path.write_bytes(path.read_bytes()[:20])
    Promises(str(trees.folder), str(trees.one)).add(commit="x")
    for path in trees.folder.glob("promised-*"):
        path.write_bytes(path.read_bytes()[:9])


def foreign(trees: Trees) -> None:
    trees.folder.mkdir(parents=True, exist_ok=True)
    torn(trees)
    for path in list(trees.folder.iterdir()):
        path.unlink()
        path.mkdir()
    (trees.folder / "7ZZZZZZZZZZZZZZZZZZZZZZZZZ").write_text("[]")
    (trees.folder / "01HF0000000000000000000000").mkdir()
    (trees.folder / "01HF0000000000000000000001").symlink_to("/etc/passwd")


def of_an_older_version(trees: Trees) -> None:
    trees.folder.mkdir(parents=True, exist_ok=True)
    gone = {"droid": "ghost", "entry": "01HF0000000000000000000000", "tree": str(trees.other)}
    (trees.folder / "kept").write_text(json.dumps(gone))
    (trees.folder / "01HF0000000000000000000000.note").write_text('{"step":"merge"}\n')


def torn_of_nobody(trees: Trees) -> None:
    trees.folder.mkdir(parents=True, exist_ok=True)
    (trees.folder / f"step-{'0' * 20}").write_text('{"step":"mer')
    (trees.folder / f"promised-{'0' * 20}").write_text('{"comm')


def folders_of_nobody(trees: Trees) -> None:
    for name in ("full", "empty"):
        (trees.folder / name).mkdir(parents=True)
    (trees.folder / "full" / "file").touch()


def of_a_worktree_that_is_gone(trees: Trees) -> None:
    trees.step("merge", Path("/nowhere"), "a", "b")
    Promises(str(trees.folder), "/nowhere").add(commit="x")


STATES = (
    nothing, conflict, conflict_of_a_rebase, resolved, committed_by_hand, killed_at_a_conflict,
    killed_and_then_resolved_by_hand, killed_and_then_another_merge,
    killed_and_then_another_rebase, killed_with_the_target_half_moved,
    killed_after_the_target_moved, promised_and_then_killed, torn, foreign,
    of_an_older_version, of_a_worktree_that_is_gone,
)  # fmt: skip
OF_THE_USER = {
    resolved, killed_and_then_resolved_by_hand, killed_and_then_another_merge,
    killed_and_then_another_rebase,
}  # fmt: skip
"""States in which the worktree has work of somebody that is not committed."""


def lands(trees: Trees) -> None:
    landed(trees.one)


def lands_with_a_check_that_fails(trees: Trees) -> None:
    landed(trees.one, check="false")


def goes_on(trees: Trees) -> None:
    landed(trees.one, go_on=True)


def gives_up(trees: Trees) -> None:
    abort(opened(trees.one))


def loses_its_worktree(trees: Trees) -> None:
    git(trees.repo, "worktree", "remove", "--force", str(trees.one))


EVENTS = (lands, lands_with_a_check_that_fails, goes_on, gives_up, loses_its_worktree)


@pytest.mark.some(40)
@pytest.mark.parametrize(
    ("state", "event"),
    [
        pytest.param(*each, id=f"{each[0].__name__}-{each[1].__name__}")
        for each in product(STATES, EVENTS)
    ],
)
def test_each_event_in_each_state_ends_and_another_lands(
    repo: Path, tmp_path: Path, state: Callable[[Trees], None], event: Callable[[Trees], None]
) -> None:
    trees = Trees(repo, tmp_path)
    state(trees)
    index = git(trees.one, "ls-files", "--stage")
    files = {each.name: each.read_bytes() for each in trees.one.iterdir() if each.is_file()}
    own = head(trees.one, "refs/heads/one")
    try:
        event(trees)
    except QueenError as error:  # Anything else would be a defect, which exits with 70.
        assert error.hint
        if event in (lands, lands_with_a_check_that_fails) and state in OF_THE_USER:
            assert git(trees.one, "ls-files", "--stage") == index
            now = {each.name: each.read_bytes() for each in trees.one.iterdir() if each.is_file()}
            assert now == files
    assert git(repo, "rev-list", "--no-merges", own, "^one", "^main") == ""
    commit_file(trees.other, "later.txt", "x\n")
    assert landed(trees.other) == head(repo, "main")
    assert git(repo, "status", "--porcelain", "--", ".", ":!.beads") == ""
    left = {each.name.partition("-")[0] for each in trees.folder.iterdir() if each.is_file()}
    assert left <= {"step", "promised", "pace", "target"}


@pytest.mark.parametrize(
    ("text", "is_joined"), [(None, False), ("- both", True), ("- by hand", False)]
)
def test_a_rebase_that_was_killed_at_a_conflict_begins_anew_unless_somebody_resolved_it(
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    is_joined: bool,
) -> None:
    commit_file(repo, "CHANGELOG.md", "# Changes\n\nend\n")
    trees = Trees(repo, tmp_path)
    for tree in (trees.one, repo):
        commit_file(tree, "CHANGELOG.md", f"# Changes\n\n- {tree.name}\nend\n")
    before, after = head(trees.one), head(repo)
    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setenv("GIT_REFLOG_ACTION", ACTION)
        git(trees.one, "rebase", "-q", after)
    trees.step("rebase", trees.one, before, after)
    path = trees.one / "CHANGELOG.md"
    if text is not None:
        path.write_text(f"# Changes\n\n{text}\nend\n")
    if is_joined:
        blob = git(trees.one, "hash-object", "-w", "CHANGELOG.md").strip()
        with Step.of(str(trees.folder), str(trees.one)) as step:
            step.write("rebase", before=before, after=after, joined={"CHANGELOG.md": blob})
    if text is not None and not is_joined:
        with pytest.raises(NotLanded, match="conflict"):
            landed(trees.one, rules=Rules(strategy="rebase"))
        assert text in path.read_text()
        return
    landed(trees.one, rules=Rules(strategy="rebase"))
    lines = (repo / "CHANGELOG.md").read_text().splitlines()
    assert sorted(lines) == ["", "# Changes", "- one", "- repo", "end"]


def test_a_conflict_that_a_landing_joined_before_it_was_killed_is_nobodys_work(
    repo: Path, tmp_path: Path
) -> None:
    trees = Trees(repo, tmp_path)
    killed_and_then_resolved_by_hand(trees)
    blob = git(trees.one, "hash-object", "-w", "README.md").strip()
    with Step.of(str(trees.folder), str(trees.one)) as step:
        step.write(step.name, joined={"README.md": blob})
    with pytest.raises(NotLanded, match=r"conflict: README\.md"):  # It is merged anew.
        landed(trees.one)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (torn, {"torn: its process was killed"}),
        (foreign, {"nothing that a landing can read", "a place in the line that nobody has"}),
        (torn_of_nobody, {"torn: its process was killed"}),
        (folders_of_nobody, {"no file of a landing"}),
        (of_an_older_version, {"no file of a landing"}),
        (of_a_worktree_that_is_gone, {"of a worktree that is gone"}),
        (conflict, set()),
    ],
)
def test_the_doctor_names_what_no_landing_has(
    repo: Path, tmp_path: Path, state: Callable[[Trees], None], said: set[str]
) -> None:
    trees = Trees(repo, tmp_path)
    state(trees)
    found = [each for each in examine(opened(repo, "ui")) if each.code == "landing"]
    assert {each.message for each in found} == said
    assert all(each.severity == "note" for each in found)
    for each in found:
        if "rm -r" not in str(each.hint):
            assert each.hint == "queen land removes it"
            continue
        shutil.rmtree(each.file)
    for tree in (trees.other, trees.one):
        with suppress(NotLanded):
            landed(tree)
    assert not [each for each in examine(opened(repo, "ui")) if each.code == "landing"]


def test_what_somebody_resolved_is_kept_when_the_merge_is_taken_back(
    repo: Path, tmp_path: Path
) -> None:
    trees = Trees(repo, tmp_path)
    resolved(trees)
    abort(opened(trees.one))
    assert git(trees.one, "show", "unfinished/one:README.md") == "both\n"
    assert (trees.one / "README.md").read_text() == "one\n"


def test_a_conflict_that_nobody_touched_leaves_no_branch(repo: Path, tmp_path: Path) -> None:
    trees = Trees(repo, tmp_path)
    conflict(trees)
    abort(opened(trees.one))
    assert git(repo, "branch", "--list", "unfinished/*") == ""


@pytest.mark.parametrize(
    ("step", "is_before", "open_", "is_ours", "is_touched"),
    list(product(STEPS, (True, False), ("", "merge", "rebase"), (True, False), (True, False))),
)
def test_the_remedy_never_ends_what_somebody_else_began_or_worked_on(
    step: str, is_before: bool, open_: str, is_ours: bool, is_touched: bool
) -> None:
    do = remedy(step, Found(is_before, open_, is_ours, is_touched))  # type: ignore[arg-type]
    moving = step not in ("", "conflict") and is_before
    if not moving:
        assert do == ""
    elif not open_:
        assert do == "restore"
    else:
        assert do == ("abort" if is_ours and not is_touched and open_ == step else "")


class TestAConflict:
    def test_puts_whoever_comes_back_right_behind_the_one_who_lands(self, tmp_path: Path) -> None:
        folder = str(tmp_path / "line")
        first, second = (waiting_line.enter(folder, {"n": n}, 1000) for n in (1, 2))
        back = waiting_line.enter(folder, {"n": 3}, 1000, is_next=True)
        assert [fields["n"] for _, fields in waiting_line.live(folder)] == [1, 3, 2]
        # The same where the first came back itself: else two would land at once.
        more = [waiting_line.enter(folder, {"n": n}, 1000, is_next=True) for n in range(4, 20)]
        first.leave()
        more += [waiting_line.enter(folder, {"n": n}, 1000, is_next=True) for n in range(20, 40)]
        order = [fields["n"] for _, fields in waiting_line.live(folder)]
        assert order == [*range(3, 40), 2]
        for each in (second, back, *more):
            each.leave()

    def test_of_a_rebase_with_the_other_backend_goes_on(self, repo: Path, tmp_path: Path) -> None:
        git(repo, "config", "rebase.backend", "apply")
        trees = Trees(repo, tmp_path)
        conflict_of_a_rebase(trees)
        (trees.one / "README.md").write_text("both\n")
        git(trees.one, "add", "README.md")
        assert landed(trees.one, go_on=True, rules=Rules(strategy="rebase"))

    def test_of_an_issue_named_like_a_comment_goes_on(self, repo: Path, tmp_path: Path) -> None:
        class Numbered(Work):
            def subject(self) -> str:
                return "#12: it has a title"

        trees = Trees(repo, tmp_path)
        trees.conflicting()
        with pytest.raises(NotLanded):
            landed(trees.one, work=Numbered())
        (trees.one / "README.md").write_text("both\n")
        git(trees.one, "add", "README.md")
        assert landed(trees.one, go_on=True)
        assert git(repo, "log", "-1", "--format=%b", "main").strip() == "* #12: it has a title"


@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_an_author_of_1970_lands(
    repo: Path, tmp_path: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = Trees(repo, tmp_path)
    monkeypatch.setenv("GIT_AUTHOR_DATE", "@0 +0000")
    commit_file(trees.one, "old.txt", "x\n")
    commit_file(trees.one, "older.txt", "x\n")
    monkeypatch.delenv("GIT_AUTHOR_DATE")
    commit_file(repo, "late.txt", "x\n")
    assert landed(trees.one, rules=Rules(strategy=strategy)) == head(repo, "main")


class TestGitThatFails:
    """Not only git that is killed: the main worktree is whole again at once."""

    def refused(self, trees: Trees) -> None:
        before = head(trees.repo, "main")
        with pytest.raises(NotLanded, match="cannot be moved"):
            landed(trees.one)
        assert head(trees.repo, "main") == before
        assert git(trees.repo, "status", "--porcelain", "--", ".", ":!.beads") == ""
        assert not (trees.repo / "one.txt").exists()

    def test_at_a_lock_of_the_branch(self, repo: Path, tmp_path: Path) -> None:
        trees = Trees(repo, tmp_path)
        lock = repo / ".git" / "refs" / "heads" / "main.lock"
        lock.touch()
        os.utime(lock, (1, 1))
        self.refused(trees)
        lock.unlink()
        assert landed(trees.one) == head(repo, "main")

    def test_at_a_hook_that_refuses(self, repo: Path, tmp_path: Path) -> None:
        trees = Trees(repo, tmp_path)
        hook = repo / ".git" / "hooks" / "reference-transaction"
        script(hook, "grep -q refs/heads/main && [ $1 = prepared ] && exit 1 || exit 0")
        self.refused(trees)
        hook.unlink()
        assert landed(trees.one) == head(repo, "main")

    def test_at_a_filter(self, repo: Path, tmp_path: Path) -> None:
        trees = Trees(repo, tmp_path)
        git(repo, "config", "filter.bad.smudge", "test ${PWD##*/} != repo && cat")
        git(repo, "config", "filter.bad.clean", "cat")
        git(repo, "config", "filter.bad.required", "true")
        (repo / ".git" / "info").mkdir(exist_ok=True)
        (repo / ".git" / "info" / "attributes").write_text("z.txt filter=bad\n")
        (trees.one / "z.txt").write_text("z\n")
        git(trees.one, "add", "z.txt")
        git(trees.one, "commit", "-qm", "z")
        self.refused(trees)
        git(repo, "config", "filter.bad.smudge", "cat")
        assert landed(trees.one) == head(repo, "main")

    def test_after_the_target_has_moved_it_has_landed(self, repo: Path, tmp_path: Path) -> None:
        trees = Trees(repo, tmp_path)
        script(repo / ".git" / "hooks" / "post-merge", "kill -9 $PPID")
        said = list[str]()
        assert landed(trees.one, tell=said.append) == head(repo, "main")
        assert not [each for each in said if "again" in each]


class TestWhatTheCheckSaw:
    @pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
    def test_is_no_change_that_git_was_told_not_to_see(
        self, repo: Path, tmp_path: Path, flag: str
    ) -> None:
        trees = Trees(repo, tmp_path)
        git(trees.one, "update-index", flag, "README.md")
        assert landed(trees.one)
        (trees.one / "README.md").write_text("good\n")
        commit_file(trees.one, "more.txt", "x\n")
        with pytest.raises(NotLanded, match=r"have changed: README\.md"):
            landed(trees.one, check="grep -q good README.md")

    @pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
    def test_such_a_change_is_not_overwritten_by_what_the_target_has(
        self, repo: Path, tmp_path: Path, flag: str
    ) -> None:
        trees = Trees(repo, tmp_path)
        git(trees.one, "update-index", flag, "README.md")
        (trees.one / "README.md").write_text("mine\n")
        commit_file(repo, "README.md", "theirs\n")
        with pytest.raises(NotLanded):
            landed(trees.one)
        assert (trees.one / "README.md").read_text() == "mine\n"

    def test_is_the_submodule_that_lands(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
        sub = tmp_path / "sub"
        git(tmp_path, "init", "-q", str(sub))
        commit_file(sub, "a.txt", "1\n")
        git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub))
        git(repo, "config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
        git(repo, "commit", "-qam", "a submodule")
        trees = Trees(repo, tmp_path)
        how = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "update")
        git(trees.one, *how, "--init")
        commit_file(sub, "a.txt", "2\n")
        git(repo / "sub", "pull", "-q")
        git(repo, "add", "-f", "sub")
        git(repo, "commit", "-qm", "move it")
        assert landed(trees.one, check="grep -q 2 sub/a.txt") == head(repo, "main")


def test_no_ignored_file_is_replaced_through_a_renamed_folder(repo: Path, tmp_path: Path) -> None:
    (repo / "old").mkdir()
    for name in ("a", "b", "c"):
        (repo / "old" / name).write_text(f"{name}\n" * 20)
    (repo / ".gitignore").write_text("new/local.cfg\n")
    git(repo, "add", "-A", "old", ".gitignore")
    git(repo, "commit", "-qm", "old")
    trees = Trees(repo, tmp_path)
    git(trees.one, "mv", "old", "new")
    git(trees.one, "commit", "-qm", "rename")
    (trees.one / "new" / "local.cfg").write_text("my own\n")
    (repo / "old" / "local.cfg").write_text("theirs\n")
    git(repo, "add", "-f", "old/local.cfg")
    git(repo, "commit", "-qm", "more")
    with pytest.raises(NotLanded, match=r"here without git: new/local\.cfg"):
        landed(trees.one)
    assert (trees.one / "new" / "local.cfg").read_text() == "my own\n"


def test_a_promise_that_was_not_kept_lands_nothing(repo: Path, tmp_path: Path) -> None:
    trees = Trees(repo, tmp_path)
    promised_and_then_killed(trees)
    before, told = head(repo, "main"), list[str]()
    assert landed(trees.one, check="false", tell=told.append) is None
    assert not [each for each in told if "is completed now" in each]
    assert head(repo, "main") == before


def test_one_landing_completes_one_issue(
    quick: QuickQueen, repo: Path, beads: Path, tmp_path: Path
) -> None:
    rows = ({"id": f"x-{n}", "title": f"do {n}", "status": "open"} for n in (1, 2))
    write_lines(beads / "issues.jsonl", *rows)
    trees = Trees(repo, tmp_path)
    for issue in ("x-1", "x-2"):
        quick("claim", issue, as_="one", cwd=trees.one)
        if issue == "x-1":
            killed_after_the_target_moved(trees)
            trees.promise("x-1")
            quick("complete", "x-1", as_="one", cwd=trees.one)
    assert quick("land", "--unchecked", as_="one", cwd=trees.one).code == 0
    done = quick("issue", "assignments", "--status", "completed", "--json").json
    assert [each["issue_id"] for each in done] == ["x-1"]


def test_in_a_bare_repository_its_branch_moves(repo: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "bare.git"))
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    (tmp_path / "one" / ".beads").mkdir(exist_ok=True)
    commit_file(tmp_path / "one", "new.txt", "x\n")
    commit = landed(tmp_path / "one", check="test -e new.txt")
    assert commit == head(tmp_path / "bare.git", "main") == head(tmp_path / "one")
    assert (tmp_path / "bare-landing-main").is_dir()
