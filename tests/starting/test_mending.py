"""Agents that leave their worktree as nobody could work in it: `queen start` mends it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hives import commit_file, git
from teams import LIMIT_S, WORKS, Team

from queenbee.store.droids import roster

pytestmark = pytest.mark.slow

COMMITS = """if [ ! -e "$0.once" ]; then
touch "$0.once"; echo half > half; git add -A; git commit -qm half; fi
"""
GIT_DIR = '"$(git rev-parse --git-dir)"'
SPOILS = {
    "a detached HEAD": f"git checkout -q --detach; {COMMITS}",
    "another branch": f"git checkout -q -b other; {COMMITS}",
    "an open rebase": f"{COMMITS}GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -i HEAD~1\n",
    "its branch removed": f"git checkout -q --detach; git branch -qD ui; {COMMITS}",
    "no .git": f"{COMMITS}rm -rf .git\n",
    "another .git": f"{COMMITS}rm .git; git init -q .\n",
    ".git of the main worktree": f'{COMMITS}echo "gitdir: ../repo/.git" > .git\n',
    ".git of another repository": f'{COMMITS}cp -r ../repo ../x; echo "gitdir: ../x/.git" > .git\n',
    "no git directory": f"{COMMITS}rm -rf {GIT_DIR}\n",
    "no worktree": f"{COMMITS}cd ..; rm -rf repo-ui\n",
    "no worktree, no branch": f"git checkout -q --detach; {COMMITS}cd ..; rm -rf repo-ui\n",
    "an empty HEAD": f"{COMMITS}: > {GIT_DIR}/HEAD\n",
    "an empty lock": f"{COMMITS}touch {GIT_DIR}/index.lock\n",
    "a whole lock": f"{COMMITS}cp {GIT_DIR}/index {GIT_DIR}/index.lock; sleep 4\n",
}


@pytest.mark.parametrize("spoils", SPOILS.values(), ids=SPOILS)
def test_an_agents_bad_day_is_no_other_issues(team: Team, spoils: str) -> None:
    team.issues(2)
    of_one = f'if [ "$QUEEN_ISSUE" = x-1 ]; then\n{spoils}exit 3; fi\n'
    ran = team.start("ui", "--agent", team.agent(of_one + WORKS))
    assert ran.code == 1, ran
    assert team.done() == {"x-2": ["ui"]}, ran
    assert team.content("x-2") == "x-2 by ui\n"
    assert len(team.hive().assignments.find(issue_id="x-1", status="released")) == 1
    assert "x-1 is still" not in ran.out
    # All that was committed is on a branch, and the worktree is in order.
    kept = git(team.repo, "log", "--branches", "--not", "main", "--format=%s")
    assert "half" in kept.split()
    tree = team.repo.parent / "repo-ui"
    assert git(tree, "branch", "--show-current").strip() == "ui"
    assert git(tree, "status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["gone", "no .git", "a link", "pruned", "another branch"])
def test_the_next_run_mends_what_a_killed_one_left(team: Team, how: str) -> None:
    team.issues(1)
    once = team.bin / "once"
    first = f"[ -e {once} ] || {{ echo half > half; git add -A; git commit -qm half; touch {once}; "
    agent = team.agent(f"{first} sleep 1000; }}\n{WORKS}")
    running = team.begun("ui", "--agent", agent)
    team.wait(once.exists)
    running.kill()
    running.communicate(timeout=LIMIT_S)
    (entry,) = roster.everybody(team.hive().layout)
    os.kill(int(entry.process.split(" ")[1]), signal.SIGUSR1)
    team.wait(lambda: not team.running())
    spoil(team.repo, team.repo.parent / "repo-ui", how)
    ran = team.start("ui", "--agent", agent)
    assert ran.code == 0, ran
    assert team.done() == {"x-1": ["ui"]}
    assert (team.repo / "half").read_text() == "half\n"


def spoil(repo: Path, tree: Path, how: str) -> None:
    if how in ("gone", "pruned"):
        shutil.rmtree(tree)
    if how == "pruned":
        git(repo, "worktree", "prune")
    elif how == "no .git":
        (tree / ".git").unlink()
    elif how == "a link":
        (tree / ".git").unlink()
        (tree / ".git").symlink_to(repo / ".git")
    elif how == "another branch":
        git(tree, "checkout", "-qb", "other")


class TestAWorktreeThatWasMoved:
    def test_keeps_what_was_staged_where_another_is_made(self, team: Team) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        tree = team.repo.parent / "repo-ui"
        (tree / "mine").write_text("mine\n")
        git(tree, "add", "mine")
        (tree / "mine").unlink()
        moved = tree.rename(team.repo.parent / "moved")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert "repo-ui was gone, and was made again" in ran.out
        assert git(team.repo, "show", "unfinished/work-ui:mine") == "mine\n"
        assert git(moved, "diff", "--cached", "--name-only") == "mine\n"

    def test_is_named_where_a_rebase_is_under_way_in_it(self, team: Team) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        tree = team.repo.parent / "repo-ui"
        commit_file(tree, "mine", "mine\n")
        git(tree, "-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
        moved = tree.rename(team.repo.parent / "moved")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (5, {}), ran
        assert "git rebase is under way in it" in ran.err
        git(team.repo, "worktree", "repair", str(moved))
        git(moved, "rebase", "--continue")
        assert git(moved, "branch", "--show-current") == "ui\n"

    def test_is_worked_in_where_git_has_moved_it(self, team: Team) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        new = team.repo.parent / "elsewhere"
        git(team.repo, "worktree", "move", "../repo-ui", str(new))
        ran = team.start("ui", "--agent", team.agent(f"pwd > {team.bin}/where\n{WORKS}"))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert (team.bin / "where").read_text() == f"{new}\n"
        assert not (team.repo.parent / "repo-ui").exists()

    def test_is_made_again_where_git_had_moved_it(self, team: Team) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        new = team.repo.parent / "elsewhere"
        git(team.repo, "worktree", "move", "../repo-ui", str(new))
        shutil.rmtree(new)
        ran = team.start("ui", "--agent", team.agent(f"pwd > {team.bin}/where\n{WORKS}"))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert (team.bin / "where").read_text() == f"{new}\n"


def test_a_branch_that_was_removed_is_made_again_as_its_own(team: Team) -> None:
    team.issues(1)
    removes = "git checkout -q --detach; git branch -qD ui; exit 3\n"
    assert team.start("ui", "--agent", team.agent(removes)).code == 1
    ran = team.start("ui", "--agent", team.agent(WORKS))
    assert ran.code == 0, ran
    assert team.done() == {"x-1": ["ui"]}


def test_a_git_at_work_keeps_its_lock(team: Team) -> None:
    team.issues(1)
    assert team.queen("worktree", "add", "ui").code == 0
    tree = team.repo.parent / "repo-ui"
    (tree / "mine").write_text("mine\n")
    git(tree, "add", "--all")
    gate = team.bin / "gate"
    editor = team.program("editor", f'until [ -e {gate} ]; do sleep 0.1; done; echo it > "$1"\n')
    env = {**os.environ, "GIT_EDITOR": editor}
    with subprocess.Popen(["git", "commit", "-a"], cwd=tree, env=env) as commit:
        lock = Path(git(tree, "rev-parse", "--git-dir").strip()) / "index.lock"
        team.wait(lock.exists)
        os.utime(lock, (1, 1))
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert lock.exists()
        gate.touch()
        assert commit.wait(LIMIT_S) == 0
    assert ran.code != 0
    assert "git is at work in" in ran.out + ran.err


class TestAnotherFolder:
    """What git's settings of a worktree name in its place is nobody's to write to."""

    LEADS = "git config extensions.worktreeConfig true; git config --worktree core.worktree "

    @pytest.fixture
    def precious(self, tmp_path: Path) -> Path:
        folder = tmp_path / "precious"
        folder.mkdir()
        (folder / "README.md").write_text("precious\n")
        (folder / "other.txt").write_text("precious\n")
        return folder

    def assert_precious(self, precious: Path) -> None:
        found = {each.name: each.read_text() for each in precious.iterdir()}
        assert found == {"README.md": "precious\n", "other.txt": "precious\n"}

    @pytest.mark.some(1)
    @pytest.mark.parametrize("status", [0, 1])
    def test_an_agents_worktree_is_brought_home(
        self, team: Team, precious: Path, status: int
    ) -> None:
        team.issues(2)
        leads = f"[ $QUEEN_ISSUE = x-2 ] || {{ {self.LEADS}{precious}; exit {status}; }}"
        ran = team.start("ui", "--agent", team.agent(f"{WORKS}{leads}\n"))
        assert "core.worktree in git's settings of" in ran.out
        assert "x-2" in team.done()
        self.assert_precious(precious)

    def test_a_persons_commands_refuse_it(self, team: Team, precious: Path) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        tree = team.repo.parent / "repo-ui"
        (tree / "new.txt").write_text("new\n")
        git(tree, "config", "extensions.worktreeConfig", "true")
        git(tree, "config", "--worktree", "core.worktree", str(precious))
        for words in (("land", "-m", "all"), ("land",)):
            done = team.queen(*words, cwd=tree)
            assert (done.code, "alone say core.worktree" in done.err) == (5, True), done
        for force in ((), ("--force",)):
            done = team.queen("worktree", "remove", "ui", *force)
            assert (done.code, "alone say core.worktree" in done.err) == (5, True), done
        assert (tree / "new.txt").exists()
        self.assert_precious(precious)
        way = done.err.partition("try: ")[2].strip()
        subprocess.run(shlex.split(way), check=True)
        assert team.queen("worktree", "remove", "ui", "--force").code == 0


class TestBeforeAnIssue:
    """What is in the worktree and is not on the main branch lands with no other issue."""

    @pytest.mark.some(1)
    @pytest.mark.parametrize("how", ["typed", "renamed", "reset"])
    def test_what_a_person_left_is_kept_on_a_branch(self, team: Team, how: str) -> None:
        team.issues(1)
        assert team.queen("worktree", "add", "ui").code == 0
        tree = team.repo.parent / "repo-ui"
        if how == "typed":
            (tree / "mine").write_text("mine\n")
        else:
            git(team.repo, "branch", "mine", "main")
            git(team.repo, "worktree", "add", "-q", "../mine", "mine")
            (team.repo.parent / "mine" / "mine").write_text("mine\n")
            git(team.repo.parent / "mine", "add", "mine")
            git(team.repo.parent / "mine", "commit", "-qm", "mine")
            git(tree, "reset", "-q", "--hard", "mine")
            if how == "renamed":
                git(tree, "checkout", "-q", "--detach")
                git(team.repo, "worktree", "remove", "../mine")
                git(tree, "branch", "-qM", "mine", "ui")
                git(tree, "checkout", "-q", "ui")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert ran.code == 0, ran
        assert team.done() == {"x-1": ["ui"]}
        assert not (team.repo / "mine").exists()
        if how != "reset":  # Else that branch has it.
            assert git(team.repo, "show", "unfinished/work-ui:mine") == "mine\n"
            assert "on branch unfinished/work-ui" in ran.out

    @pytest.mark.thorough
    def test_commits_of_an_issue_that_was_given_back_are_kept_on_a_branch(self, team: Team) -> None:
        team.issues(2)
        gives_up = "echo half > half; git add -A; git commit -qm half; queen release x-1; exit 0"
        only_one = f'[ "$QUEEN_ISSUE" != x-1 ] || {{ {gives_up}; }}\n'
        ran = team.start("ui", "--agent", team.agent(only_one + WORKS))
        assert team.done() == {"x-2": ["ui"]}, ran
        assert not (team.repo / "half").exists()
        assert git(team.repo, "show", "unfinished/x-1-ui:half") == "half\n"

    @pytest.mark.parametrize("how", ["is still its own", "was taken from it", "was moved"])
    def test_work_on_another_issue_is_kept_for_that_one(self, team: Team, how: str) -> None:
        team.issues(2)
        assert team.queen("worktree", "add", "ui", "x-1").code == 0
        tree = team.repo.parent / "repo-ui"
        commit_file(tree, "half", "half\n")
        (tree / "more").write_text("more\n")
        if how == "was taken from it":
            assert team.quick("release", "x-1", "--reason", "no", as_="human").code == 0
        elif how == "was moved":
            assert (
                team.quick("issue", "assign", "x-1", "bo", "--force", "--new", as_="human").code
                == 0
            )
        assert team.quick("claim", "x-2", as_="ui").code == 0
        ran = team.start("ui", "--agent", team.agent(WORKS), "--issues", "x-2")
        assert team.done() == {"x-2": ["ui"]}, ran
        assert not {"half", "more"} & {each.name for each in team.repo.iterdir()}
        assert git(team.repo, "show", "unfinished/x-1-ui:half") == "half\n"
        assert git(team.repo, "show", "unfinished/x-1-ui:more") == "more\n"
        way = "queen worktree add NAME x-1 --branch unfinished/x-1-ui"
        assert way in team.queen("show", "x-1").out
        droid = "bo" if how == "was moved" else "ui"
        assert team.start(droid, "--agent", team.agent(WORKS)).code == 0
        assert way in (team.bin / "agent.said.x-1").read_text()
        found = team.queen("doctor", "--json", as_="lead").json
        assert [each["code"] for each in found if each["code"] == "outlived"] == ["outlived"]

    @pytest.mark.parametrize("who", ["agent", "claude"])
    def test_work_on_an_issue_that_a_person_takes_from_it_lands_with_no_other(
        self, team: Team, who: str
    ) -> None:
        team.issues(2)
        assert team.quick("claim", "x-1", "x-2", as_="ui").code == 0
        half = 'echo half > half; until [ -e "$0.go" ]; do sleep 0.1; done; exit 0'
        works = f'[ "$QUEEN_ISSUE" != x-1 ] || {{ {half}; }}\n{WORKS}'
        agent = team.agent(works)
        if who == "claude":  # Which does not ask for its issue.
            agent = who
            team.program(who, f'FILE="$QUEEN_ISSUE.txt"\n{works}')
        begun = team.begun("ui", "--agent", agent, "--max-issues", "1")
        team.wait((team.repo.parent / "repo-ui" / "half").exists)
        assert team.quick("release", "x-1", "--reason", "no", as_="human").code == 0
        (team.bin / f"{who}.go").touch()
        out = begun.communicate(timeout=LIMIT_S)[0]
        assert team.done() == {"x-2": ["ui"]}, out
        assert not (team.repo / "half").exists()
        assert git(team.repo, "show", "unfinished/x-1-ui:half") == "half\n"
        assert "human took x-1 from ui: no" in out
        assert "x-1 again" not in out
        assert "taken back from ui by human: no; unfinished in" in team.queen("show", "x-1").out

    @pytest.mark.parametrize("by", ["claim", "next"])
    def test_what_a_person_began_there_since_lands_with_its_issue(
        self, team: Team, by: str
    ) -> None:
        team.issues(2)
        assert team.queen("worktree", "add", "ui", "x-1").code == 0
        assert team.quick("release", "x-1", as_="human").code == 0
        assert team.quick("claim", "x-2", as_="ui").code == 0
        tree = team.repo.parent / "repo-ui"
        command = ("claim", "x-2") if by == "claim" else ("next",)
        assert team.queen(*command, as_="ui", cwd=tree).code == 0
        (tree / "mine").write_text("mine\n")
        ran = team.start("ui", "--agent", team.agent(WORKS), "--issues", "x-2")
        assert team.done() == {"x-2": ["ui"]}, ran
        assert (team.repo / "mine").read_text() == "mine\n"

    def test_whoever_goes_on_in_a_worktree_of_what_was_left_is_not_sent_there(
        self, team: Team
    ) -> None:
        team.issues(1)
        ran = team.start("ui", "--agent", team.agent("echo half >> half; exit 3\n"))
        goes_on = "queen worktree add NAME x-1 --branch unfinished/x-1-ui"
        assert goes_on in ran.out, ran
        assert goes_on in team.queen("next", as_="api").out
        team.queen("release", "x-1", as_="api")
        team.queen(*goes_on.replace("NAME", "olive").split()[1:], as_="olive")
        shown = team.queen("next", as_="olive", cwd=team.repo.parent / "repo-olive").out
        assert "on branch unfinished/x-1-ui, which is checked out here\n" in shown
        assert "go on with it in" not in shown

    def test_what_a_person_handed_over_lands_with_the_first(self, team: Team) -> None:
        team.issues(1)
        git(team.repo, "worktree", "add", "-qb", "ui", "../repo-ui")
        (team.repo.parent / "repo-ui" / "mine").write_text("mine\n")
        assert team.queen("worktree", "add", "ui", "--adopt", "ui").code == 0
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert ran.code == 0, ran
        assert (team.repo / "mine").read_text() == "mine\n"
        (team.repo.parent / "repo-ui" / "later").write_text("later\n")
        assert team.queen("issue", "new", "another", "--id", "x-2", as_="lead").code == 0
        assert team.start("ui", "--agent", team.agent(WORKS)).code == 0
        assert not (team.repo / "later").exists()

    @pytest.mark.some(1)
    @pytest.mark.parametrize("flag", ["true", "git update-index --skip-worktree e/c.txt"])
    def test_what_is_outside_of_a_sparse_checkout_is_kept_on_a_branch(
        self, team: Team, flag: str
    ) -> None:
        for name in ("d/a.txt", "e/c.txt"):
            (team.repo / name).parent.mkdir()
            (team.repo / name).write_text("old\n")
        team.issues(2)
        text = f"git sparse-checkout set d; {flag}; mkdir e; echo work > e/c.txt; echo new > e/new"
        text = f'if [ "$QUEEN_ISSUE" = x-1 ]; then {text}; queen release x-1; exit 3; fi\n'
        text += f"git sparse-checkout disable\n{WORKS}"
        ran = team.start("ui", "--agent", team.agent(text))
        assert team.done() == {"x-2": ["ui"]}, ran.out
        assert git(team.repo, "show", "main:e/c.txt") == "old\n"
        for name, said in (("c.txt", "work\n"), ("new", "new\n")):
            assert git(team.repo, "show", f"unfinished/x-1-ui:e/{name}") == said

    def test_what_is_outside_of_a_sparse_checkout_lands(self, team: Team) -> None:
        (team.repo / "d").mkdir()
        (team.repo / "d" / "a.txt").write_text("old\n")
        team.issues(1)
        text = (
            'git sparse-checkout set d; mkdir e; echo new > e/new; queen land "$QUEEN_ISSUE" -m x'
        )
        ran = team.start("ui", "--agent", team.agent(text))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert git(team.repo, "show", "main:e/new") == "new\n"

    @pytest.mark.parametrize("leaves", ["nested", "committed", "hidden"])
    def test_what_no_landing_can_have_is_out_of_its_way(self, team: Team, leaves: str) -> None:
        (team.repo / "a.txt").write_text("a\n")
        team.issues(2)
        nested = "git init -q nested; git -C nested commit -q --allow-empty -m it"
        hidden = "git update-index --skip-worktree a.txt; echo b > a.txt"
        committed = f"test -e nested || {{ {nested}; git add nested; git commit -qm nested; }}"
        spoils = {"nested": nested, "committed": committed, "hidden": hidden}[leaves]
        only_one = f'if [ "$QUEEN_ISSUE" = x-1 ]; then {spoils}; exit 3; fi\n'
        ran = team.start("ui", "--agent", team.agent(only_one + WORKS))
        assert team.done() == {"x-2": ["ui"]}, ran.out
        if leaves != "hidden":
            assert (team.repo.parent / "repo-ui.set-aside-1" / ".git").exists()
            assert "was set aside as" in ran.out
        else:
            assert git(team.repo, "show", "unfinished/x-1-ui:a.txt") == "b\n"

    @pytest.mark.thorough
    def test_what_git_ignores_is_kept_where_main_has_a_file_now(self, team: Team) -> None:
        (team.repo / ".gitignore").write_text("*.ign\n")
        team.issues(1)
        assert team.start("ui", "--agent", team.agent(WORKS)).code == 0
        tree = team.repo.parent / "repo-ui"
        (tree / "a.ign").write_text("mine\n")
        git(tree, "init", "-q", "b.ign")
        (tree / "b.ign" / "x").write_text("x\n")
        for name in ("a.ign", "b.ign"):
            (team.repo / name).write_text("tracked\n")
            git(team.repo, "add", "-f", name)
        assert team.queen("issue", "new", "more", "--id", "x-2", as_="lead").code == 0
        git(team.repo, "commit", "-qam", "track them")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"], "x-2": ["ui"]}), ran
        (kept,) = git(team.repo, "branch", "--list", "unfinished/*", "--format=%(refname)").split()
        assert git(team.repo, "show", f"{kept}:a.ign") == "mine\n"
        assert (tree.parent / "repo-ui.set-aside-1" / "x").exists()
        assert (tree / "a.ign").read_text() == "tracked\n"


class TestABranchThatLeadsElsewhere:
    """A symbolic reference in the place of an agent's branch: the other one stays as it is."""

    def links(self, aim: str) -> str:
        return (
            f'if [ "$QUEEN_ISSUE" = x-1 ]; then\n{COMMITS}'
            f"git symbolic-ref refs/heads/ui refs/heads/{aim}; exit 3; fi\n"
        )

    @pytest.mark.parametrize("aim", ["precious", "ui", "nothing"])
    def test_it_is_the_agents_own_again(self, team: Team, aim: str) -> None:
        team.issues(2)
        precious = team.repo.parent / "precious"
        git(team.repo, "worktree", "add", "-q", "-b", "precious", str(precious))
        commit_file(precious, "draft.txt", "not ready\n")
        commit_file(precious, "more.txt", "not ready\n")
        before = git(team.repo, "rev-parse", "precious")
        ran = team.start("ui", "--agent", team.agent(self.links(aim) + WORKS))
        assert team.done() == {"x-2": ["ui"]}, ran
        assert f"ui led to {aim}, and is a branch of its own again" in ran.out
        assert "gave it back: 3 ends without a landing" in ran.out
        assert git(team.repo, "rev-parse", "precious") == before
        assert git(precious, "status", "--porcelain") == ""
        assert not (team.repo / "draft.txt").exists()
        kept = git(team.repo, "log", "--branches", "--not", "main", "--format=%s")
        assert "half" in kept.split()

    def test_what_it_led_to_does_not_land(self, team: Team) -> None:
        team.issues(1)
        git(team.repo, "checkout", "-q", "-b", "precious")
        commit_file(team.repo, "draft.txt", "not ready\n")
        git(team.repo, "checkout", "-q", "main")
        leads = "git symbolic-ref refs/heads/ui refs/heads/precious"
        through = f"{COMMITS}{leads}; git commit -q --allow-empty -m through\n"
        ran = team.start("ui", "--agent", team.agent(f"{WORKS}{through}"))
        assert team.done() == {"x-1": ["ui"]}, ran
        assert (team.repo / "half").exists()
        assert "add draft.txt" not in git(team.repo, "log", "main", "--format=%s")

    @pytest.mark.thorough
    def test_nothing_gets_to_the_main_branch_without_its_check(self, team: Team) -> None:
        team.set("land.check", "false")
        team.issues(1)
        before = git(team.repo, "rev-parse", "main")
        text = "git symbolic-ref refs/heads/ui refs/heads/main\n"
        ran = team.start("ui", "--agent", team.agent(WORKS + text))
        assert (ran.code, team.done()) == (3, {}), ran  # Main fails it, too.
        since = git(team.repo, "log", "--format=%s", f"{before.strip()}..main")
        assert set(since.split()) <= {"records"}
        assert not (team.repo / "x-1.txt").exists()


