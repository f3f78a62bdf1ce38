"""An agent of `queen start` lands nothing whose verdict is open, by no way of `queen`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hives import git
from teams import ONE, Sprints, Team

pytestmark = pytest.mark.slow
FAILS = '{"status": "fail", "message": "no"}'
ROWS = """\
import json, sys
path, change = sys.argv[1:]
rows = [json.loads(each) for each in open(path)]
for row in rows:
    exec(change)
open(path, "w").write("".join(json.dumps(each) + "\\n" for each in rows))
"""


class Judged:
    """An issue whose verifier is on the main branch in git, and an agent that gets around it."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.bead = team.repo / ".beads" / "active" / "x-1.json"
        verifier = {"name": "good", "command": "grep good x-1.txt"}
        bead = {"id": "x-1", "title": "one", "intent": "write", "dod": {"verifiers": [verifier]}}
        self.bead.parent.mkdir(parents=True, exist_ok=True)
        self.bead.write_text(json.dumps(bead))
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "a bead")

    def tries(self, text: str, *options: str) -> str:
        """Returns what was printed while an agent did this in place of its work."""
        begin = 'exec >> "$0.tried" 2>&1; echo bad > x-1.txt\n'
        agent = self.team.agent(f"{begin}{text}\n")
        ran = self.team.start("amber", "--agent", agent, "--max-failures", "4", *options)
        assert ran.code == 1, ran
        assert self.landed() == ""
        return (self.team.bin / "agent.tried").read_text()

    def landed(self) -> str:
        """Returns what of the work is on the main branch."""
        listed = git(self.team.repo, "ls-tree", "--name-only", "main").split()
        return "bad" if "x-1.txt" in listed else ""


@pytest.fixture
def judged(team: Team) -> Judged:
    return Judged(team)


OTHER = "queen issue new T --id t-1; queen claim t-1; queen land t-1 -m bad"


