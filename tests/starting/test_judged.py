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


PARKS = {
    "before and after": "cp x-1.txt $0.kept; queen release x-1; rm x-1.txt",
    "in a commit": "git add -A; git commit -qm x; queen release x-1; git reset -q --hard main",
    "in a commit that was left": "git add -A; git commit -qm x; git reset -q --hard main; "
    "git show HEAD@{1}:x-1.txt > $0.kept; queen release x-1",
    "on a branch": "git add -A; git commit -qm x; git branch y; git reset -q --hard main; "
    "queen release x-1",
    "in the stash": "git stash -qu; queen release x-1",
    "in a file that git ignores": "echo x-1.txt >> $(git rev-parse --git-common-dir)/info/exclude; "
    "queen release x-1",
}
BRINGS = {
    "before and after": "cp $0.kept x-1.txt",
    "in a commit": "git show HEAD@{1}:x-1.txt > x-1.txt",
    "in a commit that was left": "cp $0.kept x-1.txt",
    "on a branch": "git cherry-pick -n y",
    "in the stash": "git stash pop",
    "in a file that git ignores": "git add -f x-1.txt; git commit -qm t",
}
LONG = "bad work of some length, as no two files have by chance"


class TestWorkThatWasParked:
    """The worktree is empty when the next issue begins; then what was there is brought back."""

    NEXT = "queen issue new T --id t-1 --priority 0; queen next"

    @pytest.mark.parametrize("how", PARKS)
    def test_does_not_land_under_another_issue(self, judged: Judged, how: str) -> None:
        text = f"{PARKS[how]}\n{self.NEXT}\n{BRINGS[how]}\nqueen land t-1 -m bad"
        tried = judged.tries(f"test -e $0.once && exit 1; touch $0.once\n{text}")
        assert "x-1.txt: just what the work on x-1 has, which has not been judged" in tried

    def test_does_not_land_after_a_second_issue(self, judged: Judged) -> None:
        """What counts is every issue of a run, and not the last one alone."""
        more = "queen issue new U --id t-2 --priority 0; queen next; queen release t-2"
        text = f"{PARKS['before and after']}\n{more}; queen issue new T --id t-1; queen claim t-1"
        text += "; cp $0.kept x-1.txt; queen land t-1 -m bad"
        tried = judged.tries(f"test -e $0.once && exit 1; touch $0.once\n{text}")
        assert "x-1.txt: just what the work on x-1 has, which has not been judged" in tried

    def test_does_not_land_from_the_branch_that_keeps_it(self, judged: Judged) -> None:
        """Of another agent, whose worktree is gone."""
        queen, repo = judged.team.queen, judged.team.repo
        for words in ("claim x-1", "release x-1"):
            assert queen(*words.split(), as_="ann").code == 0
        git(repo, "checkout", "-q", "-b", "unfinished/x-1-ann-2")
        (repo / "x-1.txt").write_text("bad\n")
        git(repo, "add", "x-1.txt")
        git(repo, "commit", "-qm", "x-1")
        git(repo, "checkout", "-q", "main")
        assert queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        text = "git checkout -q unfinished/x-1-ann-2 -- x-1.txt; queen land t-1 -m bad"
        tried = judged.tries(text, "--issues", "t-1")
        assert "x-1.txt: just what the work on x-1 has, which has not been judged" in tried

    @pytest.mark.parametrize("how", ["before and after", "in a commit"])
    def test_does_not_land_under_another_name(self, judged: Judged, how: str) -> None:
        text = f"echo {LONG} > x-1.txt; {PARKS[how]}\n{self.NEXT}\n{BRINGS[how]}\n"
        text += "mv x-1.txt y.txt; queen land t-1 -m bad"
        tried = judged.tries(f"test -e $0.once && exit 1; touch $0.once\n{text}")
        assert "y.txt: just what the work on x-1 has, which has not been judged" in tried

    def test_lands_without_it(self, judged: Judged) -> None:
        back = "queen land t-1 -m bad || queen land t-1 -m bad 2> $0.said || "
        way = "sed -n 's/.*take it back, and commit that: //p' $0.said > $0.way"
        back += f"{{ {way}; sh -e $0.way; queen land t-1 -m t; }}"
        text = f"echo bad > x-1.txt\n{PARKS['before and after']}\n{self.NEXT}\n"
        text += f"cp $0.kept x-1.txt; echo t > t.txt; {back}"
        judged.team.start("amber", "--agent", judged.team.agent(text), "--max-failures", "2")
        assert ("t-1" in judged.team.done(), judged.landed()) == (True, "")

    def test_that_is_short_and_has_another_name_is_none(self, judged: Judged) -> None:
        text = f"echo 1 > x-1.txt\n{PARKS['before and after']}\n{self.NEXT}\n"
        text += "cp $0.kept y.txt; queen land t-1 -m t"
        ran = judged.team.start("amber", "--agent", judged.team.agent(text), "--max-failures", "2")
        assert "t-1" in judged.team.done(), ran

    def test_that_is_empty_or_on_the_main_branch_is_none(self, judged: Judged) -> None:
        main = judged.team.repo
        text = "echo same > same.txt; : > empty.txt; queen release x-1; rm *.txt\n"
        text += f"cp {main}/.git/HEAD {main}/other.txt; echo same > {main}/same.txt\n"
        text += f"(cd {main}; git add *.txt; git commit -qm same)\n{self.NEXT}\n"
        text += ": > empty.txt; echo same > same.txt; echo t > t.txt; queen land t-1 -m t"
        judged.team.start("amber", "--agent", judged.team.agent(text), "--max-failures", "2")
        assert "t-1" in judged.team.done()

    def test_that_is_a_copy_of_what_the_main_branch_had_is_none(self, judged: Judged) -> None:
        main = judged.team.repo
        for name in ("old.txt", "new.txt"):
            (main / name).write_text(f"{name}\n" * 100)  # Not by chance.
        git(main, "add", "--all")
        git(main, "commit", "-qm", "two files")
        text = 'exec >> "$0.tried" 2>&1\n'
        text += "cp old.txt copy.txt; cp new.txt more.txt; git add -A; git commit -qm x\n"
        text += "queen release x-1; git reset -q --hard HEAD~\n"
        text += f"(cd {main}; git rm -q old.txt; git commit -qm less)\n{self.NEXT}\n"
        text += "cp old.txt o.txt; cp new.txt n.txt; echo t > t.txt; queen land t-1 -m t"
        ran = judged.team.start("amber", "--agent", judged.team.agent(text), "--max-failures", "2")
        tried = (judged.team.bin / "agent.tried").read_text()
        assert "t-1" in judged.team.done(), f"{ran.out}{ran.err}{tried}"

    def test_does_not_land_with_the_branch_of_another(self, judged: Judged, tmp_path: Path) -> None:
        """Two wait for a third: the first of them takes the other along."""
        team = judged.team
        team.set("land.check", f"touch {tmp_path}/begun; sleep 4")
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "a check")
        trees = [tmp_path / name for name in ("one", "two")]
        for each in trees:
            git(team.repo, "worktree", "add", "-q", str(each), "-b", each.name)
            (each / f"{each.name}.txt").write_text("x\n")
        text = f"test -e $0.once && exit 1; touch $0.once\n{PARKS['before and after']}\n"
        text += f"{self.NEXT}\ncp $0.kept x-1.txt; touch $0.ready\n"
        text += "until test -e $0.go; do sleep 0.1; done; queen land t-1 -m bad"
        agent = team.agent(f"echo bad > x-1.txt; {text}")
        runs = team.begun("amber", "--agent", agent, "--max-failures", "1")
        team.wait((team.bin / "agent.ready").exists)
        lands = [team.queen.start("land", "-m", "x", as_="one", cwd=trees[0])]
        team.wait((tmp_path / "begun").exists)
        lands.append(team.queen.start("land", "-m", "x", as_="two", cwd=trees[1]))
        (team.bin / "agent.go").touch()
        for each in (*lands, runs):
            each.communicate(timeout=60)
        listed = git(team.repo, "ls-tree", "--name-only", "main").split()
        assert ({"one.txt", "two.txt"} <= {*listed}, "x-1.txt" in listed) == (True, False)