def test_a_worktree_in_its_own_is_set_aside_as_one(team: Team) -> None:
    team.issues(2)
    inner = "git worktree add -q --detach inner; cd inner; echo i > i; git add i; git commit -qm in"
    only_one = f'if [ "$QUEEN_ISSUE" = x-1 ]; then {inner}; exit 3; fi\n'
    ran = team.start("ui", "--agent", team.agent(only_one + WORKS))
    assert team.done() == {"x-2": ["ui"]}, ran
    git(team.repo, "worktree", "prune", "--expire", "now")
    aside = team.repo.parent / "repo-ui.set-aside-1"
    assert git(aside, "log", "-1", "--format=%s") == "in\n"
    assert f"worktree {aside}" in git(team.repo, "worktree", "list", "--porcelain")
    assert git(team.repo, "show", "unfinished/x-1-ui-inner:i") == "i\n"
    assert "git log unfinished/x-1-ui-inner" in ran.out


def test_a_fifo_that_git_reads_keeps_no_run_from_its_end(team: Team) -> None:
    team.issues(1)
    team.quick("worktree", "add", "ui", as_="lead")
    os.mkfifo(team.repo.parent / "repo-ui" / ".gitattributes")
    ran = team.start("ui", "--agent", team.agent(WORKS))
    assert (ran.code, team.done()) == (1, {}), ran
    assert "git did not answer" in ran.out
