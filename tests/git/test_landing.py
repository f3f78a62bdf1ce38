"""`queen land`: one after the other; what was checked is what lands; a failure lands nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, commit_file, git, write_lines

from queenbee import Hive
from queenbee.errors import Busy, InvalidInput
from queenbee.git.landed import unlanded
from queenbee.git.landing import NotLanded, Rules, Work, land
from queenbee.git.landing.refusals import TargetFails
from queenbee.services.waiting import landing_turn
from queenbee.store import waiting_line

Worktree = Callable[[str], Path]


@pytest.fixture
def worktree(repo: Path, tmp_path: Path) -> Worktree:
    """Makes a linked worktree on a branch of its own."""

    def made(name: str) -> Path:
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        return tmp_path / name

    return made


def opened(tree: Path, droid: str = "ui") -> Hive:
    return Hive.open(tree, droid=droid, env={})


def head(tree: Path, name: str = "HEAD") -> str:
    return git(tree, "rev-parse", name).strip()


def does_not_land(tree: Path, **more: object) -> bool:
    """Returns whether the check fails, also that of the main branch itself."""
    with suppress(TargetFails):
        return landed(tree, **more) is None
    return True


def landed(tree: Path, **more: object) -> str | None:
    return land(opened(tree), **{"check": None, "wait_s": 10, **more}).commit  # type: ignore[arg-type]


def test_the_target_and_its_worktree_are_moved(repo: Path, worktree: Worktree) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    assert landed(tree) == head(tree) == head(repo, "main")
    assert (repo / "new.txt").read_text() == "x\n"
    assert git(repo, "status", "--porcelain", "--untracked-files=no") == ""


def test_what_others_landed_is_merged_and_checked_first(repo: Path, worktree: Worktree) -> None:
    one, two = worktree("one"), worktree("two")
    commit_file(one, "one.txt", "1\n")
    commit_file(two, "two.txt", "2\n")
    landed(one)
    assert landed(two, check="test -f one.txt && test -f two.txt") == head(repo, "main")
    first_parents = git(repo, "log", "--first-parent", "--format=%s", "main")
    assert first_parents.startswith("Merge branch 'two'\nadd one.txt\n")


@pytest.mark.parametrize(("rechecks", "runs"), [(True, 2), (False, 1)])
def test_a_check_that_passed_on_the_same_files_is_skipped_only_if_that_is_set(
    worktree: Worktree, tmp_path: Path, rechecks: bool, runs: int
) -> None:
    tree, ran = worktree("one"), tmp_path / "ran"
    rules = Rules(check=f"echo x >> {ran}", rechecks=rechecks)
    commit_file(tree, "new.txt", "x\n")
    told: list[str] = []
    landed(tree, rules=rules, tell=told.append)
    git(tree, "commit", "-q", "--allow-empty", "-m", "says more")
    landed(tree, rules=rules, tell=told.append)
    assert sum("it is not run again" in each for each in told) == 2 - runs
    assert len(ran.read_text().split()) == runs
    commit_file(tree, "new.txt", "y\n")
    landed(tree, rules=rules)
    git(tree, "commit", "-q", "--allow-empty", "-m", "is checked otherwise")
    landed(tree, rules=Rules(check=f"{rules.check}; true", rechecks=rechecks))
    assert len(ran.read_text().split()) == runs + 2


def test_what_the_state_folder_says_of_a_check_that_passed_spares_none(
    repo: Path, worktree: Worktree
) -> None:
    tree, rules = worktree("one"), Rules(check="test ! -e bad", rechecks=False)
    commit_file(tree, "new.txt", "x\n")
    landed(tree, rules=rules)
    noted = json.loads((repo / ".git/queenbee-passed").read_text())
    commit_file(tree, "bad", "x\n")
    noted["commit"] = head(tree)
    (pace,) = (repo / ".git/queenbee-private/landing").glob("*/pace")
    pace.write_text(json.dumps({**json.loads(pace.read_text()), "last_passed": noted}))
    assert does_not_land(tree, rules=rules)


def test_a_check_that_fails_lands_nothing(repo: Path, worktree: Worktree) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    before = head(repo, "main")
    done = land(opened(tree), check="echo went wrong; exit 3", wait_s=10)
    assert (done.commit, done.output) == (None, "went wrong")
    assert head(repo, "main") == before


def test_a_check_that_passed_says_so_with_its_last_line(repo: Path, worktree: Worktree) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    told: list[str] = []
    check = "echo begun; printf '908 passed, 25\\033 skipped\\n\\n'"
    done = land(opened(tree), check=check, wait_s=10, tell=told.append)
    assert told[0] == f"check: {check}"
    said = f"check passed in {done.check_s} s: “908 passed, 25  skipped”"
    assert told[1:] == [said]
    assert done.check_s is not None
    assert done.to_dict()["check_said"] == "908 passed, 25  skipped"


def test_the_check_of_this_machine_runs_with_the_one_that_is_given(
    repo: Path, worktree: Worktree
) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    git(repo, "config", "queenbee.check", "exit 1")
    assert does_not_land(tree)
    assert does_not_land(tree, check="true")
    git(repo, "config", "queenbee.check", "exit 0")
    assert landed(tree, check="exit 1") is None
    assert landed(tree, check="true") is not None


CHECKS_TRUE = {
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "queenbee.check", "GIT_CONFIG_VALUE_0": "true",
}  # fmt: skip


@pytest.mark.parametrize(
    "given",
    [
        CHECKS_TRUE,
        {"GIT_CONFIG_PARAMETERS": "'queenbee.check'='true'"},
        {"GIT_CONFIG": "true.config"},
        {"GIT_CONFIG_GLOBAL": "true.config", "CLAUDECODE": "1"},
        {"GIT_CONFIG_SYSTEM": "true.config", "GIT_CONFIG_NOSYSTEM": "0", "CLAUDECODE": "1"},
    ],
    ids=" ".join,
)
def test_no_variable_says_which_check_judges_a_landing(
    repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    config = repo.parent / "true.config"
    config.write_text("[queenbee]\n\tcheck = true\n")
    for name, value in given.items():
        monkeypatch.setenv(name, str(config) if value == config.name else value)
    assert Rules.of(opened(tree)).machine_check == ""
    with (repo / ".git" / "config").open("a") as file:
        file.write('[queenbee]\n\tcheck = "exit 1 # ours"\n')
    assert Rules.of(opened(tree)).machine_check == "exit 1 # ours"


def test_the_settings_of_one_worktree_do_not_say_which_check_judges(
    repo: Path, worktree: Worktree
) -> None:
    tree = worktree("one")
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(tree, "config", "--worktree", "queenbee.check", "true")
    git(repo, "config", "queenbee.check", "exit 1")
    commit_file(tree, "new.txt", "x\n")
    assert does_not_land(tree)


def test_a_conflict_is_left_to_be_resolved(repo: Path, worktree: Worktree) -> None:
    one, two = worktree("one"), worktree("two")
    commit_file(one, "README.md", "one\n")
    commit_file(two, "README.md", "two\n")
    landed(one)
    before = head(repo, "main")
    for _ in range(2):  # The first time it arises; the second time it is not resolved yet.
        with pytest.raises(NotLanded, match=r"main and two conflict: README\.md"):
            landed(two)
    assert head(repo, "main") == before
    (two / "README.md").write_text("both\n")
    git(two, "commit", "-qam", "both")
    assert landed(two) == head(repo, "main")


def test_what_is_not_committed_is_refused(repo: Path, worktree: Worktree) -> None:
    tree = worktree("one")
    (tree / "README.md").write_text("changed\n")
    with pytest.raises(NotLanded, match=r"not committed: README\.md"):
        landed(tree)


def test_work_in_the_main_worktree_is_not_overwritten(repo: Path, worktree: Worktree) -> None:
    tree = worktree("one")
    commit_file(tree, "README.md", "one\n")
    (repo / "README.md").write_text("being edited\n")
    before, told = head(repo, "main"), list[str]()
    with pytest.raises(NotLanded, match="cannot be moved") as refused:
        landed(tree, tell=told.append)
    assert (refused.value.code, refused.value.files) == ("main_blocked", ["README.md"])
    stash = f"git --literal-pathspecs -C {repo} stash push -u -- README.md"
    way_out = (
        f"ask whoever works there; if it is you: {stash}; or commit them there; then queen land"
    )
    assert refused.value.hint == way_out
    assert head(repo, "main") == before
    assert (repo / "README.md").read_text() == "being edited\n"
    assert told == []  # Nothing was killed there.


def test_a_folder_of_the_main_worktree_that_somebody_else_owns_is_named(
    queen: Queen, repo: Path, worktree: Worktree
) -> None:
    commit_file(repo, "sub/a.txt", "a\n")
    tree = worktree("one")
    commit_file(tree, "sub/new/b.txt", "b\n")
    assert queen("issue", "new", "a change of the records", as_="ui").code == 0
    (repo / "sub").chmod(0o555)
    refused = queen("land", "--check=true", as_="ui", cwd=tree, unprivileged=True)
    (repo / "sub").chmod(0o755)
    assert refused.code == 5
    way = f"try: have its owner run: chmod g+w {repo / 'sub'}; then queen land\n"
    assert refused.err.endswith(way), refused
    assert queen("land", "--check=true", as_="ui", cwd=tree).code == 0


def test_a_target_that_moves_during_the_check_is_merged_again(
    repo: Path, worktree: Worktree
) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    commit = f"cd {repo} && touch late.txt && git add late.txt && git commit -qm late"
    moves = f"test -f late.txt || ({commit})"
    assert landed(tree, check=moves) == head(repo, "main")
    assert (tree / "late.txt").exists()


def test_outside_a_linked_worktree_there_is_nothing_to_land(repo: Path) -> None:
    with pytest.raises(InvalidInput, match="not a linked worktree") as refusal:
        landed(repo)
    assert refusal.value.hint == "queen worktree add NAME, and work there"


class TestTheTurn:
    def api_is_first(self, worktree: Worktree) -> tuple[Path, Hive, waiting_line.Entry]:
        """Returns a worktree with work to land, its hive, and the place of who has the turn."""
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        hive = opened(tree)
        folder = os.path.join(hive.layout.private_dir, "landing", "main")
        with hive.transaction():
            pass
        return tree, hive, waiting_line.enter(folder, {"droid": "api"}, hive.now_ms())

    def test_is_waited_for(
        self, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree, hive, entry = self.api_is_first(worktree)
        told: list[str] = []
        with pytest.raises(Busy, match="api lands on main"):
            land(hive, check=None, wait_s=0.2, tell=told.append)
        assert told == ["waiting for api, who lands on main"]
        monkeypatch.setattr(landing_turn, "_WORTH_TELLING_S", 0.0)
        threading.Timer(0.2, entry.leave).start()
        land(hive, check=None, wait_s=60, tell=told.append)
        assert told[2:] == ["waited 0s for the turn, which api had"]
        assert head(tree) == head(repo, "main")

    def test_is_told_again_while_it_is_waited_for(
        self, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, hive, _ = self.api_is_first(worktree)
        monkeypatch.setattr(landing_turn, "_LOOK_AGAIN_S", 0.02)
        monkeypatch.setattr(landing_turn, "_TELL_AGAIN_S", 0.05)
        told: list[str] = []
        with pytest.raises(Busy):
            land(hive, check=None, wait_s=0.3, tell=told.append)
        assert len(told) > 1
        assert set(told) == {"waiting for api, who lands on main"}

    def test_ends_with_a_killed_process(self, repo: Path, worktree: Worktree, queen: Queen) -> None:
        one, two = worktree("one"), worktree("two")
        commit_file(one, "one.txt", "1\n")
        commit_file(two, "two.txt", "2\n")
        alone = {"QUEEN_LAND_ATTACHED": "1"}
        slow = queen.start("land", "--check", "sleep 60", cwd=one, as_="ui", env=alone)
        folder = Path(opened(one).layout.private_dir) / "landing" / "main"
        while not (folder.is_dir() and any(folder.iterdir())):
            time.sleep(0.02)
        slow.send_signal(signal.SIGKILL)
        slow.communicate()
        assert queen("land", "--unchecked", cwd=two, as_="api").code == 0
        assert head(two) == head(repo, "main")
        assert not (repo / "one.txt").exists()

    def test_is_taken_by_many_at_once_and_each_lands_once(
        self, repo: Path, worktree: Worktree, queen: Queen
    ) -> None:
        trees = [worktree(f"w{number}") for number in range(5)]
        for number, tree in enumerate(trees):
            commit_file(tree, f"file{number}.txt", "x\n")
        started = [
            queen.start("land", "--check", f"test -f file{number}.txt", cwd=tree, as_=f"d{number}")
            for number, tree in enumerate(trees)
        ]
        assert [each.wait(120) for each in started] == [0] * 5
        for each in started:
            each.communicate()
        assert {path.name for path in repo.glob("file*.txt")} == {
            f"file{number}.txt" for number in range(5)
        }
        for tree in trees:
            assert (
                subprocess.run(
                    ["git", "merge-base", "--is-ancestor", "HEAD", "main"], cwd=tree, check=False
                ).returncode
                == 0
            )


class TestTheCommand:
    def test_completes_the_issue_and_takes_the_next(
        self, quick: QuickQueen, beads: Path, repo: Path, worktree: Worktree
    ) -> None:
        rows = ({"id": f"qb-{n}", "title": f"do {n}", "status": "open"} for n in (1, 2))
        write_lines(beads / "issues.jsonl", *rows)
        tree = worktree("one")
        quick("next", as_="ui", cwd=tree)
        commit_file(tree, "new.txt", "x\n")
        refused = quick("land", "--check", "exit 1", as_="ui", cwd=tree)
        assert (refused.code, "nothing was landed" in refused.out) == (1, True)
        assert quick("issue", "assignments", "--json", as_="ui").json[0]["issue_id"] == "qb-1"
        shown = quick("land", "--check", "true", "--reason", "done", "--next", as_="ui", cwd=tree)
        assert shown.code == 0, shown
        short = head(repo, "main")[:10]
        assert f"landed on main as {short}\nqb-1 was completed by ui\n" in shown.out
        assert "qb-2 is yours" in shown.out
        (done,) = quick("issue", "assignments", "--status", "completed", "--json").json
        assert done["reason"] == f"done ({short})"

    def test_completing_without_landing_says_so(
        self, quick: QuickQueen, beads: Path, worktree: Worktree
    ) -> None:
        issue = {"title": "x", "status": "open"}
        write_lines(beads / "issues.jsonl", {"id": "qb-1", **issue}, {"id": "qb-2", **issue})
        tree = worktree("one")
        quick("claim", "qb-1", as_="ui", cwd=tree)
        commit_file(tree, "new.txt", "x\n")
        shown = quick("complete", "qb-1", as_="ui", cwd=tree)
        assert (
            "note: qb-1 is completed, but 1 commit of this worktree is not on main yet; try: "
            "queen land\n"
        ) in shown.out
        quick("claim", "qb-2", as_="ui", cwd=tree)
        (tree / "more.txt").write_text("x\n")
        shown = quick("complete", "qb-2", as_="ui", cwd=tree)
        assert (
            "worktree is not on main yet; not committed: more.txt; try: queen land -m 'WHAT YOU "
            "DID'\n" in shown.out
        )


def test_what_is_landed_is_told_apart(repo: Path, worktree: Worktree) -> None:
    tree, rest = worktree("one"), " not on main yet; try: queen land"
    assert unlanded(opened(tree).layout) is None
    commit_file(tree, "new.txt", "x\n")
    assert unlanded(opened(tree).layout) == f"1 commit of this worktree is{rest}"
    commit_file(tree, "other.txt", "x\n")
    assert unlanded(opened(tree).layout) == f"2 commits of this worktree are{rest}"
    landed(tree)
    assert unlanded(opened(tree).layout) is None
    assert unlanded(opened(repo).layout) is None


class TestWhatLands:
    """What was checked, on the branch that was named, or nothing."""

    @pytest.mark.parametrize(
        ("check", "text"),
        [
            ("echo evil > README.md; git commit -qam unchecked", "changed while the check ran"),
            ("echo good > README.md", r"changed while the check ran: README\.md"),
            ("git switch -q -c other", "changed while the check ran"),
        ],
    )
    def test_is_what_was_checked(
        self, repo: Path, worktree: Worktree, check: str, text: str
    ) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        before = head(repo, "main")
        with pytest.raises(NotLanded, match=text):
            landed(tree, check=check)
        assert head(repo, "main") == before

    def test_is_on_the_branch_that_was_meant_whatever_is_switched_to(
        self, repo: Path, worktree: Worktree
    ) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        before = head(repo, "main")
        commit = landed(tree, check=f"git -C {repo} switch -q -c release")
        assert (head(repo, "main"), head(repo, "release")) == (commit, before)
        assert not (repo / "new.txt").exists()

    def test_is_something(self, worktree: Worktree) -> None:
        tree = worktree("one")
        (tree / "new.txt").write_text("not added\n")
        with pytest.raises(NotLanded, match="nothing to land") as refusal:
            landed(tree)
        assert refusal.value.code == "nothing_to_land"
        assert refusal.value.hint == "commit your work: queen land -m 'WHAT YOU DID'"
        (tree / "new.txt").unlink()
        with pytest.raises(NotLanded, match="nothing to land") as refusal:
            landed(tree)
        assert str(refusal.value).endswith("this worktree, and nothing else has changed")
        assert refusal.value.hint == "queen next"

    def test_names_what_is_not_part_of_it(self, repo: Path, worktree: Worktree) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        (tree / "other.txt").write_text("not added\n")
        assert land(opened(tree), check=None, wait_s=10).untracked == ["other.txt"]

    def test_is_not_held_by_others(self, quick: QuickQueen, repo: Path, worktree: Worktree) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        quick("reserve", "new.txt", as_="api")
        refused = quick("land", "--unchecked", as_="ui", cwd=tree)
        assert (refused.code, "held by others: new.txt (api)" in refused.err) == (5, True)
        quick("reserve", "release", "--all", as_="api")
        assert quick("land", "--unchecked", as_="ui", cwd=tree).code == 0

    @pytest.mark.parametrize("holds", [False, True])
    def test_may_put_a_link_in_place_of_a_folder_that_nobody_holds(
        self, quick: QuickQueen, repo: Path, worktree: Worktree, tmp_path: Path, holds: bool
    ) -> None:
        commit_file(repo, "d/f", "x\n")
        tree = worktree("one")
        git(tree, "rm", "-qr", "d")
        (tree / "d").symlink_to(tmp_path)
        if holds:
            quick("reserve", "d/f", as_="api")
        done = quick("land", "-m", "a link", "--unchecked", as_="ui", cwd=tree)
        assert (done.code, "held by others: d/f (api)" in done.err) == (5 * holds, holds), done

    def test_moves_the_target_also_when_a_hook_names_a_repository(
        self, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        monkeypatch.setenv("GIT_DIR", str(repo / ".git" / "worktrees" / "one"))
        assert landed(tree) is not None
        monkeypatch.delenv("GIT_DIR")
        assert head(repo, "main") == head(tree)

    def test_is_refused_with_the_issue_of_somebody_else_before_anything_moves(
        self, quick: QuickQueen, beads: Path, repo: Path, worktree: Worktree
    ) -> None:
        write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})
        quick("claim", "qb-1", as_="api")
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        before = head(repo, "main")
        assert quick("land", "--unchecked", "qb-1", as_="ui", cwd=tree).code == 5
        assert head(repo, "main") == before


def test_a_file_that_is_reserved_during_the_check_does_not_land(
    repo: Path, worktree: Worktree
) -> None:
    tree = worktree("one")
    commit_file(tree, "new.txt", "x\n")
    before = head(repo, "main")
    asked = iter([[], ["new.txt (api)"]])

    class Reserved(Work):
        def held(self, paths: Sequence[str]) -> list[str]:
            return next(asked)

    with pytest.raises(NotLanded, match=r"held by others: new\.txt"):
        landed(tree, check="true", work=Reserved())
    assert head(repo, "main") == before


@pytest.mark.parametrize("how", ["setting", "file"])
def test_a_submodule_that_others_hold_does_not_land_whatever_git_is_told_to_show(
    quick: QuickQueen, repo: Path, worktree: Worktree, how: str
) -> None:
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head(repo)},sub")
    (repo / "sub").mkdir()
    if how == "file":
        git(repo, "config", "-f", ".gitmodules", "submodule.sub.path", "sub")
        git(repo, "config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
        git(repo, "add", ".gitmodules")
    git(repo, "commit", "-qm", "a submodule")
    tree = worktree("one")
    git(tree, "update-index", "--cacheinfo", f"160000,{head(repo)},sub")
    git(tree, "commit", "-qm", "move it")
    if how == "setting":
        git(repo, "config", "diff.ignoreSubmodules", "all")
    quick("reserve", "sub", as_="api")
    refused = quick("land", "--unchecked", as_="ui", cwd=tree)
    assert (refused.code, "held by others: sub (api)" in refused.err) == (5, True), refused.err


class TestTheRepositoryOfACaller:
    """A hook or an alias names its own repository and index; landing is about its worktree."""

    def test_another_index_does_not_hide_what_is_not_committed(
        self, repo: Path, worktree: Worktree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tree = worktree("one")
        commit_file(tree, "new.txt", "x\n")
        (tree / "new.txt").write_text("staged only\n")
        git(tree, "add", "new.txt")
        (tree / "new.txt").write_text("x\n")
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
        git(tree, "read-tree", "HEAD")
        with pytest.raises(NotLanded, match=r"not committed: new\.txt"):
            landed(tree)

    @pytest.mark.parametrize("strategy", ["merge", "rebase", "squash"])
    def test_another_repository_is_not_what_lands(
        self, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch, strategy: str
    ) -> None:
        one, two = worktree("one"), worktree("two")
        for tree in (one, two):
            commit_file(tree, f"{tree.name}.txt", "x\n")
        landed(one)
        with monkeypatch.context() as patch:
            patch.setenv("GIT_DIR", str(repo / ".git"))
            patch.setenv("GIT_WORK_TREE", str(repo))
            commit = landed(two, rules=Rules(strategy=strategy))
        assert commit == head(two) == head(repo, "main")
        assert (repo / "two.txt").exists()
        assert git(repo, "status", "--porcelain", "--untracked-files=no") == ""


def counted_git(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a git into the path that writes a letter for each call; returns where."""
    log, folder = repo.parent / "log", repo.parent / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho x >> {log}\nexec {shutil.which("git")} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return log


