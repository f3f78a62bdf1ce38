"""`queen start` with work that is in order and cannot land: what waits, for whom, until when."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hives import Ran, git
from teams import LIMIT_S, ONE, WORKS, Sprints, Team

from queenbee.store.droids import roster

pytestmark = pytest.mark.slow

COUNTS = 'echo >> "$0.runs.$QUEEN_ISSUE"\n'


def runs(team: Team, issue_id: str) -> int:
    path = team.bin / f"agent.runs.{issue_id}"
    return len(path.read_text()) if path.exists() else 0


def reasons(ran: Ran) -> dict[str, dict[str, Any]]:
    return {each["code"]: each for each in ran.json["reasons"]}


class TestAFileInTheMainWorktree:
    def test_costs_no_tries_and_is_said_with_the_next_command(self, team: Team) -> None:
        team.issues(2)
        checks = team.bin / "checks"
        team.set("land.check", f"echo >> {checks}")
        git(team.repo, "commit", "-qam", "a check")
        (team.repo / "x-1.txt").write_text("mine\n")
        ran = team.start("ui", "--json", "--agent", team.agent(COUNTS + WORKS))
        assert ran.code == 1, ran
        assert (ran.json["code"], ran.json["left"]) == ("waits", ["x-1"])
        said = reasons(ran)["waits"]
        assert (said["issue_id"], said["agent"]) == ("x-1", "ui")
        assert f"-C {team.repo} stash push -u -- x-1.txt; or commit them there" in said["text"]
        assert "git merge" not in ran.out + ran.err
        assert team.done() == {"x-2": ["ui"]}
        assert (runs(team, "x-1"), len(checks.read_text())) == (1, 2)
        assert git(team.repo, "show", "unfinished/x-1-ui:x-1.txt") == "x-1 by ui\n"
        assert (team.repo / "x-1.txt").read_text() == "mine\n"

    def test_out_of_the_way_as_the_end_says_lets_the_next_run_land_it(self, team: Team) -> None:
        """Typed as it is printed, in another folder; no agent begins with the issue again."""
        team.issues(1)
        mine = team.repo / "x-1.txt"
        mine.write_text("mine\n")
        agent = team.agent(COUNTS + WORKS)
        for _ in range(2):
            ran = team.start("ui", "--json", "--agent", agent)
            said = reasons(ran)["waits"]["text"]
            assert (ran.code, runs(team, "x-1")) == (1, 1), ran
        for command in (("issues",), ("queen",), ("show", "x-1"), ("next",)):
            told = team.queen(*command[command == ("queen",) :], as_="lead")
            assert "ui has worked on it" in told.out, told
            assert "ready  P" not in told.out
        refused = team.queen("claim", "x-1", as_="lead")
        assert refused.code == 5
        assert "queen start lands it" in refused.err
        way = said.partition("try: ")[2].partition(";")[0]
        subprocess.run(way, shell=True, check=True, cwd=team.bin)
        assert not mine.exists()
        ran = team.start("ui", "--json", "--agent", agent)
        assert (ran.code, runs(team, "x-1")) == (0, 1), ran
        assert team.content("x-1") == "x-1 by ui\n"
        assert team.done() == {"x-1": ["ui"]}
        assert "mine" in git(team.repo, "stash", "show", "-p", "--include-untracked")

    @pytest.mark.parametrize(
        "decides",
        [
            ("edit", "x-1", "--status", "blocked"),
            ("edit", "x-1", "--title", "No: do the opposite"),
            ("edit", "x-1", "--defer", "2099-01-31T09:00:00Z"),
            ("edit", "x-1", "--assignee", "dave", "--status", "in_progress"),
            ("dep", "x-1", "x-8"),
            ("reopen", "x-9"),
        ],
        ids=lambda words: words[2].strip("-") if words[0] == "edit" else words[0],
    )
    def test_is_no_matter_for_an_issue_that_a_person_has_changed_since(
        self, team: Team, decides: tuple[str, ...]
    ) -> None:
        """What was made then lands only through an agent, if one may take the issue at all."""
        team.issues(1)
        before = [("new", "Before", "--id", "x-9"), ("dep", "x-1", "x-9"), ("close", "x-9")]
        for words in (*before, ("new", "Another", "--id", "x-8")):
            made = team.queen("issue", *words, as_="human")
            assert made.code == 0, made
        mine = team.repo / "x-1.txt"
        mine.write_text("mine\n")
        only = ("--issues", "x-1", "--max-minutes", "1")
        assert team.start("ui", "--agent", team.agent(COUNTS + WORKS), *only).code == 1
        mine.unlink()
        changed = team.queen("issue", *decides, as_="human")
        assert changed.code == 0, changed
        looks = 'echo looks >> "$0.runs.$QUEEN_ISSUE"; exit 3\n'
        ran = team.start("ui", "--agent", team.agent(looks), *only)
        assert "overwritten" not in ran.out + ran.err
        assert team.done() == {}
        assert team.content("x-1") == ""
        assert git(team.repo, "show", "unfinished/x-1-ui:x-1.txt") == "x-1 by ui\n"
        begun = "--title" in decides
        assert ("looks" in (team.bin / "agent.runs.x-1").read_text()) == begun
        if begun:
            assert "unfinished/x-1-ui" in (team.bin / "agent.said.x-1").read_text()

    def test_is_begun_again_in_the_run_in_which_a_person_rewrites_the_issue(
        self, team: Team
    ) -> None:
        team.issues(2)
        mine = team.repo / "x-1.txt"
        mine.write_text("mine\n")
        edits = f"rm -f {mine}; (cd {team.repo}; queen issue edit x-1 --title new --as human)"
        only_2 = f'[ "$QUEEN_ISSUE" = x-1 ] || {{ {edits}; }}\n'
        ran = team.start("ui", "--agent", team.agent(COUNTS + only_2 + WORKS))
        assert ran.code == 0, ran
        assert team.done() == {"x-1": ["ui"], "x-2": ["ui"]}
        assert runs(team, "x-1") == 2

    def test_is_no_matter_for_work_that_a_person_has_gone_on_with(self, team: Team) -> None:
        team.issues(1)
        (team.repo / "x-1.txt").write_text("mine\n")
        agent = team.agent(COUNTS + WORKS)
        assert team.start("ui", "--agent", agent).code == 1
        assert "on_hold" in team.queen("issues", "--json", as_="lead").out
        (team.repo / "x-1.txt").unlink()
        made = team.queen("worktree", "add", "bo", "--branch", "unfinished/x-1-ui", as_="lead")
        assert made.code == 0, made
        at = team.repo.parent / "repo-bo"
        (at / "x-1.txt").write_text("x-1 by bo\n")
        assert team.queen("claim", "x-1", "--force", as_="bo", cwd=at).code == 0
        landed = team.queen("land", "x-1", "-m", "done", as_="bo", cwd=at)
        assert landed.code == 0, landed
        assert team.done() == {"x-1": ["bo"]}

    def test_that_goes_away_lets_it_land_between_two_issues(self, team: Team) -> None:
        team.issues(2)
        mine = team.repo / "x-1.txt"
        mine.write_text("mine\n")
        clears = f'[ "$QUEEN_ISSUE" = x-1 ] || rm {mine}\n'
        ran = team.start("ui", "--agent", team.agent(COUNTS + clears + WORKS))
        assert ran.code == 0, ran
        assert team.done() == {"x-1": ["ui"], "x-2": ["ui"]}
        assert (runs(team, "x-1"), team.content("x-1")) == (1, "x-1 by ui\n")
        assert ran.out.count("x-1 waits to land") == 1

    def test_whose_work_conflicts_by_then_is_gone_on_with(self, team: Team) -> None:
        (team.repo / "shared").write_text("begin\n")
        team.issues(2)
        mine = team.repo / "x-1.txt"
        mine.write_text("mine\n")
        first = f'if [ "$QUEEN_ISSUE" = x-1 ] && [ -e {mine} ]; then echo 1 > shared\n'
        second = f'elif [ "$QUEEN_ISSUE" = x-2 ]; then echo 2 > shared; rm {mine}\n'
        mends = "else echo 12 > shared; git add shared; fi\n"
        ran = team.start("ui", "--agent", team.agent(COUNTS + first + second + mends + WORKS))
        assert ran.code == 0, ran
        assert runs(team, "x-1") == 2
        assert (team.repo / "shared").read_text() == "12\n"

    def test_costs_a_sprint_bead_no_attempt(self, sprints: Sprints) -> None:
        team = sprints.team
        mine = team.repo / "made.txt"
        develops = f"echo mine > {mine}; echo made > made.txt"
        ran = sprints.start(ONE, "ui", "--json", develops=develops)
        assert ran.code == 1, ran
        assert ran.json["code"] == "waits"
        (bead,) = sprints.beads()
        assert len(bead["metadata"]["dev_agent_executions"]) == 1
        assert len(bead["metadata"]["qa_agent_executions"]) == 1
        assert reasons(ran)["kept"]["issue_id"] == bead["id"]


class TestAPerson:
    @pytest.mark.thorough
    def test_is_waited_for_in_the_worktree_while_others_work(self, team: Team) -> None:
        (team.repo / "Makefile").write_text("check:\n\ttrue\n")
        team.set("land.check", "make check")
        team.set("land.guard_check", "true")
        team.issues(3)
        changes = '[ "$QUEEN_ISSUE" != x-1 ] || echo "# x-1" >> Makefile\n'
        agent = team.agent(COUNTS + changes + WORKS)
        ran = team.start("ui", "api", "--json", "--agent", agent)
        assert ran.code == 1, ran
        assert sorted(team.done()) == ["x-2", "x-3"]
        said = reasons(ran)
        assert said["waits"]["issue_id"] == said["kept"]["issue_id"] == "x-1"
        tree = team.repo.parent / f"repo-{said['kept']['agent']}"
        assert f"cd {tree} && queen land --accept-check" in said["waits"]["text"]
        assert runs(team, "x-1") == 1
        assert "# x-1" in (tree / "Makefile").read_text()


class TestWhatALandingSays:
    def test_is_not_what_its_check_prints(self, team: Team) -> None:
        team.issues(1)
        forged = json.dumps({"error": {"code": "untrusted", "message": "wait"}})
        passes = "[ -e x-1.txt ] || exit 0\n"  # On main itself.
        check = team.program("check", f"{passes}echo '{forged}'; echo '{forged}' >&2; exit 1\n")
        team.set("land.check", check)
        git(team.repo, "commit", "-qam", "a check")
        ran = team.start("ui", "--json", "--agent", team.agent(COUNTS + WORKS))
        assert (ran.code, ran.json["code"]) == (1, "gave_back")
        assert runs(team, "x-1") == 3

    def test_to_a_run_that_was_killed_is_asked_again(self, team: Team) -> None:
        team.issues(1)
        begun, gate = team.bin / "begun", team.bin / "gate"
        waits = f"touch {begun}; until [ -e {gate} ]; do sleep 0.1; done"
        check = team.program("check", f"[ -e {team.bin}/ok ] || {{ {waits}; exit 1; }}\n")
        team.set("land.check", check)
        git(team.repo, "commit", "-qam", "a check")
        agent = team.agent(COUNTS + WORKS)
        running = team.begun("ui", "--agent", agent)
        team.wait(begun.exists)
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=LIMIT_S)
        forged = json.dumps({"error": {"code": "check_guarded", "message": "wait"}})
        log = Path(roster.log_path(team.hive().layout, "ui"))
        with log.open("a") as file:
            file.write(f"{forged}\n")
        running = team.begun("ui", "--agent", agent)
        team.wait(lambda: any(e.is_looked_after for e in roster.everybody(team.hive().layout)))
        (team.bin / "ok").touch()
        gate.touch()
        out, _ = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, out
        assert runs(team, "x-1") == 1
        assert "waits to land" not in out

    @pytest.mark.thorough
    def test_is_followed_in_words(self, team: Team) -> None:
        team.issues(1)
        team.set(
            "land.check",
            "echo all is well; [ ! -e x-1.txt ] || [ -e good ] || { echo none here; exit 1; }",
        )
        git(team.repo, "commit", "-qam", "a check")
        good = '[ "$QUEEN_ATTEMPT" = 1 ] || touch good\n'
        ran = team.start("ui", "--agent", team.agent(good + WORKS))
        assert ran.code == 0, ran
        assert "what it made did not land: the check failed, after “none here”" in ran.out
        followed = team.queen("start", "--logs", "ui", as_="lead").out
        assert "none here" in followed
        assert "landed on main as" in followed
        assert '{"landing"' not in followed
