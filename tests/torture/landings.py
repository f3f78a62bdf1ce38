"""Many land at once while some are killed; and one is killed at every call of git."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

from tests.torture.places import (
    ENVIRONMENT,
    errors_of,
    git,
    make_repository,
    must,
    open_hive,
    require,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

QUEEN = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
LIMIT_S = 5.0
"""How long whoever has the turn may be stopped."""
IMPATIENT = (
    *QUEEN[:2],
    f"from queenbee.services.waiting import landing_turn as turn; turn.STALLED_S = {LIMIT_S}; "
    + QUEEN[2],
)
FAKE_GIT = """\
#!{python} -S
import os, signal, sys
with open({count!r}, "a") as file:
    file.write("x")
    file.flush()
    nth = os.fstat(file.fileno()).st_size
queen, how = os.getppid(), {how!r}
if nth == {nth} and how == "after":
    if os.fork() == 0:
        os.execv({real!r}, [{real!r}, *sys.argv[1:]])
    os.wait()
if nth == {nth}:
    os.kill(queen, signal.SIGKILL)
if nth == {nth} and how != "alone":
    os.kill(os.getpid(), signal.SIGKILL)
os.execv({real!r}, [{real!r}, *sys.argv[1:]])
"""
FAILING_GIT = """\
#!/bin/sh
case $(( ($$ * 1103515245 + 12345) / 65536 % {rarely} )) in
0) echo "fatal: no space left on device" >&2; exit 128 ;;
1) {real} "$@"; echo "fatal: no space left on device" >&2; exit 128 ;;
esac
exec {real} "$@"
"""
RARELY = 149
"""Of so many calls of git, two fail by chance: one before it has done anything, and one after."""
IN_ONE = {"QUEEN_LAND_ATTACHED": "1", "QUEEN_DURABILITY": "buffered"}
"""Whoever is killed or stopped is whoever lands."""
WAYS = ("before", "alone", "after")
"""When the command is killed: before git does what it was called for; while git goes on without
it; or after git has done it."""


def land(tree: str, droid: str, *more: str, env: Mapping[str, str] | None = None):
    """Starts `queen land` in a worktree."""
    return subprocess.Popen(
        [*IMPATIENT, "land", *more],
        cwd=tree,
        env={**ENVIRONMENT, **IN_ONE, "QUEEN_DROID": droid, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def worktree(repository: str, name: str) -> str:
    """Makes a linked worktree on a branch of its own; returns its path."""
    path = f"{repository}-{name}"
    must(repository, "worktree", "add", "-q", path, "-b", name)
    return path


def commit(tree: str, name: str) -> None:
    """Commits a file of this name, and a line of it in the file that everybody appends to."""
    with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
        file.write(f"{name}\n" * 50)
    path = os.path.join(tree, "CHANGELOG.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("# Changes\n", f"# Changes\n- {name}\n"))
    must(tree, "add", name, "CHANGELOG.md")
    must(tree, "commit", "-qm", f"add {name}")


def prepared(path: str, strategy: str = "merge", *, hub: bool = False) -> str:
    """Makes a repository with a file that everybody appends to; with a hub, work lands there."""
    make_repository(path)
    target = "origin/main" if hub else "main"
    with open(os.path.join(path, "CHANGELOG.md"), "w", encoding="utf-8") as file:
        file.write("# Changes\n\nend\n")
    settings = os.path.join(path, ".beads", "queen.toml")
    with open(settings, encoding="utf-8") as file:
        text = file.read().removesuffix('[land]\ntarget = "main"\n')
    with open(settings, "w", encoding="utf-8") as file:
        file.write(f'{text}[land]\nstrategy = "{strategy}"\nunion = ["CHANGELOG.md"]\n')
        file.write(f'target = "{target}"\n')
    must(path, "add", "CHANGELOG.md", settings)
    must(path, "commit", "-qm", "changes")
    if hub:
        must(path, "clone", "-q", "--bare", path, f"{path}.hub")
        must(path, "remote", "add", "origin", f"{path}.hub")
        must(path, "fetch", "-q", "origin")
    return path


def written(tree: str, name: str) -> tuple[object, ...]:
    """Returns what is in a file, with its inode and its time."""
    with open(os.path.join(tree, name), "rb") as file:
        status = os.fstat(file.fileno())
        return file.read(), status.st_ino, status.st_mtime_ns


def check(repository: str, trees: list[str], names: list[str], since: str, trees_log: str) -> int:
    """Requires that each commit landed once, in a line, as it was checked, and that nothing is
    half done; returns how many steps the target made.
    """
    how = ("--first-parent", "--diff-merges=first-parent", "--diff-filter=A", "--name-only")
    added = Counter(must(repository, "log", *how, "--format=", f"{since}..main").splitlines())
    for name in names:
        require(added[name] == 1, f"{name} landed {added[name]} times")
    line = must(repository, "rev-list", "--first-parent", "main").split()
    require(since in line, "what the target was is not on its first-parent line")
    with open(trees_log, encoding="utf-8") as file:
        checked = set(file.read().split())
    known = {without_records(repository, each) for each in checked}
    steps = line[: line.index(since)]
    for step in steps:
        require(without_records(repository, step) in known, f"{step} was not checked as it is")
    with open(os.path.join(repository, "CHANGELOG.md"), encoding="utf-8") as file:
        lines = Counter(file.read().splitlines())
    lost = [name for name in names if lines[f"- {name}"] != 1]
    require(not lost, f"lines of the changelog that are not there once: {lost}")
    for tree in (repository, *trees):
        require_whole(tree)
    return len(steps)


def without_records(repository: str, tree: str) -> str:
    """Returns the files of a tree, but for the records that a landing adds after the check."""
    listed = must(repository, "ls-tree", "-r", tree).splitlines()
    return "\n".join(each for each in listed if "\t.beads/queen_" not in each)


def require_whole(tree: str) -> None:
    """Requires that nothing is half done in a worktree."""
    status = must(tree, "status", "--porcelain", "--", ".", ":!.beads")
    require(not status, f"{tree} is not clean: {status}")
    own = must(tree, "rev-parse", "--absolute-git-dir").strip()
    left = [each for each in os.listdir(own) if each.endswith(".lock") or each == "MERGE_HEAD"]
    require(not left, f"{tree} has {left}")


def at_every_step(
    folder: str,
    *,
    ways: tuple[str, ...] = WAYS,
    every: int = 1,
    strategies=("merge",),
    hub: bool = False,
) -> Counter[str]:
    """Kills `queen land` at each of its calls of git; returns the kills."""
    kills = Counter[str]()
    for strategy in strategies:
        for how in ways:
            nth, was_called = every, True
            while was_called:
                where = os.path.join(folder, f"{strategy}-{how}-{nth}")
                killed = _killed_at(where, nth, how, strategy, hub)
                kills[f"{strategy}, {how}"] += killed
                # One that ends with the command kills nobody.
                was_called = killed or os.path.getsize(f"{where}.count") >= nth
                nth += every
    return kills


def _killed_at(path: str, nth: int, how: str, strategy: str, hub: bool) -> bool:
    repository = prepared(path, strategy, hub=hub)
    since = must(repository, "rev-parse", "main").strip()
    one, two = worktree(repository, "one"), worktree(repository, "two")
    commit(one, "1.txt")
    commit(two, "2.txt")
    log = f"{repository}.checked"
    checked = ("--check", f"git rev-parse HEAD^{{tree}} >> {log}")
    _finish(land(one, "one", *checked), 0)
    open_hive(two, "two").assignments.claim("qb-1")
    before = must(repository, "rev-parse", "main").strip()
    env = _killing(path, nth, how)
    # Not the check's own git: the command is killed, not what it runs.
    own = ("--check", f"{_real_git()} rev-parse HEAD^{{tree}} >> {log}")
    process = land(two, "two", *own, env=env)
    said, _ = process.communicate(timeout=120)
    killed = process.returncode == -signal.SIGKILL
    require(killed or process.returncode == 0, f"it failed on its own: {said}")
    now = must(repository, "rev-parse", "main").strip()
    has_it = not git(repository, "cat-file", "-e", f"{now}:2.txt").returncode
    require(now == before or has_it, f"{path}: the target is neither old nor new")
    # Somebody else lands at once, and then whoever was killed.
    three = worktree(repository, "three")
    commit(three, "3.txt")
    _finish(land(three, "three", *checked), 0)
    again = land(two, "two", *checked)
    said, _ = again.communicate(timeout=120)
    if again.returncode:
        # A kill in what follows a landing, such as the commit of records, leaves nothing to land.
        require("nothing to land" in said and (has_it or not killed), f"{path}: {said}")
    hive = open_hive(repository, "queen")
    require(not hive.assignments.find(droid="two"), f"{path}: its issue is not completed: {said}")
    check(repository, [one, two, three], ["1.txt", "2.txt", "3.txt"], since, log)
    notes = os.path.join(hive.layout.private_dir, "landing", "origin_main" if hub else "main")
    left = [each for each in os.listdir(notes) if each not in ("pace", "target")]
    require(not left, f"{path}: left behind: {left}")
    return killed


def _finish(process: subprocess.Popen[str], status: int) -> str:
    said, _ = process.communicate(timeout=120)
    require(process.returncode == status, f"status {process.returncode}: {said}")
    return said


def _real_git() -> str:
    return subprocess.check_output(["/usr/bin/env", "which", "git"], text=True).strip()


def _killing(path: str, nth: int, how: str) -> dict[str, str]:
    """Returns the environment in which the nth call of git kills its caller."""
    about = {"python": sys.executable, "count": f"{path}.count", "how": how, "nth": nth}
    return _with_git(f"{path}.bin", FAKE_GIT, **about)


def _with_git(folder: str, text: str, **about: object) -> dict[str, str]:
    """Returns the environment with a program in place of git."""
    os.makedirs(folder)
    script = os.path.join(folder, "git")
    with open(script, "w", encoding="utf-8") as file:
        file.write(text.format(real=_real_git(), **about))
    os.chmod(script, 0o755)
    return {"PATH": f"{folder}{os.pathsep}{ENVIRONMENT['PATH']}"}


class Team:
    """Agents who land, and what happened to them."""

    def __init__(
        self,
        repository: str,
        agents: int,
        names: list[str],
        *,
        log: str,
        landed_in: str,
        strategy: str,
    ) -> None:
        self.strategy = strategy
        self.landed_in = landed_in
        """The repository whose main branch has what landed."""
        self.log = log
        self.trees = [worktree(repository, f"agent{number}") for number in range(agents)]
        self._left = iter(names)
        self._lock = threading.Lock()
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.ends, self.failures = Counter[int](), list[str]()
        self.last_end = time.monotonic()
        self.longest_s = 0.0
        """The longest time in which nobody's command ended."""
        self.env = _with_git(f"{repository}.bin", FAILING_GIT, rarely=RARELY)

    def work(self, tree: str) -> None:
        """Lands one commit after the other, as long as there are any."""
        while (name := self._next()) is not None:
            try:
                commit(tree, name)
                self._land_until_done(tree, name)
            except Exception as error:
                self.failures.append(f"{tree}: {error}")
                return

    def _next(self) -> str | None:
        with self._lock:
            return next(self._left, None)

    def _land_until_done(self, tree: str, name: str) -> None:
        checked = f"{_real_git()} rev-parse HEAD^{{tree}} >> {self.log}"  # They land together.
        own, before = must(tree, "rev-parse", "HEAD").strip(), written(tree, name)
        # After a kill or a failure, a rebase may put it upon something else, and write it anew.
        count = 3 if self.strategy == "merge" else 1
        for _ in range(100):
            said, status = self._ran(tree, "--check", checked, "--wait", "10m")
            is_untouched = written(tree, name)[:count] == before[:count]
            require(is_untouched, f"{tree}/{name} was touched: {said}")
            is_in = self._has(name)
            require(is_in or status != 0, f"{name} was said to have landed: {said}")
            require(not is_in or "nothing was landed" not in said, f"{name} has landed: {said}")
            require(status in (0, 5, 6, 8, -signal.SIGKILL), f"status {status}: {said}")
            if status == 0 or "nothing to land" in said:
                require(is_in, f"{name}, {own}, is not there: {said}")
                return
            if "--continue" in said:  # Git failed while it merged.
                self._ran(tree, "--abort")
        raise AssertionError(f"{name} did not land in a hundred calls: {said}")

    def _has(self, name: str) -> bool:
        while True:
            asked = git(self.landed_in, "ls-tree", "--name-only", "main", "--", name)
            if not asked.returncode:
                return bool(asked.stdout)
            time.sleep(0.1)  # It is away for a moment.

    def _ran(self, tree: str, *more: str) -> tuple[str, int]:
        process = land(tree, os.path.basename(tree), *more, env=self.env)
        self.running[tree] = process
        said, _ = process.communicate(timeout=600)
        with self._lock:
            now = time.monotonic()
            self.longest_s = max(self.longest_s, now - self.last_end)
            self.last_end = now
            self.ends[process.returncode] += 1
        return said, process.returncode


