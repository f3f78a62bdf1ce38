"""Two teams of `sh` agents work on two libraries, while agents and teams are killed and stopped."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter

from queenbee.store.droids import roster
from queenbee.store.droids.liveness import is_running
from tests.torture.landings import QUEEN
from tests.torture.places import ENVIRONMENT, errors_of, make_repository, must, open_hive, require

LIBRARIES = ("click", "markdown_it")
AT_WORK_AGAIN_S = 60
_TICK_S = 0.1
_TEAM = (*QUEEN[:2], f"from queenbee.starting import limits; limits._MOST_LOAD = 1e9; {QUEEN[2]}")
"""Whatever else runs here must not hold the agents up."""
_SETTINGS = """
quiet_after = "3s"
answer_within = "2s"
[land]
check = "python3 -m compileall -q . || exit 1"
union = ["CHANGES.md"]
"""
AGENT = """\
#!/bin/sh
cat > /dev/null
dice=$(( $(od -An -N2 -tu2 /dev/urandom) % 100 ))
FILE=$(sed -n "s/^$QUEEN_ISSUE //p" modules.txt)
sleep 0.$(( dice % 10 ))
case $dice in
[0-4]) echo "half = (" >> "$FILE"; exit 3 ;;
[5-9]) echo done; exit 0 ;;
1[0-3]) sleep 1000 ;;
1[4-6]) echo "half = (" >> "$FILE"; kill -STOP $$ ;;
1[7-9]|2[0-1]) echo "half = (" >> "$FILE"; kill -KILL $$ ;;
2[2-4]) while :; do git status > /dev/null; sleep 0.1; done ;;
2[5-6]) echo "the same failure"; exit 4 ;;
2[7-8]) sleep 1000 & ;;
esac
git checkout -q -- "$FILE"
name="issue_${QUEEN_ISSUE#x-}"
# It may have done so before, and only the landing was broken off.
grep -q "def $name()" "$FILE" && exit 0
printf '\\n\\ndef %s():\\n    return 1\\n' "$name" >> "$FILE"
echo "- $QUEEN_ISSUE" >> CHANGES.md
"""


class _Library:
    """A repository of a library, with issues and somebody who keeps a team at work."""

    def __init__(self, folder: str, name: str, issues: int, agents: int) -> None:
        self.path = os.path.join(folder, name)
        self.agents = agents
        self.agent = os.path.join(folder, f"{name}.sh")
        self.issues = [f"x-{number}" for number in range(1, issues + 1)]
        self.process: subprocess.Popen[bytes] | None = None
        self.log = os.path.join(folder, f"{name}.log")
        self.runs = 0
        self._make(name)
        self.hive = open_hive(self.path, "lead")

    def _make(self, name: str) -> None:
        make_repository(self.path)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(os.path.dirname(spec.origin), os.path.join(self.path, name), ignore=skipped)
        modules = sorted(
            os.path.relpath(os.path.join(root, each), self.path)
            for root, _, files in os.walk(os.path.join(self.path, name))
            for each in files
            if each.endswith(".py")
        )
        lines = [f"{key} {modules[n % len(modules)]}\n" for n, key in enumerate(self.issues)]
        _write(os.path.join(self.path, "modules.txt"), "".join(lines))
        _write(os.path.join(self.path, "CHANGES.md"), "# Changes\n")
        _write(os.path.join(self.path, ".gitignore"), "__pycache__/\n")
        _write(self.agent, AGENT)
        os.chmod(self.agent, 0o755)
        settings = os.path.join(self.path, ".beads", "queen.toml")
        with open(settings, "a", encoding="utf-8") as file:
            file.write(_SETTINGS)
        for number, key in enumerate(self.issues):
            before = [self.issues[at] for at in (number - 7, number - len(modules)) if at >= 0]
            needs = [word for each in before for word in ("--depends-on", each)]
            self.queen("issue", "new", f"Work {number}", "--id", key, *needs)
        must(self.path, "add", "--all")
        must(self.path, "commit", "-qm", name)

    def queen(self, *arguments: str) -> None:
        done = subprocess.run(
            [*QUEEN, *arguments], cwd=self.path, env=self.env, capture_output=True, check=False
        )
        require(done.returncode == 0, f"queen {' '.join(arguments)}: {done.stderr!r}")

    @property
    def env(self) -> dict[str, str]:
        folder = os.path.dirname(self.path)
        path = f"{folder}/bin{os.pathsep}{ENVIRONMENT['PATH']}"
        more = {"PATH": path, "QUEEN_DROID": "lead", "QUEEN_DURABILITY": "buffered"}
        return {**ENVIRONMENT, **more}

    def left(self) -> list[str]:
        done = {each.issue_id for each in self.hive.assignments.find(status="completed")}
        return [each for each in self.issues if each not in done]

    def keep_at_work(self) -> bool:
        """Starts a team unless one runs or all is done; returns whether there is more to do."""
        if self.process is not None and self.process.poll() is None:
            return True
        if not self.left() and not self.entries():  # What a killed team left is taken over, too.
            return False
        self.runs += 1
        command = [*_TEAM, "start", "--agent", self.agent, "--size", str(self.agents)]
        with open(self.log, "ab") as file:
            self.process = subprocess.Popen(
                command, cwd=self.path, env=self.env, stdout=file, stderr=file,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        return True

    def entries(self) -> list[roster.Entry]:
        return roster.everybody(self.hive.layout)

    def check(self) -> None:
        """Raises `Broken` unless everything landed once and nothing is left over."""
        found = Counter(each.issue_id for each in self.hive.assignments.find(status="completed"))
        require(found == Counter(self.issues), f"completed: {found}")
        text = must(self.path, "grep", "-h", "def issue_", "main", "--", "*.py")
        numbers = Counter(each.strip() for each in text.splitlines())
        require(
            numbers == Counter(f"def issue_{each.removeprefix('x-')}():" for each in self.issues),
            f"landed: {numbers}",
        )
        require("half" not in must(self.path, "log", "-p", "main", "--", "*.py"), "half a work")
        status = must(self.path, "status", "--porcelain")
        require(not status, f"not clean: {status}")
        require(not self.entries(), "an agent is left on the roster")
        require(not (left := _at(os.path.dirname(self.path))), f"left running: {left}")
        require(not (errors := errors_of(self.hive)), f"doctor: {errors}")


class _Gaps:
    """For how long issues that were begun had nobody at work on them."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}
        self.longest_s: list[float] = []

    def look(self, library: _Library, now_s: float) -> None:
        busy = {each.issue_id for each in library.entries() if _runs(each.process)}
        held = {each.issue_id for each in library.hive.assignments.find()}
        for issue_id in library.left():
            key = (library.path, issue_id)
            if issue_id in busy:
                if key in self._since:
                    self.longest_s.append(now_s - self._since.pop(key))
            elif issue_id in held:
                self._since.setdefault(key, now_s)