COMMITS = "echo t > t.txt; git add -A; git commit -qm t"


class TestWorkThatIsStillHeld:
    """One agent has the issue with checks; another lands an issue without."""

    def both(self, judged: Judged, holder: str, other: str) -> str:
        """Returns what the other agent was told."""
        team = judged.team
        assert team.queen("issue", "new", "T", "--id", "t-1", as_="lead").code == 0
        wait = "n=0; until test -e $1 || [ $((n += 1)) = 300 ]; do sleep 0.1; done"
        one = f"echo bad > x-1.txt; {holder}\npwd > $0.at; mv $0.at $0.holder\n"
        two = 'exec > "$0.tried" 2>&1; wait_for $0.holder; AT=$(cat $0.holder)\n'
        text = f'wait_for() {{ {wait}; }}\nif [ "$QUEEN_ISSUE" = x-1 ]; then\n{one}'
        text += f"wait_for $0.landed; exit 1\nfi\n{two}{other}\ntouch $0.landed"
        team.start("--size", "2", "--agent", team.agent(text), "--max-failures", "1")
        assert judged.landed() == ""
        return (team.bin / "agent.tried").read_text()

    @pytest.mark.parametrize(
        ("holder", "other"),
        [
            ("git add -A; git commit -qm x", "git merge -q $HEAD"),
            ("git add -A; git commit -qm x", f"{COMMITS}; git merge -q --no-edit $HEAD"),
            (
                f"{COMMITS}; git reset -q --hard main",
                'git -C "$AT" show HEAD@{1}:x-1.txt > x-1.txt',
            ),
            ("true", 'cp "$AT/x-1.txt" .'),
            (f"echo {LONG} > x-1.txt; git add -A", 'cp "$AT/x-1.txt" y.txt'),
            ("git stash -qu", "git stash pop"),
            (
                "echo x-1.txt >> $(git rev-parse --git-common-dir)/info/exclude",
                'cp "$AT/x-1.txt" .; git add -f x-1.txt; git commit -qm t',
            ),
            (
                "git update-index --skip-worktree README.md; mv x-1.txt README.md",
                'cp "$AT/README.md" .',
            ),
        ],
    )
    def test_does_not_land_under_another_issue(
        self, judged: Judged, holder: str, other: str
    ) -> None:
        tried = self.both(
            judged, holder, f'HEAD=$(git -C "$AT" rev-parse HEAD); {other}; queen land t-1 -m b'
        )
        assert "just what the work on x-1 has, which has not been judged" in tried
        assert "t-1" not in judged.team.done()

    @pytest.mark.parametrize("first", ["true", "rm x-1.txt"])
    def test_does_not_count_what_it_took_from_others(self, judged: Judged, first: str) -> None:
        """As the check of several branches does, in the worktree of whoever has the turn."""
        merge = 'git -C "$AT" merge -q --no-edit $(git rev-parse HEAD)'
        other = f"{COMMITS}; sleep 1; {merge}; queen land t-1"
        self.both(judged, f"{first}; git add -A; git commit -qm x", other)
        assert "t-1" in judged.team.done()

    def test_does_not_count_what_was_there_before_it_began(self, judged: Judged) -> None:
        holder = (
            f"mv x-1.txt $0.kept; queen release x-1; sleep 1; {COMMITS}; sleep 2; queen claim x-1\n"
        )
        holder += "mv $0.kept x-1.txt; git add -A; git commit -qm x"
        other = 'git merge -q $(git -C "$AT" rev-parse HEAD~); queen land t-1'
        self.both(judged, holder, other)
        assert "t-1" in judged.team.done()


