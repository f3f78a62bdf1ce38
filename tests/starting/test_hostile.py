"""`queen start` with agents and files that are broken, or mean harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hives import git
from teams import LIMIT_S, WORKS, Team

from queenbee.store.droids import roster

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


def is_alive(pid: int) -> bool:
    stat = Path("/proc", str(pid), "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def impatient(team: Team) -> None:
    team.set("quiet_after", "1s")
    team.set("answer_within", "1s")


class TestARoster:
    @pytest.mark.parametrize("place", ["elsewhere/pid:[1]", ""])
    def test_of_another_machine_ends_nothing_here(self, team: Team, place: str) -> None:
        team.issues(1)
        impatient(team)
        assert team.queen("worktree", "add", "ui").code == 0
        layout, path = team.hive().layout, str(team.repo.parent / "repo-ui")
        os.makedirs(roster.folder(layout), exist_ok=True)
        with subprocess.Popen(["sleep", "1000"], start_new_session=True) as bystander:
            said = {"process": f"{place} {bystander.pid} 1", "path": path, "state": "working"}
            roster.write(layout, roster.Entry("ui", said))
            ran = team.start("ui", "--agent", team.agent(WORKS))
            ended = bystander.poll()
            bystander.kill()
        assert ran.code == 0, ran
        assert ended is None
        assert sorted(team.done()) == ["x-1"]

    @pytest.mark.some(1)
    @pytest.mark.parametrize("torn", ["{", "[]", '{"process": 7, "path": [], "only": 3}', "\0"])
    def test_that_is_torn_is_none(self, team: Team, torn: str) -> None:
        team.issues(1)
        folder = Path(roster.folder(team.hive().layout))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ui.json").write_text(torn)
        assert team.start("ui", "--agent", team.agent(WORKS)).code == 0
        assert sorted(team.done()) == ["x-1"]


class TestAnAgent:
    @pytest.mark.some(2)
    @LINUX
    @pytest.mark.parametrize("ignores", ["", 'trap "" TERM; '])
    @pytest.mark.parametrize("how", ["setsid", "env -i setsid setsid", "(env -i setsid setsid"])
    def test_that_leaves_its_group_leaves_nothing_running(
        self, team: Team, ignores: str, how: str
    ) -> None:
        team.issues(1)
        note = team.bin / "pid"
        stays = team.program("stays", f"{ignores}echo $$ > {note}; sleep 1000; sleep 1000\n")
        waits = f"while [ ! -s {note} ]; do sleep 0.1; done\n"
        begins = f"{how} {stays} &" + ")" * how.count("(")
        ran = team.start("ui", "--agent", team.agent(f"{begins}\n{waits}{WORKS}"))
        assert ran.code == 0, ran
        assert not is_alive(int(note.read_text()))

    @LINUX
    @pytest.mark.parametrize("how", ["env -i", "setsid"])
    def test_that_kills_its_minder_leaves_nothing_running(self, team: Team, how: str) -> None:
        team.issues(1)
        note, once = team.bin / "pid", team.bin / "once"
        stays = team.program("stays", f"echo $$ > {note}; sleep 1000; sleep 1000\n")
        first = f"touch {once}; {how} {stays} & until [ -s {note} ]; do sleep 0.1; done\n"
        kills = f"[ -e {once} ] || {{ {first} kill -9 $PPID; sleep 1000; }}\n"
        ran = team.start("ui", "--agent", f"exec {team.agent(kills + WORKS)}")
        assert ran.code == 0, ran
        assert "it was ended by SIGKILL; it begins x-1 again" in ran.out
        assert not is_alive(int(note.read_text()))

    def test_that_stops_its_minder_is_ended_when_it_is_silent(self, team: Team) -> None:
        team.issues(1)
        impatient(team)
        once = team.bin / "once"
        first = f'touch {once}; trap "" TERM; while :; do kill -STOP $PPID; sleep 0.01; done\n'
        stops = f"[ -e {once} ] || {{ {first} }}\n"
        ran = team.start("ui", "--agent", f"exec {team.agent(stops + WORKS)}")
        assert ran.code == 0, ran

    def test_that_floods_takes_no_more_of_the_disk_than_its_bound(self, team: Team) -> None:
        team.issues(1)
        log = Path(roster.log_path(team.hive().layout, "ui"))
        floods = "yes | head -c 200000000\necho the end\n"
        running = team.begun("ui", "--agent", team.agent(floods + WORKS))
        most_bytes = 0
        while running.poll() is None:
            size = sum(map(size_of, (f"{log}.1", str(log))))
            most_bytes = max(most_bytes, size)
        running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0
        assert 2**25 < most_bytes <= 2**26 + 2**10
        assert b"\nthe end\n" in log.read_bytes()[-4096:]

    def test_that_floods_is_followed_over_the_cut(self, team: Team) -> None:
        team.issues(1)
        gate = team.bin / "gate"
        waits = f"echo first; until [ -e {gate} ]; do sleep 0.1; done\n"
        floods = f"yes {'y' * 9_999} | head -c 50000000\necho the end\n"
        running = team.begun("ui", "--agent", team.agent(waits + floods + WORKS))
        log = Path(roster.log_path(team.hive().layout, "ui"))
        team.wait(lambda: log.exists() and b"first" in log.read_bytes())
        following = team.queen.start("start", "--logs", "ui", as_="lead")
        assert following.stdout is not None
        assert following.stdout.readline().startswith("--- queen start, ")
        assert following.stdout.readline() == "first\n"
        gate.touch()
        assert "the end\n" in following.stdout
        following.communicate(timeout=LIMIT_S)
        running.communicate(timeout=LIMIT_S)
        assert running.returncode == 0

    @LINUX
    def test_that_a_killed_run_had_not_noted_ends(self, team: Team) -> None:
        team.issues(1)
        env = {**os.environ, "QUEEN_TEAM_LOG": roster.log_path(team.hive().layout, "ui")}
        with subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True) as unnoted:
            is_there = f'grep -q ") Z" /proc/{unnoted.pid}/stat || exit 3\n'
            ran = team.start("ui", "--agent", team.agent(is_there + WORKS))
            unnoted.kill()
        assert ran.code == 0, ran
        assert "it begins x-1 again" not in ran.out

    def test_writes_nowhere_by_a_link(self, team: Team) -> None:
        team.issues(1)
        mine = team.bin / "mine"
        mine.write_text("mine\n")
        end = f"{roster.log_path(team.hive().layout, 'ui')}.end"
        ran = team.start("ui", "--agent", team.agent(f"ln -s {mine} {end}\n{WORKS}"))
        assert ran.code == 0, ran
        assert mine.read_text() == "mine\n"

    def test_that_puts_a_link_in_place_of_the_folder_of_logs_writes_nothing_there(
        self, team: Team
    ) -> None:
        team.issues(1)
        mine = team.bin / "mine"
        mine.mkdir()
        folder = roster.folder(team.hive().layout)
        swaps = f"[ -L {folder} ] || {{ mv {folder} {folder}.old; ln -s {mine} {folder}; }}\n"
        team.start("ui", "--agent", team.agent(f"{swaps}{WORKS}"))
        assert os.listdir(mine) == []

    def test_that_ignores_signals_holds_nobody_up(self, team: Team) -> None:
        team.issues(4)
        impatient(team)
        stubborn = team.agent('trap "" TERM INT; sleep 1000; sleep 1000; sleep 1000\n')
        running = team.begun("--agent", f"exec {stubborn}", "--size", "4")
        team.wait(lambda: len(team.running()) == 4)
        time.sleep(3.5)  # Now they are being stopped.
        running.send_signal(signal.SIGINT)
        running.send_signal(signal.SIGTERM)
        begun_s = time.monotonic()
        running.communicate(timeout=LIMIT_S)
        assert time.monotonic() - begun_s < 10
        assert team.running() == []
        assert team.done() == {}


class TestTrouble:
    def test_three_times_in_a_row_ends_an_agent_which_says_why(self, team: Team) -> None:
        team.issues(2)
        spoils = 'rm -f "$QUEEN_FAILURES_FILE"; mkdir "$QUEEN_FAILURES_FILE"; exit 3\n'
        ran = team.start("ui", "--agent", team.agent(spoils))
        assert ran.code == 1, ran
        failures = f"{roster.folder(team.hive().layout)}/ui.failures"
        assert ran.out.count("tried again in 5 s") == 2
        assert ran.out.count(f"ui ends: [Errno 21] Is a directory: '{failures}'") == 1
        assert f"ui ended early: [Errno 21] Is a directory: '{failures}'" in ran.out
        assert "it ended before everything was done: agents ended early" in ran.out
        assert "x-1 is still ui's" in ran.out

    def test_of_one_agent_that_cannot_begin_is_not_the_others(self, team: Team) -> None:
        team.issues(1)
        (team.repo.parent / "repo-ui").mkdir()
        (team.repo.parent / "repo-ui" / "mine").touch()
        ran = team.start("ui", "api", "--json", "--agent", team.agent(WORKS))
        assert ran.code == 0, ran
        assert team.done() == {"x-1": ["api"]}
        (reason,) = ran.json["reasons"]
        assert (reason["code"], reason["agent"]) == ("not_begun", "ui")
        assert "repo-ui exists already" in reason["text"]

    @pytest.mark.some(1)
    @pytest.mark.parametrize("name", ["failures", "briefing"])
    def test_is_no_link_in_place_of_a_file_of_the_team(self, team: Team, name: str) -> None:
        team.issues(1)
        mine, once = team.bin / "mine", team.bin / "once"
        mine.write_text("mine\n")
        file = f"{roster.folder(team.hive().layout)}/ui.{name}"
        links = f"touch {once}; ln -sf {mine} {file}; exit 3"
        agent = team.agent(f"[ -e {once} ] || {{ {links}; }}\n{WORKS}")
        ran = team.start("ui", "--agent", agent)
        assert ran.code == 0, ran
        assert mine.read_text() == "mine\n"

    def test_in_the_way_of_every_landing_gives_no_issue_back(self, team: Team) -> None:
        team.issues(3)
        git(team.repo, "checkout", "-qb", "other")
        git(team.repo, "commit", "-q", "--allow-empty", "-m", "other")
        git(team.repo, "checkout", "-q", "main")
        merges = f"git -C {team.repo} merge -q --no-ff --no-commit other 2> /dev/null"
        ran = team.start("ui", "--agent", team.agent(f"{merges}\n{WORKS}"))
        assert ran.code == 1, ran
        assert "MERGE_HEAD exists" in ran.out
        assert ran.out.count("x-1 waits to land: ") == 2  # Once, and at the end.
        assert "x-1 is still ui's" in ran.out
        assert team.hive().assignments.find(status="released") == []

    def test_with_the_records_at_the_end_does_not_hide_what_was_done(self, team: Team) -> None:
        team.issues(1)
        program = "import errno; from queenbee.starting import team\n"
        program += "def fails(*_, **__): raise OSError(errno.ENOSPC, 'full')\n"
        program += "team.commit_records = fails\n"
        program += "from queenbee.cli.main import main; main()"
        words = ("start", "ui", "--as", "lead", "--agent", team.agent(WORKS))
        done = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=team.repo, env=team.queen.environment(None, None), check=False,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 7, done
        assert "1 issue in" in done.stdout


class TestAPlace:
    @pytest.mark.some(1)
    @pytest.mark.parametrize("name", ["../ui", "a/b", ".git", "ui\n"])
    def test_is_no_path_out_of_a_name(self, team: Team, name: str) -> None:
        team.issues(1)
        before = sorted(os.listdir(team.repo.parent))
        assert team.start("--agent", team.agent(WORKS), "--", name).code == 2
        assert sorted(os.listdir(team.repo.parent)) == before
        assert team.done() == {}

    @pytest.mark.some(1)
    @pytest.mark.parametrize("what", ["worktree", "state"])
    def test_is_no_link(self, team: Team, what: str) -> None:
        team.issues(1)
        outside = team.repo.parent / "outside"
        outside.mkdir()
        link = team.repo.parent / "repo-ui"
        if what == "state":
            link = Path(roster.folder(team.hive().layout))
        link.symlink_to(outside)
        assert team.start("ui", "--agent", team.agent(WORKS)).code != 0
        assert list(outside.iterdir()) == []
