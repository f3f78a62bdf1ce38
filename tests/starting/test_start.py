"""`queen start`: a team of real processes, which land, fail, lie, hang, are killed and stopped."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hives import COMMAND, Ran, commit_file, git
from teams import COUNTS, LIMIT_S, WORKS, Team, runs

from queenbee import Hive
from queenbee.starting import team as teams
from queenbee.starting.clients import CLIENTS
from queenbee.starting.crew import Crew, Wanted
from queenbee.store.droids import roster
from queenbee.store.trust import Trust, of_setting


def at_a_terminal(team: Team, repo: Path, says: str, *arguments: str) -> tuple[int, str]:
    """Starts a team at a terminal at which somebody types; returns its status and all it shows."""
    ours, theirs = pty.openpty()
    env = {**team.queen.environment("lead", None), "TERM": "dumb"}
    command = [*COMMAND, "start", *arguments]
    process = subprocess.Popen(
        command, cwd=repo, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, says.encode())
    shown = b""
    with suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
    return process.wait(timeout=LIMIT_S), shown.decode()


def said(ran: Ran) -> dict[str, Any]:
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


class TestATeam:
    def test_lands_every_issue_once_and_leaves_nothing(self, team: Team) -> None:
        issues = team.issues(5)
        ran = team.start("--agent", team.agent(WORKS), "--size", "3")
        assert ran.code == 0, ran
        assert sorted(team.done()) == issues
        for issue_id, (who,) in team.done().items():
            assert team.content(issue_id) == f"{issue_id} by {who}\n"
        assert git(team.repo, "status", "--porcelain") == ""
        assert team.running() == []
        assert roster.everybody(team.hive().layout) == []
        assert "5 issues in" in ran.out

    def test_removes_its_worktrees_at_its_end_where_a_person_wants_that(
        self, asking: Path, team: Team
    ) -> None:
        team.set("team.prune", "true")
        team.set("land.check", "true")
        commit_file(team.repo, ".gitignore", "*.log\n")
        agent, tree = team.agent("echo > out.log\n" + WORKS), team.repo.parent / "repo-ui"
        team.issues(1)
        Trust(team.hive().layout).forget()  # As if both had come by a pull.
        Trust(team.hive().layout).add(of_setting("land.check", "true"))
        ran = team.start("ui", "--agent", agent)
        assert "the worktrees stay: nobody here has seen team.prune: queen config trust" in ran.out
        assert (tree / "out.log").exists()
        assert team.queen("config", "trust", "--yes").code == 0
        assert team.queen("issue", "new", "more", "--id", "x-2", as_="lead").code == 0
        ran = team.start("ui", "--agent", agent)
        assert ran.code == 0, ran
        assert "repo-ui: all of it has landed; gone with it, ignored by git: out.log" in ran.out
        assert not tree.exists()

    def test_gives_a_program_the_briefing_and_the_issue(self, team: Team) -> None:
        team.issues(1)
        agent = team.agent(WORKS)
        assert team.start("ui", "--agent", agent).code == 0
        briefing = Path(f"{agent}.said.x-1").read_text()
        assert "x-1 is still yours: issue 1" in briefing

    def test_gives_a_program_what_queen_next_prints(self, team: Team) -> None:
        team.issues(1)
        edit = ("issue", "edit", "x-1", "--description", "all of\nit", "--acceptance", "it works")
        assert team.queen(*edit, as_="lead").code == 0
        agent = team.agent('queen next > "$0.next"\n' + WORKS)
        assert team.start("ui", "--agent", agent).code == 0
        briefing = Path(f"{agent}.said.x-1").read_text()
        assert briefing == Path(f"{agent}.next").read_text()
        assert "it works" in briefing

    def test_gives_a_program_its_mail_once(self, team: Team) -> None:
        team.issues(2)
        said = ("msg", "send", "ui", "round half up", "--new")
        assert team.queen(*said, as_="lead").code == 0
        agent = team.agent(WORKS)
        assert team.start("ui", "--agent", agent).code == 0
        briefings = [Path(f"{agent}.said.x-{n}").read_text() for n in (1, 2)]
        assert [each.count("round half up") for each in briefings] == [1, 0]
        assert "round half up" not in team.queen("msg", "inbox", "--unread", as_="ui").out

    def test_uses_the_worktree_that_an_agent_has(self, team: Team) -> None:
        team.issues(1)
        place = team.repo.parent / "elsewhere"
        assert team.queen("worktree", "add", "ui", "--path", str(place)).code == 0
        assert team.start("ui", "--agent", team.agent("pwd > where\n" + WORKS)).code == 0
        assert (team.repo / "where").read_text().strip() == str(place)

    def test_leaves_alone_what_somebody_assigned_beside_them(self, team: Team) -> None:
        team.issues(2)
        assert team.queen("issue", "assign", "x-1", "ui", "--new", as_="eve").code == 0
        ran = team.start("ui", "--agent", team.agent(WORKS), "--issues", "x-2")
        assert (ran.code, ran.out.count("ui leaves x-1 alone, which it has")) == (0, 1), ran
        assert team.done() == {"x-2": ["ui"]}
        assert [each.issue_id for each in team.hive().assignments.find(droid="ui")] == ["x-1"]

    def test_does_only_the_issues_that_are_named(self, team: Team) -> None:
        team.issues(3)
        ran = team.start("ui", "--agent", team.agent(WORKS), "--issues", "x-2")
        assert ran.code == 0, ran
        assert sorted(team.done()) == ["x-2"]

    def test_is_shown_by_status(self, team: Team) -> None:
        team.issues(1)
        go = team.repo.parent / "go"
        waits = f"until [ -e {go} ]; do sleep 0.1; done\n"
        running = team.begun("ui", "--agent", team.agent(waits + WORKS))
        team.wait(team.running)
        shown = team.queen("status", as_="lead")
        report = team.queen("report", "--format", "md", as_="lead")
        go.touch()
        running.communicate(timeout=LIMIT_S)
        assert "ui is run by queen start" in shown.out
        assert "working x-1" in shown.out
        assert "- `ui (agent): working x-1, 0 landed`" in report.out
        report = team.queen("report", "--format", "md", as_="lead")
        assert ": ui (agent) 1`" in report.out
        assert "ui (agent): " not in report.out
        assert "ui (agent) (seen " in team.queen("status", as_="lead").out

    def test_passes_on_once_what_an_agent_asks_a_person(self, team: Team) -> None:
        team.issues(2)
        asks = "[ -e ../asked ] || queen msg send human 'Which currency?'\ntouch ../asked\n"
        ran = team.start("ui", "--agent", team.agent(asks + WORKS))
        assert ran.code == 0, ran
        asked = "ui wrote to you: “Which currency?”: queen answer "
        during, at_the_end = ran.out.split(f"not answered yet: {asked}")
        assert during.count(asked) == 1, ran
        short = at_the_end[:4]
        assert at_the_end == f"{short} 'YOUR ANSWER'\n"
        assert team.queen("answer", short, "Euros").code == 0
        (team.repo / "../asked").touch()
        team.queen("issue", "new", "One more", as_="lead")
        assert "not answered yet" not in team.start("ui", "--agent", team.agent(WORKS)).out

    def test_says_why_an_agent_does_not_begin(self, team: Team) -> None:
        team.issues(2)
        program = "from queenbee.starting import limits; limits._MOST_LOAD = -1.0; "
        program += "from queenbee.cli.main import main; main()"
        words = ("start", "ui", "api", "--as", "lead", "--agent", team.agent(WORKS))
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=team.repo, env=team.queen.environment(None, None), check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done
        waits = "api waits for memory or load while others work: the load is "
        assert done.stdout.count(waits) == 1
        assert ", more than -" in done.stdout
        assert sorted(team.done()) == ["x-1", "x-2"]

    def test_only_one_runs_at_a_time(self, team: Team) -> None:
        team.issues(1)
        running = team.begun("ui", "--agent", team.agent("sleep 3\n" + WORKS))
        team.wait(team.running)
        second = team.start("ui", "--agent", team.agent("sleep 3\n" + WORKS))
        running.communicate(timeout=LIMIT_S)
        assert second.code == 6
        assert "a team is already at work here" in second.err

    def test_ends_when_what_is_left_waits_for_somebody_else(self, team: Team) -> None:
        team.issues(2)
        assert team.queen("claim", "x-1", as_="lead").code == 0
        ran = team.start("ui", "--agent", team.agent(WORKS))
        assert ran.code == 1
        assert sorted(team.done()) == ["x-2"]
        assert "waits for something that this team does not do" in ran.out
        assert "x-1 is left: lead has it; if lead is gone: queen release x-1 --as lead" in ran.out

    @pytest.mark.thorough
    def test_runs_the_checks_of_a_ralph_bead(self, team: Team) -> None:
        team.issues(1)
        check = {"name": "good", "command": "grep good x-1.txt || { echo no good; exit 1; }"}
        bead = {"id": "x-1", "title": "one", "intent": "write", "dod": {"verifiers": [check]}}
        (team.repo / ".beads" / "active").mkdir(parents=True, exist_ok=True)
        (team.repo / ".beads" / "active" / "x-1.json").write_text(json.dumps(bead))
        repairs = '[ "$QUEEN_ATTEMPT" = 1 ] && WORD=bad || WORD=good\n'
        ran = team.start("ui", "--agent", team.agent(repairs + 'echo "$WORD" > "$FILE"\n'))
        assert ran.code == 0, ran
        assert team.content("x-1") == "good\n"
        assert "it begins x-1 again" in ran.out

    def test_lands_nothing_past_the_checks_of_its_issue(self, team: Team) -> None:
        team.issues(1)
        check = {"name": "good", "command": "grep good x-1.txt"}
        bead = {"id": "x-1", "title": "one", "intent": "write", "dod": {"verifiers": [check]}}
        (team.repo / ".beads" / "active").mkdir(parents=True, exist_ok=True)
        (team.repo / ".beads" / "active" / "x-1.json").write_text(json.dumps(bead))
        sneaks = (
            'echo bad > "$FILE"; exec >> "$0.refused" 2>&1\n'
            'queen land -m sneaky --as other; echo "status $?"\n'
            'queen release x-1 --reason sneaky\nqueen land -m sneaky; echo "status $?"\n'
        )
        ran = team.start("ui", "--agent", team.agent(sneaks))
        assert ran.code == 1, ran
        said = (team.bin / "agent.refused").read_text()
        assert "other lands nothing from it" in said
        assert "whose checks have not passed" in said
        assert said.count("status 5") == said.count("status "), said
        assert team.content("x-1") == ""
        assert "sneaky" not in git(team.repo, "log", "--format=%s", "main")


class TestAnAgentThatFails:
    def test_by_a_kill_is_at_work_again_at_once(self, team: Team) -> None:
        team.issues(1)
        kills = '[ "$QUEEN_ATTEMPT" = 1 ] && echo half > "$FILE" && kill -9 $$\n'
        begun_s = time.monotonic()
        ran = team.start("ui", "--agent", team.agent(kills + 'rm "$FILE"\n' + WORKS))
        assert ran.code == 0, ran
        assert time.monotonic() - begun_s < 30
        assert team.content("x-1") == "x-1 by ui\n"
        assert "it begins x-1 again" in ran.out

    def test_three_times_gives_the_issue_back_with_its_work_on_a_branch(self, team: Team) -> None:
        team.issues(2)
        fails = '[ "$QUEEN_ISSUE" = x-1 ] && echo half > "$FILE" && echo why && exit 3\n'
        ran = team.start("ui", "--agent", team.agent(fails + WORKS))
        assert ran.code == 1
        assert sorted(team.done()) == ["x-2"]
        assert "ui: it ended with status 3, after “why”; it begins x-1 again" in ran.out
        assert git(team.repo, "show", "unfinished/x-1-ui:x-1.txt") == "half\n"
        assert git(team.repo.parent / "repo-ui", "status", "--porcelain") == ""
        assert "x-1" in ran.out.splitlines()[-1]
        shown = team.queen("status", as_="lead")
        asked = f"x-1 was given back by ui: “{team.hive().issues.get('x-1').title}”"
        assert f"for a person: {asked}: queen show x-1" in shown.out
        assert shown.out.count("given back") == 1
        assert asked in team.queen("msg", "notify", "--once", as_="human").out
        assert "without a landing: it ended with status 3" in team.queen("show", "x-1").out
        assert " queen (seen" not in shown.out
        found = team.queen("next", as_="lead")
        assert "given back by ui" in found.out
        assert "given back" not in team.queen("status", as_="lead").out
        assert "git merge" not in found.out + ran.out
        assert "git diff main...unfinished/x-1-ui shows it" in found.out
        git(team.repo, "diff", "main...unfinished/x-1-ui")
        way = "queen worktree add NAME x-1 --branch unfinished/x-1-ui"
        assert ran.out.count(way) == 1
        assert "x-1: ui gave it back: 3 ends without a landing: it ended with status 3" in ran.out
        assert "its output: queen start --logs ui" in ran.out
        assert "unfinished landing" not in team.queen("start", "--logs", "ui", as_="lead").out
        assert team.queen("release", "x-1", as_="lead").code == 0
        made = team.queen(*way.replace("NAME", "bo").split()[1:], as_="lead")
        assert made.code == 0, made
        at = team.repo.parent / "repo-bo"
        assert (at / "x-1.txt").read_text() == "half\n"
        assert team.queen("land", "x-1", "-m", "done", as_="bo", cwd=at).code == 0
        assert sorted(team.done()) == ["x-1", "x-2"]
        git(team.repo, "branch", "unfinished/x-1-ui-2", "main")
        git(team.repo, "branch", "unfinished/x-9-ui", "main")
        assert team.queen("worktree", "remove", "repo-bo", as_="lead").code == 0
        told = team.queen("doctor", "--json", as_="lead").json
        (found,) = [each for each in told if each["code"] == "outlived"]
        way = found["hint"].partition(": ")[2]
        git(team.repo, *way.split()[1:])
        assert git(team.repo, "branch", "--list", "unfinished/*") == "  unfinished/x-9-ui\n"

    @pytest.mark.parametrize("who", ["nobody", "a person"])
    @pytest.mark.parametrize("end", ["landed", "closed"])
    def test_leaves_a_branch_that_only_goes_if_its_issue_landed_and_nobody_added_to_it(
        self, team: Team, end: str, who: str
    ) -> None:
        team.issues(1)
        fails = team.agent('echo half > "$FILE"; exit 3\n')
        assert team.start("ui", "--agent", fails).code == 1
        kept = "unfinished/x-1-ui"
        at = team.repo.parent / "at"
        if who == "a person":
            git(team.repo, "worktree", "add", "-q", str(at), kept)
            commit_file(at, "more.txt", "more\n")
            git(team.repo, "worktree", "remove", str(at))
        if end == "closed":
            assert team.queen("issue", "close", "x-1", "--reason", "no", as_="human").code == 0
        else:
            assert team.start("bo", "--agent", team.agent(WORKS)).code == 0
        told = team.queen("doctor", "--json", as_="lead").json
        (found,) = [each for each in told if each["code"] == "outlived"]
        if (end, who) == ("landed", "nobody"):
            assert found["hint"] == f"if nothing in them is needed: git branch -D {kept}"
        else:
            assert found["hint"] == f"git log main..{kept}"
            assert "landed since" not in str(found)
            assert git(team.repo, *found["hint"].split()[1:])

    def test_goes_on_as_long_as_it_commits_up_to_the_limit_and_keeps_the_commits(
        self, team: Team
    ) -> None:
        team.issues(1)
        commits = 'echo more >> "$FILE"; git add -A; git commit -qm more; exit 3\n'
        ran = team.start("ui", "--agent", team.agent(commits), "--max-failures", "4")
        assert ran.code == 1
        assert team.content("x-1") == ""
        assert len(git(team.repo, "show", "unfinished/x-1-ui:x-1.txt").splitlines()) >= 4
        assert "--max-failures" in ran.out

    def test_that_claims_to_be_done_is_not_believed(self, team: Team) -> None:
        team.issues(1)
        ran = team.start("ui", "--agent", team.agent("echo done\n"))
        assert ran.code == 1
        assert team.done() == {}
        assert "it made nothing; it begins x-1 again" in ran.out

    def test_at_once_on_two_issues_ends_with_both_given_back(self, team: Team) -> None:
        team.issues(4)
        ran = team.start("ui", "--agent", team.agent('echo >> "$0.runs"; echo no; exit 2\n'))
        assert ran.code == 1
        assert runs(team) == 4  # Three times on the first one, once on the second one.
        assert "ui ended early: the command does not work: it ended with status 2" in ran.out
        assert "after “no”; its output: queen start --logs ui" in ran.out
        assert "x-2: ui gave it back: the command does not work" in ran.out
        assert not any(each.droid for each in team.hive().assignments.find(status="active"))

    def test_of_which_a_message_kept_the_work_from_landing_has_the_answer(self, team: Team) -> None:
        team.issues(1)
        says = 'queen msg send ui "answer $(wc -l < "$0.runs")" --issue x-1 --as bo --new\n'
        agent = team.agent(f'{COUNTS}[ $(wc -l < "$0.runs") -gt 4 ] || {says}{WORKS}')
        ran = team.start("ui", "--agent", agent, "--max-failures", "1")
        assert (ran.code, runs(team)) == (0, 5), ran
        assert "answer 4" in (team.bin / "agent.said.x-1").read_text()

    def test_at_once_ends_all_that_have_the_same_command(self, team: Team) -> None:
        team.issues(5)
        program = team.agent('echo >> "$0.runs"; [ $QUEEN_ISSUE = x-1 ] && sleep 6; exit 2\n')
        ran = team.start("ui", "api", "bo", "--agent", program)
        assert ran.code == 1
        assert runs(team) <= 5
        assert ran.out.count("ended early: the command does not work") == 3

    def test_gets_what_failed(self, team: Team) -> None:
        team.issues(1)
        team.set("land.check", "[ ! -e x-1.txt ] || [ -e ok ] || { echo no ok here; exit 1; }")
        git(team.repo, "commit", "-qam", "a check")
        repairs = 'grep -q "no ok here" "$QUEEN_FAILURES_FILE" && touch ok\n'
        ran = team.start("ui", "--agent", team.agent(repairs + WORKS))
        assert ran.code == 0, ran
        assert (team.repo / "ok").exists()

    def test_by_silence_is_stopped_and_begins_again(self, team: Team) -> None:
        team.issues(1)
        team.set("quiet_after", "1s")
        team.set("answer_within", "1s")
        hangs = '[ "$QUEEN_ATTEMPT" = 1 ] && sleep 1000\n'
        ran = team.start("ui", "--agent", team.agent(hangs + WORKS))
        assert ran.code == 0, ran
        assert "it was silent for" in ran.out

    def test_by_taking_its_own_log_away_ends_and_its_issue_goes_back(self, team: Team) -> None:
        team.issues(1)
        log = roster.log_path(team.hive().layout, "ui")
        ran = team.start("ui", "--agent", team.agent(f"rm -f {log}; mkfifo {log}; exit 3\n"))
        assert ran.code == 1, ran
        assert "cannot be started" in ran.out
        assert len(team.hive().assignments.find(issue_id="x-1", status="released")) == 1

    def test_leaves_nothing_running(self, team: Team) -> None:
        team.issues(1)
        note = team.bin / "pid"
        ran = team.start(
            "ui", "--agent", team.agent(f"env -i sleep 1000 & echo $! > {note}\n" + WORKS)
        )
        assert ran.code == 0, ran
        stat = Path("/proc", note.read_text().strip(), "stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"

    def test_by_giving_an_issue_back_does_not_get_it_again(self, team: Team) -> None:
        team.issues(1)
        gives_up = 'echo >> "$0.runs"; queen release "$QUEEN_ISSUE" --reason "cannot be done"\n'
        ran = team.start("--agent", team.agent(gives_up), "--size", "3")
        assert ran.code == 1
        assert (team.bin / "agent.runs").read_text() == "\n\n"
        assert ran.out.count("amber gave x-1 back: cannot be done") == 1
        assert "it ended before everything was done: issues were given back" in ran.out

    def test_by_giving_issues_back_meets_the_limit_of_failures(self, team: Team) -> None:
        team.issues(4)
        gives_up = 'queen release "$QUEEN_ISSUE" --reason "cannot be done"\n'
        ran = team.start("ui", "--agent", team.agent(gives_up), "--max-failures", "2")
        assert len(team.hive().assignments.find(status="released")) == 2
        assert "--max-failures 2 is reached" in ran.out

    def test_has_the_next_run_leave_alone_what_failed_where_others_landed(self, team: Team) -> None:
        team.issues(2)
        fails = team.agent(f'{COUNTS}[ "$QUEEN_ISSUE" = x-1 ] && exit 3\n{WORKS}')
        assert team.start("ui", "--agent", fails).code == 1
        before = runs(team)
        left = "x-1 is left alone: ui gave it back, and nobody has changed it since"
        for _ in range(2):  # Not only the next run.
            ran = team.start("ui", "--agent", fails)
            assert (ran.code, ran.out.count(left), runs(team)) == (1, 2, before)
        named = team.start("ui", "--agent", fails, "--issues", "x-1")
        assert (named.code, left in named.out, runs(team)) == (1, False, before + 3)
        assert left in team.start("ui", "--agent", fails).out
        assert runs(team) == before + 3
        team.queen("msg", "send", "ui", "use the other file", "--issue", "x-1", as_="human")
        assert team.start("ui", "--agent", team.agent(COUNTS + WORKS)).code == 0
        assert sorted(team.done()) == ["x-1", "x-2"]

    def test_has_the_next_run_try_all_again_if_nothing_landed(self, team: Team) -> None:
        team.issues(1)
        assert team.start("ui", "--agent", team.agent("exit 3\n")).code == 1
        assert team.start("ui", "--agent", team.agent(WORKS)).code == 0

    def test_twice_by_two_agents_is_left_to_people(self, team: Team) -> None:
        team.issues(1)
        ran = team.start("--agent", team.agent("exit 3\n"), "--size", "3")
        assert ran.code == 1
        assert len(team.hive().assignments.find(issue_id="x-1", status="released")) == 2


class TestWithoutAHive:
    def test_it_offers_to_make_one_at_a_terminal(self, team: Team, tmp_path: Path) -> None:
        for name, says in (("no", "n\n"), ("yes", "y\n-\n")):
            repo = tmp_path / name
            repo.mkdir()
            git(repo, "init", "-q")
            git(repo, "commit", "-q", "--allow-empty", "-m", "begin")
            status, shown = at_a_terminal(team, repo, says, "--agent", "/bin/true", "--size", "1")
            assert "There is no hive here" in shown
            assert (repo / ".beads").exists() == (name == "yes")
        assert (status, "to check nothing: queen config set land.check true" in shown) == (2, True)

    def test_outside_git_it_makes_nothing(self, team: Team, tmp_path: Path) -> None:
        repo = tmp_path / "outside"
        repo.mkdir()
        status, shown = at_a_terminal(team, repo, "y\n", "--agent", "/bin/true", "--size", "1")
        assert (status, "this is not a git repository" in shown) == (2, True), shown
        assert os.listdir(repo) == []

    def test_it_names_the_command_elsewhere(self, team: Team, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q", "none")
        ran = team.queen("start", "--agent", "true", as_="lead", cwd=tmp_path / "none")
        assert ran.code == 4
        assert "queen init" in ran.err


class TestItsEnd:
    def test_one_interrupt_lets_all_finish(self, team: Team) -> None:
        team.issues(4)
        running = team.begun("--agent", team.agent("sleep 2\n" + WORKS), "--size", "2")
        team.wait(lambda: len(team.running()) == 2)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 1
        assert len(team.done()) == 2, out
        assert "ended by Ctrl-C" in out

    def test_commits_the_records_of_a_person_without_a_name(self, team: Team) -> None:
        team.issues(1)
        ran = team.queen("start", "ui", "--agent", team.agent("exit 3"))
        assert ran.code == 1, ran
        assert ran.err == ""
        assert "left: x-1; see: queen issues" in ran.out
        assert git(team.repo, "status", "--porcelain") == ""

    def test_two_interrupts_stop_all_within_ten_seconds(self, team: Team) -> None:
        team.issues(2)
        stubborn = 'trap "" TERM INT; sleep 1000 & wait; sleep 1000\n'
        # Without `exec`, the shell around it would end, and all of its group with it.
        running = team.begun("--agent", f"exec {team.agent(stubborn)}", "--size", "2")
        team.wait(lambda: len(team.running()) == 2)
        running.send_signal(signal.SIGINT)
        time.sleep(1.5)
        begun_s = time.monotonic()
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
        assert time.monotonic() - begun_s < 10
        assert team.running() == []
        assert team.done() == {}

    def test_looks_after_no_further_agent_once_all_are_to_stop(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is begun for each may take a second on a busy machine."""
        agents = [SimpleNamespace(is_over=False) for _ in range(3)]
        interrupts = SimpleNamespace(count=0)
        looked_after: list[SimpleNamespace] = []

        def tick(agent: SimpleNamespace) -> None:
            looked_after.append(agent)
            interrupts.count = 2

        monkeypatch.setattr(teams.Team, "__init__", lambda self: None)
        looks = ("_leave_alone", "_reason_to_end", "_ask_for_unseen", "_pass_on")
        for name in (*looks, "_stop", "_is_stuck"):
            monkeypatch.setattr(teams.Team, name, lambda self, *asked: None)
        monkeypatch.setattr(teams.Team, "_tick", lambda self, agent: tick(agent))
        crew: Any = teams.Team()  # type: ignore[call-arg]
        crew.workers, crew._wanted = agents, SimpleNamespace(until_done=True)
        why = crew._look_after(interrupts, lambda _team: None)
        assert why.code == "stopped"
        assert looked_after == agents[:1]

    def test_says_whose_an_issue_still_is_and_counts_what_landed_last(self, team: Team) -> None:
        team.issues(2)
        # The second one lands while the team is stopped, before anybody looks at it again.
        lands = 'trap "" TERM; echo 1 > "$FILE"; queen land -m one; touch landed; sleep 1000\n'
        waits = f"case $QUEEN_ISSUE in x-1) {lands[:-1]};; *) sleep 1000;; esac\n"
        agent = f"exec {team.agent(waits)}"
        running = team.begun("ui", "api", "--agent", agent)
        team.wait(lambda: (team.repo.parent / "repo-ui" / "landed").exists())
        running.send_signal(signal.SIGINT)
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=LIMIT_S)
        assert "1 issue in" in out
        assert "ui (program) 1, api (program) 0" in out
        assert f"x-2 is still api's: queen start api --agent '{agent}' goes on with it" in out
        assert "queen release x-2 --as api gives it back" in out
        assert team.start("api", "--agent", team.agent(WORKS)).code == 0
        assert team.done()["x-2"] == ["api"]

    def test_a_killed_one_is_taken_over_by_the_next(self, team: Team) -> None:
        team.issues(2)
        gate = team.bin / "gate"
        waits = f"while [ ! -e {gate} ]; do sleep 0.1; done\n"
        agent = team.agent(waits + WORKS)
        running = team.begun("--agent", agent, "--size", "2")
        team.wait(lambda: len(team.running()) == 2)
        running.kill()
        running.communicate(timeout=LIMIT_S)
        before = {each.name: each.process for each in roster.everybody(team.hive().layout)}
        assert sorted(before) == ["amber", "birch"]
        running = team.begun("--agent", agent)
        team.wait(
            lambda: all(each.is_looked_after for each in roster.everybody(team.hive().layout))
        )
        time.sleep(1)
        after = {each.name: each.process for each in roster.everybody(team.hive().layout)}
        gate.touch()
        out, _ = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0, out
        assert after == before
        assert sorted(team.done()) == ["x-1", "x-2"]
        assert all(len(each) == 1 for each in team.done().values())

    def test_what_a_dead_agent_of_a_killed_one_left_running_ends_too(self, team: Team) -> None:
        team.issues(1)
        note = team.bin / "pid"
        first = f"[ -e {note} ] || {{ env -i sleep 1000 & echo $! > {note}; sleep 1000; }}\n"
        agent = team.agent(first + WORKS)
        running = team.begun("--agent", agent, "--size", "1")
        team.wait(lambda: note.exists() and note.read_text().strip())
        running.kill()
        running.communicate(timeout=LIMIT_S)
        (entry,) = roster.everybody(team.hive().layout)
        os.kill(int(entry.process.split(" ")[1]), signal.SIGKILL)
        ran = team.start("--agent", agent)
        assert ran.code == 0, ran
        stat = Path("/proc", note.read_text().strip(), "stat")
        assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"

    @pytest.mark.some(1)
    @pytest.mark.parametrize(
        ("option", "value"), [("--max-issues", "1"), ("--max-minutes", "0.03")]
    )
    def test_limits_end_it(self, team: Team, option: str, value: str) -> None:
        team.issues(3)
        ran = team.start("ui", "--agent", team.agent("sleep 1\n" + WORKS), option, value)
        assert ran.code == 1
        assert f"{option} {value} is reached" in ran.out
        assert 1 <= len(team.done()) < 3