class TestASprintBead:
    def landed(self, sprints: Sprints) -> str:
        return git(sprints.team.repo, "ls-tree", "-r", "--name-only", "main")

    @pytest.mark.parametrize("first", ["queen release $QUEEN_ISSUE", "true"])
    def test_does_not_land_under_another_issue(self, sprints: Sprints, first: str) -> None:
        develops = f'exec >> "$0.tried" 2>&1; echo evil > evil.txt\n{first}\n'
        develops += "queen issue new T --id t-1; queen claim t-1; queen land t-1 -m bad"
        judges = f"echo '{FAILS}'"
        sprints.start(ONE, "--size", "1", "--max-failures", "4", develops=develops, judges=judges)
        assert "evil.txt" not in self.landed(sprints)

    def test_does_not_land_by_a_merge_of_its_branch(self, sprints: Sprints) -> None:
        """Of a bead of another agent, in one's own worktree, under one's own issue."""
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
        team.issues(1)
        text = f'exec > "$0.tried" 2>&1; git merge -q {made.json["branch"]}; queen land x-1 -m x'
        team.start("amber", "--agent", team.agent(text), "--issues", "x-1", "--max-failures", "1")
        tried = (team.bin / "agent.tried").read_text()
        assert f"the branch of {bead['id']}, which has not been judged" in tried
        assert "evil.txt" not in self.landed(sprints)

    @pytest.mark.parametrize(
        "brings",
        [
            "git cherry-pick -n {branch}",
            "git show {branch}:evil.txt > evil.txt",
            "git merge -q --squash {branch}",
            "git merge -q --no-commit --no-ff {branch}",
        ],
    )
    def test_does_not_land_by_a_copy_of_its_files(self, sprints: Sprints, brings: str) -> None:
        tried = self.tried(sprints, f"{brings}; queen land x-1 -m x")
        assert "which has not been judged" in tried
        assert "evil.txt" not in self.landed(sprints)

    def tried(self, sprints: Sprints, text: str) -> str:
        """Returns what was printed when an agent did this, where another has a bead."""
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
        team.issues(1)
        agent = team.agent('exec > "$0.tried" 2>&1; ' + text.format(branch=made.json["branch"]))
        team.start("amber", "--agent", agent, "--issues", "x-1", "--max-failures", "1")
        return (team.bin / "agent.tried").read_text()

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