class TestAnIssueWithChecks:
    def test_does_not_land_under_another_issue(self, judged: Judged) -> None:
        tried = judged.tries(OTHER, "--issues", "x-1")
        assert "this worktree has work on x-1, whose checks have not passed" in tried

    def test_does_not_land_under_another_issue_once_it_is_released(self, judged: Judged) -> None:
        tried = judged.tries(f"queen release x-1\n{OTHER}", "--issues", "x-1")
        assert "this worktree has work on x-1, whose checks have not passed" in tried

    def test_is_not_completed_by_its_agent_without_them(self, judged: Judged) -> None:
        text = "queen complete x-1 --force --reason done --as human; queen land -m bad --as amber"
        tried = judged.tries(f"unset QUEEN_DROID; cd {judged.team.repo}; {text}")
        assert "no agent that queen start looks after completes x-1 without its checks" in tried

    @pytest.mark.parametrize("how", ["close x-1", "delete x-1 --force"])
    def test_is_neither_closed_nor_deleted_by_its_agent(self, judged: Judged, how: str) -> None:
        tried = judged.tries(f"queen release x-1; queen issue {how} --reason done")
        assert "no agent that queen start looks after ends x-1 without its checks" in tried
        assert "x-1" not in judged.team.done()

    def test_is_not_ended_by_taking_back_that_it_was_opened(self, judged: Judged) -> None:
        row = {"id": "x-1", "title": "one", "status": "closed", "issue_type": "task"}
        (judged.team.repo / ".beads" / "issues.jsonl").write_text(json.dumps(row) + "\n")
        assert judged.team.queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        text = "queen issue reopen x-1; queen undo -y; exit 1"
        tried = judged.tries(text, "--issues", "t-1")
        assert "no agent that queen start looks after ends x-1 without its checks" in tried
        assert "x-1" not in judged.team.done()

    def test_is_not_deleted_by_taking_back_that_its_row_was_made(self, judged: Judged) -> None:
        assert judged.team.queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        makes = f"mv {judged.bead} $0.bead; queen issue new X --id x-1; mv $0.bead {judged.bead}"
        tried = judged.tries(f"{makes}; queen undo -y; exit 1", "--issues", "t-1")
        assert "no agent that queen start looks after ends x-1 without its checks" in tried
        assert "took back" not in tried

    def test_is_not_ended_by_an_import(self, judged: Judged) -> None:
        row = {"id": "x-1", "title": "one", "status": "open", "issue_type": "task"}
        (judged.team.repo / ".beads" / "issues.jsonl").write_text(json.dumps(row) + "\n")
        listed = json.dumps([{**row, "status": "closed"}])
        done = f"echo '{listed}' > $0.json; queen issue import --from beads $0.json"
        tried = judged.tries(f"queen release x-1; {done}")
        assert "no agent that queen start looks after ends x-1 without its checks" in tried

    def test_is_not_ended_by_the_row_of_another_landing(self, judged: Judged) -> None:
        queen, repo = judged.team.queen, judged.team.repo
        assert queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        assert queen("issue", "export").code == 0
        row = {"id": "x-1", "title": "one", "status": "open", "issue_type": "task"}
        with (repo / ".beads" / "issues.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "rows")
        change = 'row.update(status="closed", updated_at="2099-01-02T00:00:00Z")'
        change += ' if row["id"] == "x-1" else 0'
        edit = shlex.join([sys.executable, "-c", ROWS, ".beads/issues.jsonl", change])
        text = f"rm x-1.txt; {edit}; git add -A; git commit -qm t; queen land t-1"
        tried = judged.tries(text, "--issues", "t-1")
        assert ".beads/issues.jsonl: it ends x-1, whose checks have not passed" in tried

    def test_is_judged_as_the_main_branch_has_it_whatever_its_file_expects(
        self, judged: Judged
    ) -> None:
        expects = 's/"command"/"expect": {"exit_code": 1}, "command"/'
        text = f"grep -q exit_code {judged.bead} || sed -i '{expects}' {judged.bead}\n"
        text += "queen complete x-1; queen land x-1 -m bad"
        tried = judged.tries(text)
        assert "the checks of x-1 that are on the main branch count: its file differs" in tried
        assert "exit_code" in judged.bead.read_text()

    def test_is_judged_as_the_main_branch_has_it_without_its_file(self, judged: Judged) -> None:
        remove = f"rm {judged.bead}; queen issue new X --id x-1"
        assert "the checks of x-1 failed" in judged.tries(f"{remove}; queen land x-1 -m bad")

    def test_in_a_row_is_judged_as_the_main_branch_has_it(self, judged: Judged) -> None:
        dod = json.loads(judged.bead.read_text())["dod"]
        judged.bead.unlink()
        row = {"id": "x-1", "title": "one", "status": "open", "issue_type": "task", "dod": dod}
        rows = judged.team.repo / ".beads" / "issues.jsonl"
        rows.write_text(json.dumps(row) + "\n")
        git(judged.team.repo, "add", "--all")
        git(judged.team.repo, "commit", "-qm", "a row")
        change = 'row["dod"]["verifiers"][0]["expect"] = {"exit_code": 1}'
        edit = shlex.join([sys.executable, "-c", ROWS, str(rows), change])
        assert "the checks of x-1 failed" in judged.tries(f"{edit}; queen land x-1 -m bad")

    def test_lands_once_they_pass(self, judged: Judged) -> None:
        text = 'echo good > "$FILE"; queen land x-1 -m good'
        ran = judged.team.start("amber", "--agent", judged.team.agent(text))
        assert ran.code == 0, ran
        assert judged.landed() == "bad"

    @pytest.mark.parametrize(
        "leaves",
        [
            "queen release x-1; exit 1",
            "rm x-1.txt; queen release x-1; queen issue edit t-1 --priority 0; queen next",
        ],
    )
    def test_that_was_given_back_keeps_nothing_else_from_landing(
        self, judged: Judged, leaves: str
    ) -> None:
        assert judged.team.queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        text = f'if [ "$QUEEN_ISSUE" = x-1 ]; then\necho bad > x-1.txt; {leaves}\nfi\n'
        text += "echo t > t.txt; queen land t-1 -m t"
        ran = judged.team.start("amber", "--agent", judged.team.agent(text))
        assert "t-1" in judged.team.done(), ran.out


class TestASprintBead:
    def landed(self, sprints: Sprints) -> str:
        return git(sprints.team.repo, "ls-tree", "-r", "--name-only", "main")

    @pytest.mark.thorough
    @pytest.mark.parametrize("first", ["queen release $QUEEN_ISSUE", "true"])
    def test_does_not_land_under_another_issue(self, sprints: Sprints, first: str) -> None:
        develops = f'exec >> "$0.tried" 2>&1; echo evil > evil.txt\n{first}\n'
        develops += "queen issue new T --id t-1; queen claim t-1; queen land t-1 -m bad"
        judges = f"echo '{FAILS}'"
        sprints.start(ONE, "--size", "1", "--max-failures", "4", develops=develops, judges=judges)
        assert "evil.txt" not in self.landed(sprints)

    def evil(self, sprints: Sprints) -> tuple[str, str]:
        """Returns a bead that another agent has, and its branch, which has a commit."""
        team = sprints.team
        (team.repo / "plan.md").write_text(ONE)
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "plan")
        assert team.queen("plan", "import", "plan.md", as_="lead").code == 0
        (bead,) = sprints.beads()
        made = team.queen("worktree", "add", "ann", "--bead", bead["id"], "--json", as_="lead")
        place = Path(made.json["path"])
        (place / "evil.txt").write_text("evil\n")
        git(place, "add", "-A")
        git(place, "commit", "-qm", "evil")
        return bead["id"], made.json["branch"]

    @pytest.mark.parametrize("renamed", [False, True])
    def test_does_not_land_by_a_merge_of_its_branch(self, sprints: Sprints, renamed: bool) -> None:
        """Of a bead of another agent, in one's own worktree, under one's own issue."""
        team, (bead, branch) = sprints.team, self.evil(sprints)
        team.issues(1)
        if renamed:
            git(team.repo, "branch", "-m", branch, "moved")
            branch = "moved"
        text = f'exec > "$0.tried" 2>&1; git merge -q {branch}; queen land x-1 -m x'
        team.start("amber", "--agent", team.agent(text), "--issues", "x-1", "--max-failures", "1")
        tried = (team.bin / "agent.tried").read_text()
        assert f"the branch of {bead}, which has not been judged" in tried
        assert "evil.txt" not in self.landed(sprints)

    def test_does_not_land_with_the_branch_of_another(
        self, sprints: Sprints, tmp_path: Path
    ) -> None:
        """Two wait for a third: the first of them takes the other along."""
        team, (_, branch) = sprints.team, self.evil(sprints)
        team.set("land.check", f"touch {tmp_path}/begun; sleep 4")
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "a check")
        trees = [tmp_path / name for name in ("one", "two")]
        for each in trees:
            git(team.repo, "worktree", "add", "-q", str(each), "-b", each.name)
            (each / f"{each.name}.txt").write_text("x\n")
        team.issues(1)
        text = f"git merge -q {branch}; touch $0.ready\n"
        text += "until test -e $0.go; do sleep 0.1; done; queen land x-1 -m x"
        how = ("--issues", "x-1", "--max-failures", "1")
        runs = team.begun("amber", "--agent", team.agent(text), *how)
        team.wait((team.bin / "agent.ready").exists)
        lands = [team.queen.start("land", "-m", "x", as_="one", cwd=trees[0])]
        team.wait((tmp_path / "begun").exists)
        lands.append(team.queen.start("land", "-m", "x", as_="two", cwd=trees[1]))
        (team.bin / "agent.go").touch()
        for each in (*lands, runs):
            each.communicate(timeout=60)
        listed = self.landed(sprints).split()
        assert ({"one.txt", "two.txt"} <= {*listed}, "evil.txt" in listed) == (True, False)

    def edited(self, sprints: Sprints, change: str) -> str:
        """Returns what a team says whose agent changes the row of its bead."""
        rows = sprints.team.repo / ".beads" / "issues.jsonl"
        edit = shlex.join([sys.executable, "-c", ROWS, str(rows), change])
        develops = f"echo evil > evil.txt; queen issue export; {edit}"
        judges = f"echo '{FAILS}'"
        ran = sprints.start(ONE, "--size", "1", develops=develops, judges=judges)
        assert "evil.txt" not in self.landed(sprints)
        return ran.out + ran.err

    @pytest.mark.parametrize("change", ['row["issue_type"] = "task"', 'row.pop("metadata")'])
    def test_is_none_any_more_and_is_given_back(self, sprints: Sprints, change: str) -> None:
        said = self.edited(sprints, change)
        assert "was begun as a sprint bead, and is none any more" in said
        assert not [*sprints.team.bin.glob("agent..*")]  # It is no task of another kind.
        assert "a bug in queen" not in said

    def test_has_no_more_attempts_than_when_it_was_begun(self, sprints: Sprints) -> None:
        said = self.edited(sprints, 'row["metadata"]["max_retry_attempts"] = 9')
        assert "max_retry_attempts of" in said

    def test_keeps_its_type_while_it_is_in_hand(self, sprints: Sprints) -> None:
        develops = 'echo x > x.txt; queen issue edit "$QUEEN_ISSUE" --type task 2> "$0.tried"'
        ran = sprints.start(ONE, "--size", "1", develops=f"{develops}; true")
        assert ran.code == 0, ran
        assert "is in the hands of queen start" in (sprints.team.bin / "agent.tried").read_text()

    def test_that_is_none_any_more_does_not_end_the_others(self, sprints: Sprints) -> None:
        team = sprints.team
        (team.repo / "plan.md").write_text(ONE)
        assert team.queen("plan", "import", "plan.md", as_="lead").code == 0
        team.issues(1)
        rows = str(team.repo / ".beads" / "issues.jsonl")
        assert team.queen("issue", "export").code == 0
        edit = shlex.join([sys.executable, "-c", ROWS, rows, 'row.pop("metadata", 0)'])
        agent = sprints.agent(f"{edit}; exit 1", 'echo x > "$QUEEN_ISSUE.txt"')
        ran = team.start("--agent", agent, "--size", "2")
        assert "a bug in queen" not in ran.out + ran.err
        assert "x-1" in team.done(), ran.out


def test_an_agent_takes_back_nothing_of_anybody_else(team: Team) -> None:
    team.issues(2)
    assert team.quick("claim", "x-2", as_="onyx").code == 0
    assert team.quick("issue", "edit", "x-1", "--priority", "3", as_="human").code == 0
    text = f"""for name in onyx human; do
(cd {team.repo}; env -i PATH="$PATH" HOME="$HOME" queen undo --as $name)
done
queen msg send onyx hello; queen undo"""
    agent = team.agent(f'exec > "$0.tried" 2>&1\n{text}\nexit 1\n')
    team.start("amber", "--agent", agent, "--issues", "x-1", "--max-failures", "1")
    tried = (team.bin / "agent.tried").read_text()
    for name in ("onyx", "human"):
        assert f"an agent takes back only its own last command, not that of {name}" in tried
    assert "the message to onyx is deleted" in tried
    shown = {each["id"]: each for each in team.quick("issues", "--json").json}
    assert (shown["x-2"]["holder"], shown["x-1"]["priority"]) == ("onyx", 3)
