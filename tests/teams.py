"""A repository in which `queen start` runs teams of `sh` agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import postgres_server
from hives import COMMAND, Queen, QuickQueen, Ran, git

from queenbee import Hive
from queenbee.store.droids import roster
from queenbee.store.layout import discover
from queenbee.store.trust import Trust

LIMIT_S = 60.0

ONE = "## Phase 1: A\n\n### Sprint 1.1: Setup\n- Create the project\n"
PASSES = '{"status": "pass", "message": "fine"}'

_SITE = """import os, pwd
os.getloadavg = lambda: (0, 0, 0)
of_user = pwd.getpwuid
pwd.getpwall = lambda: [pwd.struct_passwd((*of_user({uid})[:5], {home!r}, ""))]
pwd.getpwuid = lambda uid: pwd.getpwall()[0] if uid == {uid} else of_user(uid)
"""
"""However busy this machine is, all agents of a test begin; and their teams are noted in a home of
their own, which no variable moves.
"""

WORKS = 'echo "$QUEEN_ISSUE by $QUEEN_DROID" >> "$FILE"\n'
COUNTS = 'echo >> "$0.runs"\n'


def runs(team: Team) -> int:
    """Returns how many agents that count have run."""
    return len((team.bin / "agent.runs").read_text())


def waits(ran: Ran) -> str:
    """Returns why a run that ended has left its issue, which waits."""
    assert (ran.code, ran.json["code"], ran.json["left"]) == (1, "waits", ["x-1"]), ran
    said = {each["code"]: each for each in ran.json["reasons"]}
    assert (said["kept"]["issue_id"], said["kept"]["agent"]) == ("x-1", "ui")
    return str(said["waits"]["text"])


class Team:
    """A repository with issues and a check, and what runs agents in it."""

    def __init__(self, repo: Path, tmp_path: Path) -> None:
        self.repo = repo
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        words = " ".join(f"'{each}'" for each in COMMAND)
        path = os.pathsep.join([str(self.bin), *sys.path])
        self.program("queen", f'PYTHONPATH="{path}" exec {words} "$@"\n')
        self.queen = Queen(repo)
        self.home = tmp_path / "home"
        self.home.mkdir()
        (self.bin / "sitecustomize.py").write_text(
            _SITE.format(home=str(self.home), uid=os.getuid())
        )
        self.queen.env = {
            "PYTHONPATH": os.pathsep.join([str(self.bin), os.environ.get("PYTHONPATH", "")]),
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "QUEEN_DURABILITY": "buffered",
        }
        self.quick = QuickQueen(repo)
        self.quick.env = {"QUEEN_DURABILITY": "buffered"}
        if Trust(discover(str(repo), {})).asks_nothing:  # No variable says so to agents.
            git(repo, "config", "queenbee.trust", "all")
        self.set("land.check", "true")

    def program(self, name: str, text: str) -> str:
        """Returns the path of a shell script."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
        return str(path)

    def agent(self, text: str) -> str:
        """Returns the command of an agent, which knows the file of its issue."""
        return self.program(
            "agent", f'cat > "$0.said.$QUEEN_ISSUE"\nFILE="$QUEEN_ISSUE.txt"\n{text}'
        )

    def install_hook(self) -> None:
        """Has clients find `queen-hook`."""
        hook = "from queenbee.hook.main import main; main()"
        path = f'PYTHONPATH="{os.pathsep.join(sys.path)}"'
        self.program("queen-hook", f"{path} exec {sys.executable} -c '{hook}'\n")

    def set(self, name: str, value: str) -> None:
        assert self.quick("config", "set", name, value).code == 0

    def issues(self, count: int) -> list[str]:
        """Makes issues and commits them."""
        for number in range(1, count + 1):
            made = self.quick("issue", "new", f"issue {number}", "--id", f"x-{number}", as_="lead")
            assert made.code == 0, made
        git(self.repo, "add", "--all")
        git(self.repo, "commit", "-qm", "issues")
        return [f"x-{number}" for number in range(1, count + 1)]

    def start(self, *arguments: str, as_: str = "lead", tries: bool = False) -> Ran:
        """Runs a team; without what it tries first, which has tests of its own."""
        trial = () if tries or "--interactive" in arguments else ("--no-trial",)
        return self.queen("start", *trial, *arguments, as_=as_)

    def begun(self, *arguments: str, tries: bool = False) -> subprocess.Popen[str]:
        trial = () if tries else ("--no-trial",)
        return self.queen.start("start", *trial, *arguments, as_="lead")

    def hive(self) -> Hive:
        return Hive.open(self.repo, env=postgres_server.environment())

    def done(self) -> dict[str, list[str]]:
        """Returns who completed each issue, each completion once."""
        found: dict[str, list[str]] = {}
        for each in self.hive().assignments.find(status="completed"):
            found.setdefault(each.issue_id, []).append(each.droid)
        return found

    def content(self, issue_id: str) -> str:
        """Returns the file of an issue on the main branch, or "" without one."""
        path = self.repo / f"{issue_id}.txt"
        return path.read_text() if path.exists() else ""

    def running(self) -> list[str]:
        """Returns the processes of agents that run."""
        entries = roster.everybody(self.hive().layout)
        return [each.name for each in entries if each.is_alive]

    def wait(self, what: Any) -> None:
        until_s = time.monotonic() + LIMIT_S
        while not what():
            assert time.monotonic() < until_s
            time.sleep(0.05)


class Sprints:
    """Plans, and an agent with one part that develops and one that judges."""

    def __init__(self, team: Team) -> None:
        self.team = team
        git(team.repo, "add", "--all")
        git(team.repo, "commit", "-qm", "begin")

    def start(self, plan: str, *options: str, develops: str = "", judges: str = "") -> Ran:
        (self.team.repo / "plan.md").write_text(plan)
        git(self.team.repo, "add", "--all")
        git(self.team.repo, "commit", "-qm", "plan")
        agent = self.agent(develops, judges)
        return self.team.start("--plan", "plan.md", "--agent", agent, *options)

    def agent(self, develops: str = "", judges: str = "") -> str:
        develops = develops or 'echo "$QUEEN_ISSUE" > "$QUEEN_ISSUE.txt"'
        judges = judges or f"echo '{PASSES}'"
        return self.team.program(
            "agent",
            'SAID="$0.$QUEEN_STEP.$QUEEN_ISSUE.$QUEEN_ATTEMPT"; cat > "$SAID"; env > "$SAID.env"\n'
            f'if [ "$QUEEN_STEP" = develop ]; then\n{develops}\nelse\n{judges}\nfi\n',
        )

    def beads(self) -> list[dict[str, Any]]:
        """Returns the rows of the tracker, in the order of the plan."""
        self.team.quick("issue", "export")
        lines = (self.team.repo / ".beads" / "issues.jsonl").read_text().splitlines()
        rows = {row["id"]: row for row in map(json.loads, lines)}
        found = [each for each in rows.values() if "sprint" in each.get("metadata", {})]
        return sorted(found, key=lambda each: each["metadata"]["sprint"])

    def said(self, step: str, attempt: int = 1, *, ending: str = "") -> str:
        """Returns what an agent got for the first bead."""
        issue = self.beads()[0]["id"]
        return (self.team.bin / f"agent.{step}.{issue}.{attempt}{ending}").read_text()
