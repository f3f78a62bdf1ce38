"""`queen start` works in no place that it did not make, and throws nothing away."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hives import commit_file, git
from teams import ONE, PASSES, WORKS, Sprints, Team

from queenbee.checks.noted_process import end_left
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import described
from queenbee.store.layout import discover

pytestmark = pytest.mark.slow


@pytest.fixture
def precious(team: Team, tmp_path: Path) -> Path:
    """A person's own worktree: a commit that is not ready, and something not committed."""
    git(team.repo, "add", "--all")
    git(team.repo, "commit", "-q", "--allow-empty", "-m", "begin")
    path = tmp_path / "precious"
    git(team.repo, "worktree", "add", "-q", "-b", "precious", str(path))
    commit_file(path, "draft.txt", "not ready, do not land\n")
    (path / "typed.txt").write_text("typed\n")
    return path


def imported(sprints: Sprints, **metadata: str) -> str:
    """Returns the id of a bead from a plan, whose row then names another place."""
    repo = sprints.team.repo
    (repo / "plan.md").write_text(ONE)
    assert sprints.team.queen("plan", "import", "plan.md", as_="lead").code == 0
    (row,) = sprints.beads()
    for name, value in metadata.items():
        row["metadata"][name] = value
    with (repo / ".beads" / "issues.jsonl").open("a") as file:
        file.write(json.dumps(row | {"updated_at": "2096-01-01T00:00:00Z"}) + "\n")
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "a row")
    return str(row["id"])


@pytest.mark.parametrize("has_worktree", [True, False])
def test_a_row_that_names_somebodys_branch_takes_over_nothing(
    sprints: Sprints, precious: Path, has_worktree: bool
) -> None:
    repo = sprints.team.repo
    issue = imported(sprints, branch="precious", worktree_path=str(precious))
    if not has_worktree:
        (precious / "typed.txt").unlink()
        git(repo, "worktree", "remove", str(precious))
    before = git(repo, "rev-parse", "precious")
    ran = sprints.team.start("--agent", sprints.agent(), "--size", "1")
    assert ran.code == 1
    assert "needs the branch precious" in ran.out
    assert "which QueenBee did not make; it has one commit that the main branch lacks" in ran.out
    assert f"--bead {issue} --adopt precious" in ran.out
    assert git(repo, "rev-parse", "precious") == before
    assert not (repo / "draft.txt").exists()
    assert not list(sprints.team.bin.glob("agent.develop.*"))
    if has_worktree:
        assert (precious / "typed.txt").read_text() == "typed\n"
        assert git(precious, "status", "--porcelain") == "?? typed.txt\n"


@pytest.mark.thorough
def test_what_a_person_hands_over_is_worked_on(sprints: Sprints, precious: Path) -> None:
    imported(sprints, branch="precious", worktree_path=str(precious))
    ran = sprints.team.start("--agent", sprints.agent(), "--size", "1", "--adopt", "precious")
    assert ran.code == 0, ran
    assert (sprints.team.repo / "draft.txt").exists()


def test_a_worktree_with_the_name_of_an_agent_is_left_alone(team: Team, precious: Path) -> None:
    (team.repo / ".git" / "worktrees" / "precious" / "queenbee-droid").write_text("amber\n")
    team.issues(1)
    ran = team.start("amber", "--agent", team.agent('echo x > "$FILE"'))
    assert ran.code == 0, ran
    assert (precious / "typed.txt").exists()
    assert not (team.repo / "draft.txt").exists()
    assert git(precious, "branch", "--show-current") == "precious\n"


def test_an_agent_lands_no_branch_of_a_person_from_its_worktree(team: Team) -> None:
    team.issues(1)
    git(team.repo, "switch", "-qc", "feature")
    commit_file(team.repo, "draft.txt", "not ready, do not land\n")
    before = git(team.repo, "rev-parse", "feature")
    git(team.repo, "switch", "-q", "main")
    lands = f"queen land -m work 2> {team.bin}/said"
    text = f"git switch -q feature && echo x > $FILE && {lands}; git switch -q amber\n"
    ran = team.start("amber", "--agent", team.agent(text))
    assert ran.code == 0, ran
    assert "has the branch feature checked out, which QueenBee did not make" in (
        (team.bin / "said").read_text()
    )
    assert git(team.repo, "rev-parse", "feature") == before
    assert not (team.repo / "draft.txt").exists()
    assert (team.content("x-1"), team.done()) == ("x\n", {"x-1": ["amber"]})


@pytest.mark.parametrize("name", ["human", "queen"])
def test_no_agent_gets_the_name_of_a_person(team: Team, name: str) -> None:
    team.issues(1)
    ran = team.start("ui", name, "--agent", team.agent(WORKS))
    assert ran.code == 2, ran
    assert f"no agent can be named {name}" in ran.err
    assert git(team.repo, "branch", "--format=%(refname:short)") == "main\n"


def test_the_name_of_the_main_branch_is_not_handed_over(team: Team) -> None:
    team.issues(1)
    ran = team.start("main", "--agent", team.agent(WORKS))
    assert ran.code == 5, ran
    assert "choose another name" in ran.err and "adopt" not in ran.err