def at_once(
    folder: str, *, agents: int, landings: int, seed: int, strategy: str = "merge"
) -> dict[str, object]:
    """Lets agents land at once, while some are killed or stopped, and git fails now and then;
    returns the figures.
    """
    rng = random.Random(seed)
    repository = prepared(os.path.join(folder, f"many-{strategy}"), strategy)
    since = must(repository, "rev-parse", "main").strip()
    names = [f"{number}.txt" for number in range(landings)]
    own = {"log": f"{repository}.checked", "landed_in": repository, "strategy": strategy}
    team = Team(repository, agents, names, **own)
    begun = time.monotonic()
    threads = [threading.Thread(target=team.work, args=(tree,)) for tree in team.trees]
    for thread in threads:
        thread.start()
    done = Counter[str]()
    while any(thread.is_alive() for thread in threads):
        time.sleep(rng.uniform(0.5, 4))
        alive = [each for each in list(team.running.values()) if each.poll() is None]
        if alive:
            done[hurt(rng, rng.choice(alive))] += 1
    require(not team.failures, "; ".join(team.failures))
    require(team.longest_s < 60, f"nobody got on for {team.longest_s:.0f} s")
    took = time.monotonic() - begun
    steps = check(repository, team.trees, names, since, team.log)
    wrong = errors_of(open_hive(repository, "queen"))
    require(not wrong, str(wrong))
    return {
        "landings": landings,
        "agents": agents,
        **done,
        "calls": sum(team.ends.values()),
        "ended by status": dict(sorted(team.ends.items())),
        "steps of the target": steps,
        "longest without an end": round(team.longest_s, 1),
        "seconds": round(took, 1),
    }


def hurt(rng: random.Random, process: subprocess.Popen[str]) -> str:
    """Kills a process, or stops it for a while, also for longer than a turn may be."""
    if rng.random() < 0.5:
        process.kill()
        return "kills"
    process.send_signal(signal.SIGSTOP)
    stop_s = rng.uniform(0.1, LIMIT_S * 1.6)
    threading.Timer(stop_s, process.send_signal, (signal.SIGCONT,)).start()
    return "stops"