def test_a_landing_that_merges_takes_at_most_30_git_processes(
    quick: QuickQueen, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick("init")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    trees = [worktree(name) for name in ("one", "two")]
    for tree in trees:
        commit_file(tree, f"{tree.name}.txt", "x\n")
    assert quick("land", "--check", "true", as_="one", cwd=trees[0]).code == 0
    log = counted_git(repo, monkeypatch)
    done = quick("land", "--check", "true", as_="two", cwd=trees[1])
    assert (done.code, "came in" in done.out) == (0, True)
    assert 0 < log.read_text().count("x") <= 30  # One of them asks which files the check passed on.


def test_a_landing_that_commits_and_completes_takes_at_most_57_git_processes(
    quick: QuickQueen, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the commit of the work, the landing of its records, and that of those which follow."""
    quick("init")
    for number in (1, 2):
        quick("issue", "new", f"Issue {number}", "--id", f"q-{number}")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    tree = worktree("one")
    monkeypatch.setenv("QUEEN_LAND_ATTACHED", "1")
    tidies = int(os.environ["GIT_CONFIG_COUNT"])
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(tidies + 1))
    monkeypatch.setenv(f"GIT_CONFIG_KEY_{tidies}", "maintenance.auto")
    monkeypatch.setenv(f"GIT_CONFIG_VALUE_{tidies}", "true")
    for number in (1, 2):
        quick("claim", f"q-{number}", as_="one", cwd=tree)
        (tree / f"{number}.txt").write_text("x\n")
        log = counted_git(repo, monkeypatch) if number == 2 else None
        trace = repo.parent / f"trace{number}"
        monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
        done = quick("land", "--check", "true", "-m", f"Add {number}", as_="one", cwd=tree)
        assert (done.code, f"q-{number} was completed" in done.out) == (0, True), done
    assert log is not None
    assert git(repo, "status", "--porcelain", "--untracked-files=no") == ""
    assert 0 < log.read_text().count("x") <= 57
    begun = [each for each in trace.read_text().splitlines() if '"event":"start"' in each]
    # Git tidies up once: after the commit of the work.
    assert sum('"maintenance","run"' in each for each in begun) == 1


def test_a_landing_beside_many_worktrees_asks_git_hardly_more(
    quick: QuickQueen, repo: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick("init")
    git(repo, "add", ".beads")
    git(repo, "commit", "-qm", "a hive")
    others = [worktree(f"other{number}") for number in range(12)]
    for tree in others:
        commit_file(tree, f"{tree.name}.txt", "x\n")
        (tree / "README.md").write_text(tree.name)
    one = worktree("one")
    commit_file(one, "a", "x\n")
    assert quick("land", "--check", "true", as_="one", cwd=one).code == 0
    commit_file(one, "b", "x\n")
    log = counted_git(repo, monkeypatch)
    assert quick("land", "--check", "true", as_="one", cwd=one).code == 0
    assert 0 < log.read_text().count("x") <= 30
