"""How long a team takes to land: `queen land`, an older one, and a plain script, in one run.

    python -m bench.landing [--agents 1 8 16] [--checks 0 2 10] [--bad 0 5 20]
        [--older FOLDER] [--runs 1]

Each agent has a worktree with one commit, and all land at the same moment. The check sleeps; it
fails where a bad branch is merged, and `--bad` percent are: spread evenly in one run, by chance in
each of several `--runs`, which a line sums up. `--older` is a folder with another
version's package. The plain script holds a lock, merges, checks and moves the main branch. Another
branch has landed before, so the landing checkout is there, and the main branch has passed. A wait
is the whole time of one agent's command; the overhead is what a landing takes besides its check;
touched are the files of the worktrees that have another inode, time or content than before.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

_QUEEN = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
_PLAIN = """\
cd "$TREE" && exec 9>"$MAIN/.git/landing.lock" && flock 9 && git merge -q --no-edit main &&
sh -c "$CHECK" && git -C "$MAIN" merge -q --ff-only "$(git rev-parse HEAD)"
"""
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclass(frozen=True)
class Case:
    """One team: how many agents, how long the check takes, and how many branches are bad."""

    agents: int
    check_s: float
    bad: frozenset[int]
    """The numbers of those whose branch is bad."""


@dataclass(frozen=True)
class Result:
    """What one team did with one way to land."""

    landed: int
    checks: int
    seconds: float
    waits: list[float]
    touched: int


def run(case: Case, way: str, older: str | None) -> Result:
    """Lets a team land at once."""
    with tempfile.TemporaryDirectory() as folder:
        main, log = os.path.join(folder, "main"), os.path.join(folder, "checks")
        first, *trees = _make(main, case)
        check = f"echo x >> {log}; sleep {case.check_s}; ! ls *.bad > /dev/null 2>&1"
        env = {**os.environ, "MAIN": main, "CHECK": check, "QUEEN_DURABILITY": "buffered"}
        env["PYTHONPATH"] = older if way == "older" and older else _HERE
        command = [*_QUEEN, "land", "--check", check, "--wait", "1h"]
        if way == "plain":
            command = ["sh", "-c", _PLAIN]

        def begun(tree: str) -> subprocess.Popen[bytes]:
            own = {**env, "TREE": tree, "QUEEN_DROID": os.path.basename(tree)}
            out = subprocess.DEVNULL
            return subprocess.Popen(command, cwd=tree, env=own, stdout=out, stderr=out)

        begun(first).wait()
        os.unlink(log)
        files = {each: _file(each) for tree in trees for each in _files(tree)}
        began = time.monotonic()
        running = {tree: begun(tree) for tree in trees}
        waits = []
        while running:
            for tree in [each for each, one in running.items() if one.poll() is not None]:
                del running[tree]
                waits.append(time.monotonic() - began)
            time.sleep(0.01)
        seconds = time.monotonic() - began
        listed = subprocess.check_output(["git", "ls-files", "agent*"], cwd=main, text=True)
        touched = sum(_file(each) != before for each, before in files.items())
        with open(log, encoding="utf-8") as file:
            return Result(len(listed.split()), len(file.readlines()), seconds, waits, touched)


def _files(tree: str) -> list[str]:
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=tree, text=True)
    paths = (os.path.join(tree, each) for each in listed.split("\0") if each)
    return [each for each in paths if f"{os.sep}.beads{os.sep}" not in each]


def _file(path: str) -> tuple[int, int, bytes]:
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        return status.st_ino, status.st_mtime_ns, file.read()


def _make(main: str, case: Case) -> list[str]:
    """Makes a repository with a worktree for each agent, and before these one that lands first."""
    _git(None, "init", "-q", "-b", "main", main)
    for key in ("name", "email"):
        _git(main, "config", f"user.{key}", "bench@example.com")
    subprocess.run([*_QUEEN, "init"], cwd=main, check=True, capture_output=True)
    _git(main, "add", ".")
    _git(main, "commit", "-qm", "begun")
    trees = []
    for agent in ("first", *(f"agent{number}" for number in range(case.agents))):
        tree = os.path.join(os.path.dirname(main), agent)
        _git(main, "worktree", "add", "-q", tree, "-b", agent)
        is_bad = agent in {f"agent{number}" for number in case.bad}
        name = f"{agent}.{'bad' if is_bad else 'txt'}"
        with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
            file.write("x\n")
        _git(tree, "add", name)
        _git(tree, "commit", "-qm", name)
        trees.append(tree)
    return trees


def _git(cwd: str | None, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=cwd, check=True)


def _cases(agents: int, check_s: float, bad: int, runs: int) -> list[Case]:
    if runs == 1:
        spread = frozenset(round((number + 0.5) * agents / bad) for number in range(bad))
        return [Case(agents, check_s, spread)]
    chance = random.Random(f"{agents} {bad}")
    return [
        Case(agents, check_s, frozenset(chance.sample(range(agents), bad))) for _ in range(runs)
    ]


def _sum(results: list[Result]) -> Result:
    return Result(
        sum(each.landed for each in results),
        sum(each.checks for each in results),
        sum(each.seconds for each in results),
        [wait for each in results for wait in each.waits],
        sum(each.touched for each in results),
    )


def main() -> None:
    """Prints a line for each team and each way to land."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--checks", type=float, nargs="+", default=[0, 2, 10])
    parser.add_argument("--bad", type=int, nargs="+", default=[0, 5, 20], help="in percent")
    parser.add_argument("--older", help="folder of another version's package")
    parser.add_argument("--runs", type=int, default=1, help="with bad ones in other places")
    asked = parser.parse_args()
    print("agents check bad  way    landed checks  /min  wait: median worst  overhead touched")
    ways = ["plain", *(["older"] if asked.older else []), "queen"]
    for agents in asked.agents:
        for check_s in asked.checks:
            for bad in dict.fromkeys(round(agents * each / 100) for each in asked.bad):
                cases = _cases(agents, check_s, bad, asked.runs if bad else 1)
                for way in ways:
                    done = _sum([run(case, way, asked.older) for case in cases])
                    overhead = done.seconds / done.checks - check_s
                    print(
                        f"{agents:6} {check_s:4g}s {bad:3}  {way:6} {done.landed:5} "
                        f"{done.checks:6} {done.landed / done.seconds * 60:6.1f} "
                        f"{statistics.median(done.waits):11.1f} {max(done.waits):6.1f} "
                        f"{overhead:8.2f} {done.touched:7}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