def run(folder: str, *, issues: int = 40, agents: int = 8, seed: int = 0) -> dict[str, object]:
    """Returns the figures of a run. Raises `Broken` where a promise does not hold."""
    chance, figures, gaps = random.Random(seed), Counter[str](), _Gaps()
    os.makedirs(os.path.join(folder, "bin"))
    words = " ".join(f"'{each}'" for each in QUEEN)
    _write(os.path.join(folder, "bin", "queen"), f'#!/bin/sh\nexec {words} "$@"\n')
    os.chmod(os.path.join(folder, "bin", "queen"), 0o755)
    libraries = [_Library(folder, each, issues // 2, agents // 2) for each in LIBRARIES]
    begun_s = time.monotonic()
    # Both, not the first of them that has more to do.
    while any(list(map(_Library.keep_at_work, libraries))):
        time.sleep(_TICK_S)
        for each in libraries:
            gaps.look(each, time.monotonic())
            _harm(each, chance, figures)
        require(time.monotonic() - begun_s < 120 * issues, "it does not end")
    for each in libraries:
        each.check()
    longest_s = max(gaps.longest_s, default=0.0)
    require(longest_s < AT_WORK_AGAIN_S, f"nobody was at work for {longest_s:.0f} s")
    log = "".join(open(each.log, encoding="utf-8").read() for each in libraries)  # noqa: SIM115
    return {
        "issues": sum(len(each.issues) for each in libraries),
        "agents": agents,
        "seconds": round(time.monotonic() - begun_s),
        "runs": sum(each.runs for each in libraries),
        **figures,
        "begun again": log.count("; it begins "),
        "silent and stopped": log.count("it was silent for"),
        "given back": log.count(" ends without a landing: "),
        "longest without work, s": round(longest_s, 1),
    }


def _runs(process: str) -> bool:
    """Returns whether a process runs, and is not stopped."""
    try:
        with open(f"/proc/{process.split(' ')[1]}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "T" and is_running(process) is True
    except (OSError, IndexError):
        return False


def _harm(library: _Library, chance: random.Random, figures: Counter[str]) -> None:
    if chance.random() < 0.008 and library.process is not None and library.process.poll() is None:
        library.process.kill()
        library.process.wait()
        figures["teams killed"] += 1
    for each in library.entries():
        if not each.process or is_running(each.process) is not True or chance.random() > 0.02:
            continue
        number = chance.choice((signal.SIGKILL, signal.SIGSTOP))
        try:
            os.kill(int(each.process.split(" ")[1]), number)
        except ProcessLookupError:
            continue
        figures["agents killed" if number == signal.SIGKILL else "agents stopped"] += 1


def _at(folder: str) -> list[str]:
    """Returns the processes that work below a folder."""
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{each}/cwd").startswith(folder):
                found.append(each)
        except OSError:
            continue
    return found


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
