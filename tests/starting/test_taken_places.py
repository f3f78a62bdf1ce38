"""What a person has put where an agent's worktree was stays theirs: `queen start` in its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hives import Queen, commit_file, git
from teams import WORKS, Team

pytestmark = pytest.mark.slow


@pytest.fixture
def place(team: Team) -> Path:
    """The folder of an agent's worktree."""
    team.issues(1)
    assert team.queen("worktree", "add", "ui").code == 0
    return team.repo.parent / "repo-ui"


def work_in(tree: Path) -> None:
    """Leaves a commit, and what is staged, changed and untracked."""
    commit_file(tree, "landed.txt", "not yet\n")
    (tree / "staged.txt").write_text("staged\n")
    git(tree, "add", "staged.txt")
    (tree / "landed.txt").write_text("changed\n")
    (tree / "untracked.txt").write_text("untracked\n")


def state_of(tree: Path) -> tuple[str, ...]:
    """Returns what git says of a worktree, and where its `.git` leads."""
    asked = git(tree, "status", "--porcelain=v2", "--branch"), git(tree, "stash", "list")
    return (*asked, (tree / ".git").read_text())


def other_repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q")
    commit_file(folder, "file.txt", "1\n")
    return folder


class TestAWorktreeOfAPerson:
    @pytest.fixture
    def mine(self, team: Team, place: Path, request: pytest.FixtureRequest) -> Path:
        """A person's worktree, with work in it, that was moved to where the agent's was."""
        whose, is_repaired = request.param
        new = place.parent / "new"
        owner = team.repo if whose == "same" else other_repository(place.parent / "other")
        git(owner, "worktree", "add", "-q", "-b", "mine", str(new))
        work_in(new)
        place.rename(place.parent / "away")
        new.rename(place)
        if is_repaired:
            git(owner, "worktree", "repair", str(place))
        return place

    @pytest.mark.parametrize(
        "mine",
        [("same", False), ("same", True), ("other", False), ("other", True)],
        indirect=True,
        ids=["moved", "repaired", "of another repository", "of another repository, repaired"],
    )
    def test_is_refused_and_stays_as_it_is(self, team: Team, mine: Path) -> None:
        before, refs = state_of(mine), git(team.repo, "for-each-ref")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (5, {}), ran
        assert f"{mine} is a" in ran.err
        assert state_of(mine) == before
        assert git(team.repo, "for-each-ref") == refs
        says = ran.err.split("; else: ")[-1].split("try: ")[-1].strip()
        subprocess.run(says, shell=True, cwd=mine.parent, check=True)
        moved = Path(f"{mine}.other")
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert git(moved, "branch", "--show-current") == "mine\n"

    def test_without_a_note_is_none_of_an_agent(self, team: Team, place: Path) -> None:
        agent = f"git worktree move {place} {place}.old; git worktree add -qb mine {place}; exit 3"
        ran = team.start("ui", "--agent", team.agent(f"cd {team.repo}; {agent}\n"))
        assert "is a worktree that QueenBee did not make for ui" in ran.out + ran.err
        assert git(place, "branch", "--show-current") == "mine\n"


class TestACopiedRepository:
    def test_leaves_the_worktree_of_the_first_one_alone(self, team: Team, place: Path) -> None:
        work_in(place)
        before = state_of(place)
        copy = place.parent / "backup" / "repo"
        shutil.copytree(team.repo, copy, symlinks=True)
        queen = Queen(copy)
        queen.env = team.queen.env
        start = ("start", "--no-trial", "ui", "--agent", team.agent(WORKS))
        ran = queen(*start, as_="lead")
        assert (ran.code, "if this is a copy of that: rm -r " in ran.err) == (5, True), ran
        assert state_of(place) == before
        shutil.rmtree(copy / ".git" / "worktrees" / "repo-ui")
        ran = queen(*start, as_="lead")
        assert ran.code == 0, ran
        assert (copy / "x-1.txt").exists()
        assert state_of(place) == before

    def test_that_was_moved_goes_on_once_git_knows_its_worktree(
        self, team: Team, place: Path
    ) -> None:
        work_in(place)
        moved = team.repo.rename(place.parent / "moved")
        queen = Queen(moved)
        queen.env = team.queen.env
        start = ("start", "--no-trial", "ui", "--agent", team.agent(WORKS))
        dot_git = (place / ".git").read_text()
        ran = queen(*start, as_="lead")
        assert (ran.code, "which is not there" in ran.err) == (5, True), ran
        assert (place / ".git").read_text() == dot_git
        git(moved, "worktree", "repair")
        assert queen(*start, as_="lead").code == 0
        assert (moved / "x-1.txt").exists()


class TestAFolder:
    @pytest.mark.parametrize("is_clone", [False, True])
    def test_of_a_person_is_set_aside_whole(self, team: Team, place: Path, is_clone: bool) -> None:
        shutil.rmtree(place)
        if is_clone:
            git(place.parent, "clone", "-q", str(team.repo), str(place))
        (place / "photos").mkdir(parents=True)
        (place / "photos" / "1.jpg").write_text("private\n")
        (place / "id_rsa").write_text("private\n")
        before = sorted(each.relative_to(place) for each in place.rglob("*"))
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        aside = Path(f"{place}.set-aside-1")
        assert f"was set aside as {aside}" in ran.out
        assert sorted(each.relative_to(aside) for each in aside.rglob("*")) == before
        assert (aside / ".git").exists() == is_clone
        assert "private" not in git(team.repo, "log", "--all", "-p", "--format=")

    def test_to_which_a_link_in_its_place_leads_stays(self, team: Team, place: Path) -> None:
        folder = place.parent / "photos"
        folder.mkdir()
        (folder / "1.jpg").write_text("private\n")
        shutil.rmtree(place)
        place.symlink_to(folder)
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, f"{place} is no folder any more" in ran.err) == (5, True), ran
        assert [each.name for each in folder.iterdir()] == ["1.jpg"]

    def test_of_the_worktree_itself_works_behind_a_link(self, team: Team, place: Path) -> None:
        large = place.rename(place.parent / "large")
        place.symlink_to(large)
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert (large / "x-1.txt").exists()

    def test_of_the_worktree_itself_works_from_a_backup(self, team: Team, place: Path) -> None:
        work_in(place)
        shutil.copytree(place, place.parent / "backup", symlinks=True)
        shutil.rmtree(place)
        (place.parent / "backup").rename(place)
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert (ran.code, team.done()) == (0, {"x-1": ["ui"]}), ran
        assert git(team.repo, "show", "unfinished/work-ui:untracked.txt") == "untracked\n"
        assert not Path(f"{place}.set-aside-1").exists()