def test_what_is_typed_while_a_bead_is_judged_is_kept(sprints: Sprints) -> None:
    judges = "for each in *.txt; do echo typed >> $each; done; git commit -qam sneaky\n"
    judges += "echo new > typed.md; "
    judges += f"echo staged > s.txt; git add s.txt; echo '{PASSES}'"
    ran = sprints.start(ONE, judges=judges)
    assert ran.code == 0, ran
    row = sprints.beads()[0]
    branch = f"unfinished/{row['id'].replace('.', '-')}-while-judged"
    assert f"git show {branch}" in ran.out
    repo = sprints.team.repo
    assert git(repo, "show", f"{branch}:typed.md") == "new\n"
    assert git(repo, "show", f"{branch}:s.txt") == "staged\n"
    assert git(repo, "show", f"{branch}:{row['id']}.txt") == f"{row['id']}\ntyped\n"
    assert sprints.team.content(row["id"]) == f"{row['id']}\n"
    assert not (repo / "typed.md").exists()


def test_a_judge_that_changes_nothing_leaves_no_branch(sprints: Sprints) -> None:
    assert sprints.start(ONE).code == 0
    assert git(sprints.team.repo, "branch", "--list", "unfinished/*") == ""


def test_the_end_of_work_commits_records_and_nothing_else(team: Team) -> None:
    team.issues(1)
    beads, secret = team.repo / ".beads", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (beads / ".env").write_text(f"TOKEN={secret}\n")
    (beads / "dump.bin").write_bytes(bytes(2**20))
    (beads / "active").mkdir()
    (beads / "active" / "draft.json").write_text('{"id": "half')
    with (beads / "queen.toml").open("a") as file:
        file.write("# mine\n")
    ran = team.start("--agent", team.agent(WORKS), "--size", "1")
    assert ran.code == 0, ran
    assert git(team.repo, "status", "--porcelain").split() == [
        *("M", ".beads/queen.toml", "??", ".beads/.env", "??", ".beads/active/"),
        *("??", ".beads/dump.bin"),
    ]
    assert secret not in git(team.repo, "log", "-p", "main")


@pytest.mark.thorough
def test_the_end_of_work_leaves_a_rebase_alone(team: Team) -> None:
    team.issues(1)
    commit_file(team.repo, "b.txt", "b\n")
    wait = f'git -C "{team.repo}" -c sequence.editor="sed -i s/pick/edit/" rebase -q -i HEAD~1\n'
    ran = team.start("--agent", team.agent(wait + "exit 1"), "--size", "1")
    assert ran.code == 1
    assert git(team.repo, "log", "-1", "--format=%s", "HEAD") == "add b.txt\n"
    assert "the records are not committed: git rebase is under way" in ran.out


@pytest.mark.parametrize("way", ["start", "worktree add"])
def test_a_worktree_that_a_person_hands_over_is_worked_in(
    team: Team, tmp_path: Path, way: str
) -> None:
    team.issues(1)
    mine = tmp_path / "mine"
    git(team.repo, "worktree", "add", "-q", "-b", "amber", str(mine))
    commit_file(mine, "draft.txt", "ready now\n")
    if way == "worktree add":
        assert team.queen("worktree", "add", "amber", "--adopt", "amber").code == 0
    adopts = ("--adopt", "amber") if way == "start" else ()
    ran = team.start("--agent", team.agent(WORKS), "--size", "1", *adopts)
    assert ran.code == 0, ran
    assert team.done() == {"x-1": ["amber"]}
    assert (team.repo / "draft.txt").exists()


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "revert", "rebase"])
def test_what_a_person_has_under_way_in_what_they_hand_over_is_left_alone(
    team: Team, tmp_path: Path, how: str
) -> None:
    team.issues(1)
    mine = tmp_path / "mine"
    git(team.repo, "worktree", "add", "-q", "-b", "amber", str(mine))
    commit_file(team.repo, "draft.txt", "ours\n")
    commit_file(mine, "draft.txt", "theirs\n")
    commit_file(mine, "draft.txt", "later\n")
    what = "HEAD~1" if how == "revert" else "main"
    assert subprocess.run(["git", "-C", str(mine), how, what], capture_output=True).returncode
    (mine / "draft.txt").write_text("half resolved\n")
    before = git(mine, "status", "--porcelain=v2")
    ran = team.start("amber", "--adopt", "amber", "--agent", team.agent(WORKS))
    assert (ran.code, f"git -C {mine} status" in ran.err) == (5, True), ran
    assert git(mine, "status", "--porcelain=v2") == before
    assert (mine / "draft.txt").read_text() == "half resolved\n"
    assert git(team.repo, "branch", "--list", "unfinished*") == ""
    git(mine, how, "--abort")
    assert team.start("amber", "--adopt", "amber", "--agent", team.agent(WORKS)).code != 5


def test_another_name_is_taken_where_a_person_has_a_branch_of_that_name(team: Team) -> None:
    team.issues(1)
    git(team.repo, "branch", "amber")
    ran = team.start("--agent", team.agent(WORKS), "--size", "1")
    assert (ran.code, team.done()) == (0, {"x-1": ["birch"]}), ran