_RESULT = (
    '{"type": "result", "total_cost_usd": 0.25, "usage": {"input_tokens": 40, '
    '"cache_creation_input_tokens": 5, "cache_read_input_tokens": 35, "output_tokens": 20, '
    '"service_tier": "standard"}}'
)
"""What Claude Code 2.1.330 ends with, in part."""
CLIENT = f"""\
printf '%s\\n' "$@" > "$0.$(date +%s%N)"
echo '{_RESULT}'
queen next > /dev/null
echo done > "$QUEEN_ISSUE.txt"
queen land -m 'my work' --next
"""


class TestAClient:
    def calls(self, team: Team, client: str = "claude") -> list[list[str]]:
        return [each.read_text().splitlines() for each in sorted(team.bin.glob(f"{client}.*"))]

    def test_is_started_with_a_prompt_and_no_permission(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        ran = team.start("ui", "--agent", "claude")
        assert ran.code == 0, ran
        (words,) = self.calls(team)
        assert words[0] == "-p"
        assert "queen land -m" in words[1]
        assert not any("dangerous" in each for each in words)
        assert "0.25 USD" in ran.out

    def test_costs_what_it_says_by_issue_and_agent(self, team: Team) -> None:
        team.issues(3)
        team.program(
            "claude",
            f"echo '{_RESULT}'\nqueen next > /dev/null\n"
            "for n in 1 2; do echo $n > $n.txt; queen land -m 'my work' --next; done\n",
        )
        team.program("codex", CLIENT.replace(_RESULT, "tokens used\n1,234"))
        assert team.start("ui", "--agent", "claude", "--issues", "x-1", "--issues", "x-2").code == 0
        assert team.start("api", "--agent", "codex").code == 0
        status = json.loads(team.quick("status", "--json").out)
        keys = ("issue_id", "droid", "cost_usd", "tokens")
        found = [[each[key] for key in keys] for each in status["spent"]]
        assert sorted(found[:-1]) == [["x-1", "ui", 0.125, 50], ["x-2", "ui", 0.125, 50]]
        assert found[-1] == ["x-3", "api", 0, 1234]
        told = team.quick("report", "--format", "md").out
        assert "| `x-3` | `api` | 0.00 | 1,234 |" in told
        assert "| `x-1` | `ui` | 0.12 | 50 |" in told

    def test_leaves_an_issue_that_has_cost_too_much_and_goes_on(self, team: Team) -> None:
        team.issues(2)
        team.program(
            "claude",
            f"echo '{_RESULT}'\nqueen next > /dev/null\n[ \"$QUEEN_ISSUE\" = x-2 ] || exit 1\n"
            "echo done > x-2.txt\nqueen land -m 'my work'\n",
        )
        ran = team.start("ui", "--agent", "claude", "--max-issue-cost", "0.4")
        assert ran.code == 1, ran
        assert team.done() == {"x-2": ["ui"]}
        reached = "it has cost 0.50 USD: --max-issue-cost 0.4 is reached"
        assert f"x-1: ui gave it back: {reached}" in ran.out
        assert "is left" not in ran.out
        again = team.start("api", "--agent", "claude", "--max-issue-cost", "0.4")
        assert again.code == 1
        assert "takes x-1" not in again.out
        assert f"x-1 is left: {reached}" in again.out

    @pytest.mark.thorough
    def test_that_lands_several_issues_is_told_with_all_of_them(self, team: Team) -> None:
        team.issues(2)
        second = 'echo 2 > 2.txt; queen land -m "the second" --next\n'
        team.program("claude", CLIENT + second)
        ran = team.start("ui", "--agent", "claude")
        assert ran.code == 0, ran
        assert "ui landed x-1" in ran.out
        assert "x-2; issues so far: 2" in ran.out

    def test_that_takes_one_after_the_other_is_told_of_a_limit_while_it_works(
        self, team: Team
    ) -> None:
        team.issues(4)
        more = "sleep 3; echo 2 > 2.txt; queen land -m 'one more' --next >> \"$0.said\"\n"
        team.program("claude", CLIENT + more + more)
        ran = team.start("ui", "--agent", "claude", "--max-issues", "1")
        assert len(team.hive().assignments.find(status="completed")) == 2
        assert "ui landed x-1; issues so far: 1" in ran.out
        assert "Nothing is left for you" in (team.bin / "claude.said").read_text()

    def test_that_is_refused_a_permission_says_how_to_give_it(self, team: Team) -> None:
        team.issues(1)
        denied = '{"type": "result", "permission_denials": [{"tool_name": "Bash"}]}'
        team.program("claude", f"echo '{denied}'\n")
        ran = team.start("ui", "--agent", "claude")
        assert (
            "ui gives x-1 back: it made nothing; it was refused a permission: queen start --yolo"
            in ran.out
        )
        assert "again" not in ran.out

    def test_gets_no_login_shell_that_would_not_find_queen(self, team: Team) -> None:
        team.program("codex", CLIENT)
        profile = team.bin.parent / ".profile"
        team.queen.env |= {"HOME": str(profile.parent), "SHELL": "/bin/sh"}
        for path in ("/usr/bin:/bin", f"{team.bin}:/usr/bin:/bin"):
            profile.write_text(f"PATH={path}\n")
            assert team.queen("issue", "new", "another", as_="lead").code == 0
            assert team.start("ui", "--agent", "codex").code == 0
        first, second = self.calls(team, "codex")
        assert first[:3] == ["exec", "-c", "allow_login_shell=false"]
        assert "-c" not in second

    def test_prints_events_of_which_the_words_and_calls_are_followed(self, team: Team) -> None:
        team.issues(1)
        said = {"type": "text", "text": "I look."}
        call = {"type": "tool_use", "name": "Bash", "input": {"command": "ls", "description": "x"}}
        odd = [1, {"type": "tool_use", "input": {}}, {"type": "text"}]
        events = (
            {"type": "system", "tools": ["Bash"]},
            {"type": "assistant", "message": {"content": [said, call, *odd]}},
            {"type": "user", "message": {"content": [said]}},
            {"type": "assistant", "message": "no list"},
        )
        lines = [*(json.dumps(each) for each in events), '{"a": 1}', "[1]", "{no json"]
        shown = "".join(f"echo '{each}'\n" for each in lines)
        team.program("claude", shown + CLIENT)
        assert team.start("ui", "--agent", "claude").code == 0
        out = team.queen("start", "--logs", "ui", as_="lead").out
        began, _, out = out.partition("\n")
        assert re.fullmatch(r"--- queen start, 20\S+Z ---", began)
        wanted = 'I look.\nBash: ls\nNone: \n{"a": 1}\n[1]\n{no json\n'
        assert out.startswith(wanted)

    def test_is_followed_in_its_last_run(self, team: Team) -> None:
        team.issues(2)
        for word, issue in (("first", "x-1"), ("second", "x-2")):
            assert (
                team.start(
                    "ui", "--agent", team.agent(f"echo {word}\n" + WORKS), "--issues", issue
                ).code
                == 0
            )
        log = Path(roster.log_path(team.hive().layout, "ui"))
        for is_full in (False, True):
            if is_full:
                log.rename(f"{log}.1")
                log.write_text("third\n")
            followed = team.queen("start", "--logs", "ui", as_="lead")
            assert f"what it printed in earlier runs: {log}\n" in followed.err
            began, shown, *rest = followed.out.splitlines()
            assert (began[:16], shown) == ("--- queen start,", "second")
            assert (rest[-1] == "third") == is_full
        Path(f"{log}.1").unlink()
        followed = team.queen("start", "--logs", "ui", as_="lead")
        assert (followed.out, followed.err) == ("third\n", "")

    @pytest.mark.thorough
    def test_takes_turns_with_another(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", "exit 1\n")
        team.program("codex", "exit 1\n")
        ran = team.start("--agent", "codex,claude", "--size", "3", "--max-failures", "1")
        assert "amber (codex) 0, birch (claude) 0, cedar (codex) 0" in ran.out

    def test_is_told_of_before_it_begins_if_it_can_do_nothing_here(self, team: Team) -> None:
        team.issues(2)
        team.program("codex", CLIENT)
        edits = "ignored by Codex: every edit without a screen: the project is not trusted"
        hooks = "ignored by Codex: hooks and the MCP server: the project is not trusted"
        ran = team.start("ui", "--agent", "codex", "--max-issues", "1")
        assert ran.out.index(edits) < ran.out.index("ui takes x-1")
        assert hooks in ran.out
        ran = team.start("ui", "--agent", "codex", "--yolo")
        assert edits not in ran.out
        assert hooks in ran.out

    @pytest.mark.parametrize("says", ["y", "n", ""])
    def test_does_everything_only_if_the_person_at_the_terminal_says_so(
        self, team: Team, says: str
    ) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        status, shown = at_a_terminal(team, team.repo, f"{says}\n", "ui", "--agent", "claude")
        assert "Let them do everything, as --yolo does?" in shown
        if says == "y":
            (words,) = self.calls(team)
            assert "--dangerously-skip-permissions" in words
        else:
            assert (status, self.calls(team)) == (2, [])
            assert (
                "queen setup claude --allow; then queen start ui --agent claude --args OPTIONS"
                in shown
            )

    def test_gets_what_the_user_says(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        assert team.start("ui", "--agent", "claude", "--yolo", "--args", "--model big").code == 0
        (words,) = self.calls(team)
        assert words[:3] == ["--model", "big", "--dangerously-skip-permissions"]

    def test_of_the_settings_runs(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        team.set("team.agents", "ui=claude")
        team.program("codex", "exit 1\n")
        assert team.start("ui").code == 0
        assert len(self.calls(team)) == 1

    @pytest.mark.parametrize("session", ["--dangerously-skip-permissions", "-x", "a b"])
    def test_gets_no_option_in_place_of_a_session(self, session: str) -> None:
        assert session not in CLIENTS["claude"].command("go", session=session)

    def test_of_the_settings_is_never_a_program(self, team: Team, tmp_path: Path) -> None:
        team.issues(1)
        team.set("team.agents", f"ui=touch {tmp_path / 'ran'}")
        ran = team.start("ui")
        assert (ran.code, "which is no client" in ran.err) == (2, True)
        assert not (tmp_path / "ran").exists()

    def test_gets_no_options_that_only_a_clone_gives(self, asking: Path, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        settings = team.repo / ".beads" / "queen.toml"
        text = settings.read_text()
        settings.write_text(f'{text}[team]\nargs = ["--dangerously-skip-permissions"]\n')
        ran = team.start("ui", "--agent", "claude", "--json")
        assert (ran.code, ran.error["code"]) == (5, "untrusted")
        assert ran.error["commands"][0]["text"] == "--dangerously-skip-permissions"
        assert self.calls(team) == []

    def test_opens_in_the_terminal(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT + "pwd > where; echo 'asks you'\n")
        ran = team.start("--interactive", "--agent", "claude", "--args", "--model big")
        assert ran.code == 0, ran
        assert "asks you" in ran.out
        assert (team.repo.parent / "repo-amber" / "where").exists()
        (words,) = self.calls(team)
        assert words[:2] == ["--model", "big"]
        assert "Nobody answers" not in words[2]
        assert "-p" not in words

    def test_opens_several_in_windows(self, team: Team) -> None:
        team.issues(1)
        team.program("claude", CLIENT)
        both = ("ui", "api", "--interactive", "--agent", "claude")
        team.program("tmux", 'echo "$1 $@" >> "$0.said"\n')
        assert team.start(*both).code == 0
        lines = (team.bin / "tmux.said").read_text().splitlines()
        assert [each.split()[0] for each in lines] == ["new-session", "new-window", "attach"]
        assert f"-napi -c{team.repo.parent}/repo-api -- env -u QUEEN_DROID" in lines[1]

    def test_that_is_not_installed_is_refused(self, team: Team) -> None:
        team.issues(1)
        team.queen.env["PATH"] = f"{team.bin}{os.pathsep}/usr/bin{os.pathsep}/bin"
        ran = team.start("ui", "--agent", "opencode")
        assert ran.code == 8
        assert "opencode is not on the PATH" in ran.err
        assert team.start("ui", "--agent", "cloude").code == 2
        program = team.bin / "nothere.sh"
        refused = team.start("ui", "--agent", str(program))
        assert (refused.code, f"there is no {program}" in refused.err) == (2, True)
        program.write_text("true\n")
        refused = team.start("ui", "--agent", str(program))
        assert (refused.code, "is no program that can be run" in refused.err) == (2, True)
        (team.repo / "agent.sh").write_text("")
        refused = team.start("ui", "--agent", "agent.sh")
        assert (refused.code, "is a file here, and not on the PATH" in refused.err) == (2, True)
        assert f"queen start ui --no-trial --agent {team.repo}/agent.sh" in refused.err
        refused = team.start("ui", "--agent", "COMMAND")
        assert (refused.code, "no program on the PATH" in refused.err) == (2, True)
        refused = team.start("ui", "--agent", "cloud.sh.py --yes")
        assert (refused.code, "no program on the PATH" in refused.err) == (2, True)

    def test_that_forgets_its_work_goes_on_with_its_session(self, team: Team) -> None:
        team.issues(1)
        team.install_hook()
        event = '{"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": "%s"}'
        begins = f"printf '{event}' \"$PWD\" | queen-hook"
        forgets = f'case "$*" in *--resume*) ;; *) {begins}; sleep 1; exit 1;; esac\n'
        notes, rest = CLIENT.split("\n", 1)
        team.program("claude", f"{notes}\n{forgets}{rest}")
        ran = team.start("ui", "--agent", "claude")
        assert ran.code == 0, ran
        first, second = self.calls(team)
        assert "--resume" not in first
        assert second[second.index("--resume") + 1] == "s-1"
        assert "x-1 in hand" in second[1]


@pytest.mark.parametrize("size", [1, 8, 32, 64])
def test_a_team_of_any_size_has_names(repo: Path, beads: Path, size: int) -> None:
    with Hive.open(repo, droid="person") as hive:
        crew = Crew(hive, Wanted(agent="true", size=size), env={}, tell=print)
        assert len(set(crew.names())) == size
