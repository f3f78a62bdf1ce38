"""What `queen start` takes of the machine, how it shares the work, and how soon it stops.

    python -m bench.started [--agents 32] [--issues 200] [--busy 16]

Each agent thinks for a second and writes a file; `queen start` commits, checks and lands it. The
processor time is that of all processes together, per issue beyond the first ones, which also make
the worktrees. Then a team is stopped by two Ctrl-C while so many processes keep the machine busy.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from bench import processes, results
from bench.results import TIMES, Row
from bench.scale import QUEEN, repository, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

_THINKS = 'cat > /dev/null\nsleep 1\necho x > "done-$QUEEN_ISSUE.txt"\n'
_SLEEPS = "cat > /dev/null\necho x > begun\nexec sleep 600\n"
_SPINS = "while True: pass"
_GOAL_S = 0.3
_START = (
    *(sys.executable, "-c"),
    (
        "import sys; from queenbee.starting import limits; limits._MOST_LOAD = 1e9; "
        "from queenbee.cli.main import main; main()"
    ),
)
"""Whatever else runs here must not hold the agents up."""


class Team:
    """A repository with issues and a check, and a program that stands for an agent."""

    def __init__(self, folder: str, agents: int, issues: int, agent: str) -> None:
        self.repo = repository(folder).repo
        self.agents = agents
        path = os.path.join(self.repo, ".beads", "issues.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for number in range(issues):
                file.write(
                    f'{{"id": "qb-{number}", "title": "Issue {number}", "status": "open"}}\n'
                )
        seconds([*QUEEN, "config", "set", "land.check", "true"], self.repo)
        program = os.path.join(folder, "agent.sh")
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{agent}")
        os.chmod(program, 0o755)
        self._words = ("start", "--agent", program, f"--size={agents}")

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Starts the team."""
        environment = {**os.environ, "PATH": f"{os.path.dirname(QUEEN[0])}:{os.environ['PATH']}"}
        return subprocess.Popen(
            [*_START, *self._words, *more],
            cwd=self.repo,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *more: str) -> tuple[float, float, str]:
        """Runs it to its end: its seconds, its processor time, and the last it says."""
        processes.adopt()
        begun, before_s = time.monotonic(), processes.spent()
        said, _ = self.start(*more).communicate()
        return time.monotonic() - begun, processes.spent() - before_s, said


def shared(agents: int, issues: int) -> Iterator[Row]:
    """Yields what an issue costs, and how many each agent lands."""
    with tempfile.TemporaryDirectory() as folder:
        team = Team(folder, agents, issues, _THINKS)
        team.run(f"--max-issues={agents}")
        took_s, used_s, said = team.run()
    each = [int(number) for number in re.findall(r"\) (\d+)(?:,|$)", said.splitlines()[-1])]
    if len(each) != agents:
        raise RuntimeError(f"not every agent landed something: {said[-2000:]}")
    landed = sum(each)
    rate = f"{landed} issues, {landed / took_s * 60:.0f} a minute"
    yield Row("processor time of an issue", used_s / landed, "s", note=rate, goal=_GOAL_S)
    least, most = min(each), max(each)
    yield Row("most against least", most / least, TIMES, note=f"{least} to {most} each", goal=2)


def stopped(agents: int, busy: int) -> Row:
    """Returns how long a team takes to stop, after the second of two Ctrl-C."""
    with tempfile.TemporaryDirectory() as folder:
        process = Team(folder, agents, 2 * agents, _SLEEPS).start()
        spinning = [subprocess.Popen([sys.executable, "-c", _SPINS]) for _ in range(busy)]
        try:
            assert process.stdout is not None
            taken = 0
            while taken < agents:
                taken += " takes " in process.stdout.readline()
            os.kill(process.pid, signal.SIGINT)
            time.sleep(1)
            os.kill(process.pid, signal.SIGINT)
            since_s = time.monotonic()
            process.communicate()
            took_s = time.monotonic() - since_s
        finally:
            for each in spinning:
                each.kill()
    return Row(f"two Ctrl-C beside {busy} busy processes", took_s, "s", goal=10)


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=32)
    parser.add_argument("--issues", type=int, default=200)
    parser.add_argument("--busy", type=int, default=16)
    options = parser.parse_args()
    results.show(shared(options.agents, options.issues))
    results.show([stopped(8, options.busy)])


if __name__ == "__main__":
    main()