FAILS = '{"status": "fail", "message": "no"}'


class TestAnAgentOutsideOfItsWorktree:
    """Its environment, its name and its folder may say anything: its process tells."""

    def tried(self, team: Team, text: str) -> str:
        """Returns what an agent printed that tries something in place of its issue."""
        team.issues(1)
        ran = team.start("amber", "--agent", team.agent(f'exec > "$0.tried" 2>&1\n{text}exit 1\n'))
        assert ran.code == 1, ran
        return (team.bin / "agent.tried").read_text()

    @pytest.mark.some(1)
    @pytest.mark.parametrize("who", ["", "unset QUEEN_DROID\n", "QUEEN_DROID=ann\n"])
    def test_lands_no_work_of_a_person(self, team: Team, precious: Path, who: str) -> None:
        tried = self.tried(team, f"cd {precious}\n{who}queen land -m steal\n")
        assert f"it lands nothing from {precious}" in tried
        assert not (team.repo / "draft.txt").exists()
        assert git(precious, "status", "--porcelain") == "?? typed.txt\n"

    @pytest.mark.thorough
    @pytest.mark.linux
    def test_lands_none_without_its_environment_and_its_group(
        self, team: Team, precious: Path
    ) -> None:
        text = f'cd {precious}; setsid -w env -i PATH="$PATH" HOME=/ queen land -m steal\n'
        assert "it lands nothing from" in self.tried(team, text)
        assert not (team.repo / "draft.txt").exists()

    def test_lands_no_bead_by_a_worktree_that_it_made(self, sprints: Sprints) -> None:
        helper = f"{sprints.team.repo}-helper"
        develops = (
            'exec > "$0.tried" 2>&1; echo evil > evil.txt; git add -A; git commit -qm evil\n'
            "H=$(git rev-parse HEAD); unset QUEEN_DROID; queen worktree add helper\n"
            f"cd {helper}; git merge -q $H; queen land; queen land --as helper -m evil"
        )
        sprints.start(ONE, "--size", "1", develops=develops, judges=f"echo '{FAILS}'")
        tried = (sprints.team.bin / "agent.tried").read_text()
        assert tried.count("it lands nothing from") == 2
        assert "evil.txt" not in git(sprints.team.repo, "ls-tree", "--name-only", "main")

    def test_removes_no_worktree_but_its_own(self, team: Team, precious: Path) -> None:
        team.queen("worktree", "add", "ui", as_="lead")
        ui = Path(f"{team.repo}-ui")
        (ui / "typed.txt").write_text("typed\n")
        text = f"cd {team.repo}; unset QUEEN_DROID; for each in precious ui amber; do\n"
        text += "queen worktree remove $each --force; done\n"
        text += "queen worktree add helper && queen worktree remove helper\n"
        tried = self.tried(team, text)
        assert tried.count("whom queen start looks after, did not make") == 2
        assert (precious / "typed.txt").exists()
        assert (ui / "typed.txt").exists()
        assert "removed " in tried
        assert not Path(f"{team.repo}-helper").exists()

    def test_moves_no_worktree_but_its_own(self, team: Team) -> None:
        team.issues(2)
        tree = Path(f"{team.repo}-mine")
        git(team.repo, "worktree", "add", "-q", "-b", "mine", str(tree))
        before = git(tree, "rev-parse", "HEAD")
        commit_file(team.repo, "late.txt", "x\n")
        agent = team.agent(f"cd {tree}; queen next --as other; exit 1\n")
        team.start("amber", "--agent", agent, "--issues", "x-1")
        assert git(tree, "rev-parse", "HEAD") == before


def test_a_note_in_the_state_folder_deletes_no_branch(team: Team, precious: Path) -> None:
    """Agents in a sandbox may write there."""
    team.issues(1)
    git(precious, "checkout", "-q", "--detach")
    tip = git(team.repo, "rev-parse", "precious").strip()
    note = Path(discover(str(team.repo), {}).state_dir, "landing", "main", ".rehearsal")
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps(["refs/heads/precious", tip]))
    assert team.start("ui", "--agent", team.agent(WORKS)).code == 0
    assert git(team.repo, "rev-parse", "precious").strip() == tip


@pytest.mark.linux
def test_a_note_that_names_a_process_of_a_person_ends_nothing(team: Team) -> None:
    """The number of a process that has ended may be a person's by now."""
    team.issues(1)
    layout = discover(str(team.repo), {})
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as theirs:
        try:
            said = {"state": "working", "process": described(theirs.pid), "issue_id": "x-1"}
            Path(roster.folder(layout)).mkdir(parents=True, exist_ok=True)
            roster.write(layout, roster.Entry("ui", said))
            ran = team.start("ui", "--agent", team.agent(WORKS))
            assert ran.code == 0, ran
            assert "still at work" not in ran.out
            assert theirs.poll() is None
            assert team.done() == {"x-1": ["ui"]}
            forged = Path(layout.state_dir, "noted")
            forged.write_text(described(theirs.pid))
            end_left(str(forged))
            assert theirs.poll() is None
        finally:
            theirs.kill()
