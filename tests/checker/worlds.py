"""Where droids work: worktrees of a repository, clones of a remote, machines of a database."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from tests.checker import ROOT
from tests.checker.droids import Droid, Issues, Processes, waited_for
from tests.checker.history import Call
from tests.checker.laws import End
from tests.torture.network import Proxy, Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CLOCK = """\
import os, time
_off_ns = int(os.environ["CHECKER_CLOCK_NS"])
_time_ns, _time = time.time_ns, time.time
time.time_ns = lambda: _time_ns() + _off_ns
time.time = lambda: _time() + _off_ns / 1e9
"""
"""A `sitecustomize` by which each clone has a clock of its own."""
_CHECK = """\
#!/bin/sh
ls | grep -q '^bad' && exit 1
git ls-tree -r HEAD | grep -v '\\.beads' | git hash-object --stdin >> "$CHECKER_PASSED"
"""
_PLAN = """\
## Phase 1: Storage
### Sprint 1.1: Data model
- Write model.py
## Phase 2: Site
### Sprint 2.1: Pages
- Write pages.py
"""
_LISTS = {
    "reservations": ("reserve", "list", "--all"),
    "assignments": ("issue", "assignments", "--status", "all"),
    "issues": ("issue", "list"),
}
_IDS = [f"ck-p{number}" for number in range(6)]


class World:
    """What all worlds share: the calls, how many are left, and who disturbs them."""

    kind = ""
    landing_trees: tuple[str, ...] = ()
    landers: tuple[str, ...] = ()
    by_tools: tuple[str, ...] = ("droid-4", "droid-5")
    """Whose client calls the tools of `queen mcp`, where there is one for what is asked."""
    confirm: tuple[str, ...] = ()
    prepared_issues: tuple[str, ...] = ()
    gated_issue = ""
    gate_run = ("gate", "run", "--plan", "plan.md", "--phase", "1", "--force")
    most_issues = 2

    def __init__(self, folder: str, *, operations: int, seed: int, product: str = ROOT) -> None:
        self.folder = folder
        self.main = os.path.join(folder, "main")
        self.trees: dict[str, str] = {}
        """The tree of each droid."""
        self.queen = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
        self.hook = (sys.executable, "-c", "from queenbee.hook.main import main; main()")
        self.processes = Processes()
        self.counts: Counter[str] = Counter()
        self._product = product
        self._off_ns: dict[str, int] = {}
        """By how much the clock of a tree is off, where each has one of its own."""
        self._left = operations
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._over = threading.Event()
        self.chance = random.Random(seed)

    @property
    def names(self) -> list[str]:
        """All droids."""
        return [*self.trees]

    def takes_another(self) -> bool:
        """Whether one more thing is to be done."""
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def count(self, what: str) -> None:
        """Counts something for the figures."""
        with self._lock:
            self.counts[what] += 1

    def environment(self, tree: str) -> dict[str, str]:
        """Returns what a process in a tree has in its environment."""
        clock = {"CHECKER_CLOCK_NS": str(self._off_ns.get(tree, 0))} if self._off_ns else {}
        return clock | {
            "QUEEN_LAND_ATTACHED": "1",  # Whoever is killed is whoever lands.
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self.folder,
            "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([self.folder] * bool(clock) + [self._product]),
            "QUEEN_DURABILITY": "buffered",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_NAME": "Checker" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "c@example.com" for who in ("AUTHOR", "COMMITTER")},
        }

    def git(self, tree: str, *words: str) -> bool:
        """Runs git; returns whether it succeeded."""
        done = subprocess.run(
            ["git", *words], cwd=tree, env=self.environment(tree), capture_output=True, check=False
        )
        return done.returncode == 0

    def must_git(self, tree: str, *words: str) -> str:
        """Runs git, which has to succeed, and returns what it printed."""
        return subprocess.run(
            ["git", *words], cwd=tree, env=self.environment(tree), capture_output=True, check=True,
            text=True,
        ).stdout  # fmt: skip

    def must(self, tree: str, *words: str) -> Any:
        """Runs `queen`, which has to succeed, and returns its document."""
        for _ in range(10):
            done = subprocess.run(
                [*self.queen, *words, "--json"], cwd=tree, text=True, capture_output=True,
                env={"QUEEN_DROID": "checker", **self.environment(tree)}, check=False,
            )  # fmt: skip
            if done.returncode in (0, 1):
                return json.loads(done.stdout)
            if done.returncode not in (6, 8):
                break
            time.sleep(1)
        raise RuntimeError(f"queen {' '.join(words)}: {done.stdout}{done.stderr}")

    def make(self) -> None:
        """Makes the trees, and says which droid is where."""
        raise NotImplementedError

    def set_clocks(self, trees: Sequence[str]) -> None:
        """Gives each tree a clock of its own, up to half an hour off."""
        with open(os.path.join(self.folder, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(_CLOCK)
        self._off_ns = {each: self.chance.randint(-1800, 1800) * 10**9 for each in trees}

    def disturb(self) -> None:
        """Does something unpleasant."""
        self.processes.disturb(self.chance)

    def settled(self) -> End:
        """Returns what is there once nobody disturbs any more."""
        return self.listed(self.main)

    def listed(self, tree: str) -> End:
        """Returns the lists of a tree."""
        end = End({kind: self.must(tree, *words) for kind, words in _LISTS.items()})
        end.lists["messages"] = [
            each for name in self.names
            for each in self.must(tree, "msg", "sent", "--limit", "1000000", "--as", name)
        ]  # fmt: skip
        return end

    def run(self) -> tuple[list[Call], End]:
        """Lets the droids work until enough was done; returns what they noted, and the end."""
        with self._stack:
            self.make()
            issues = Issues(self.prepared_issues)
            droids = [
                Droid(self, name, tree, issues, self.chance.randrange(2**32))
                for name, tree in self.trees.items()
            ]
            for droid in droids:
                droid.start()
            disturber = threading.Thread(target=self._disturb, daemon=True)
            disturber.start()
            for droid in droids:
                droid.join()
            self._over.set()
            disturber.join()
            self.calm()
            for droid in droids:
                droid.drain()
            return list(waited_for(droids)), self.settled()

    def calm(self) -> None:
        """Takes away what was in the way."""

    def _disturb(self) -> None:
        while not self._over.wait(self.chance.uniform(0.2, 1.0)):
            self.disturb()

    def figures(self) -> dict[str, int]:
        """Returns what was done to the droids."""
        return {"kills": self.processes.kills, "stops": self.processes.stops, **self.counts}


class Files(World):
    """A repository with three linked worktrees; git works in them, and three droids land."""

    kind = "files"

    def make(self) -> None:
        os.makedirs(self.main)
        self.must_git(self.main, "init", "-q", "-b", "main")
        for name, text in {"plan.md": _PLAN, "check.sh": _CHECK}.items():
            with open(os.path.join(self.main, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(self.main, ".git", "info", "exclude"), "a") as file:
            file.write("/flag\n/.claude/\n")
        self.must(self.main, "init")
        self.must(self.main, "config", "set", "land.check", "sh check.sh")
        made = self.must(self.main, "plan", "import", "plan.md")["changes"]
        self.gated_issue = str(made[1]["id"])
        gate = ("--plan", "plan.md", "--phase", "1")
        self.must(self.main, "gate", "new", *gate)
        self.must(self.main, "gate", "add-rule", *gate, "--exists", "flag")
        self.must(self.main, "claim", str(made[0]["id"]))
        self.must(self.main, "complete", str(made[0]["id"]))
        self.must(self.main, "issue", "new", "the first", "--id", "ck-0")
        self.prepared_issues = ("ck-0",)
        self.must_git(self.main, "add", "-A")
        self.must_git(self.main, "commit", "-qm", "the beginning")
        self._since = self.must_git(self.main, "rev-parse", "HEAD").strip()
        trees = [self.main]
        for number in range(3):
            trees.append(os.path.join(self.folder, f"linked-{number}"))
            self.must_git(self.main, "worktree", "add", "-q", trees[-1], "-b", f"linked-{number}")
        self.trees = {f"droid-{number}": trees[number % 4] for number in range(8)}
        self.landing_trees = tuple(trees[1:])
        self.landers = tuple(f"droid-{number}" for number in (1, 2, 3))

    def environment(self, tree: str) -> dict[str, str]:
        return {**super().environment(tree), "CHECKER_PASSED": self._passed}

    def settled(self) -> End:
        for name in self.landers:
            # Nothing to abort, and nothing to land, are answers too.
            for words in (("land", "--abort"), ("land", "--wait", "60s")):
                subprocess.run(
                    [*self.queen, *words, "--as", name], cwd=self.trees[name],
                    env=self.environment(self.trees[name]), capture_output=True, check=False,
                )  # fmt: skip
        # What was rotated since the last landing is for people to commit.
        self.must_git(self.main, "add", "--", ".beads")
        end = self.listed(self.main)
        self.must(self.main, "issue", "export")
        with open(os.path.join(self.main, ".beads", "issues.jsonl"), encoding="utf-8") as file:
            end.lists["issues"] = [json.loads(line) for line in file]
        end.doctor = self.processes.run(
            (*self.queen, "doctor", "--fix"), self.main, self.environment(self.main)
        )[0]
        line = self.must_git(self.main, "rev-list", "--first-parent", f"{self._since}..main")
        end.steps = [self._fingerprint(each) for each in line.split()]
        with suppress(FileNotFoundError), open(self._passed, encoding="utf-8") as file:
            end.passed = frozenset((*file.read().split(), self._fingerprint(self._since)))
        shown = self.must_git(
            self.main, "log", "--first-parent", "--diff-merges=first-parent", "--diff-filter=A",
            "--name-only", "--format=", f"{self._since}..main", "--", "*.txt",
        )  # fmt: skip
        end.added = Counter(shown.split())
        end.undone = frozenset(self._undone())
        for tree in {*self.trees.values()}:
            told = self.must_git(tree, "status", "--porcelain").splitlines()
            end.dirt += [f"{tree}: {each}" for each in told if ".beads" not in each]
        return end

    def _undone(self) -> Iterator[str]:
        """Yields the files that a reset took away: git moves the branch back to where it was when
        the reset began, whoever has moved it since.
        """
        for branch in ("main", *map(os.path.basename, self.landing_trees)):
            told = self.must_git(self.main, "reflog", "show", branch, "--format=%H %gs")
            lines = [each.split(" ", 1) for each in told.splitlines()]
            for (new, what), (old, _) in itertools.pairwise(lines):
                if what == "reset: moving to HEAD" and new != old:
                    yield from self.must_git(
                        self.main, "diff", "--name-only", new, old, "--", "*.txt"
                    ).split()

    @property
    def _passed(self) -> str:
        return os.path.join(self.folder, "passed")

    def _fingerprint(self, commit: str) -> str:
        listed = self.must_git(self.main, "ls-tree", "-r", commit).splitlines()
        text = "".join(f"{each}\n" for each in listed if ".beads" not in each).encode()
        return hashlib.sha1(b"blob %d\0%s" % (len(text), text)).hexdigest()


class Remote(World):
    """Clones of one remote, each with a clock of its own, behind proxies that cut."""

    kind = "remote"
    confirm = ("--confirm",)
    prepared_issues = tuple(_IDS)

    def make(self) -> None:
        bare = os.path.join(self.folder, "hub.git")
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", bare], check=True)
        self.must_git(bare, "config", "receive.autogc", "false")
        server = Server(self.folder, "git")
        self._stack.callback(server.stop)
        clones = [self.main, *(os.path.join(self.folder, f"clone-{n}") for n in range(2))]
        self.set_clocks(clones)
        self._proxies = []
        for clone in clones:
            self.must_git(self.folder, "clone", "-q", bare, clone)
            if clone == self.main:
                self.must(clone, "init")
                for issue in _IDS:
                    self.must(clone, "issue", "new", issue, "--id", issue)
                self.must_git(clone, "add", "-A")
                self.must_git(clone, "commit", "-qm", "the beginning")
                self.must_git(clone, "push", "-q", "origin", "HEAD:main")
            proxy = Proxy(server.port, self.chance.randrange(2**32), cuts=0.1)
            proxy.start()
            self._stack.callback(proxy.stop)
            self._proxies.append(proxy)
            self.must_git(clone, "remote", "set-url", "origin", server.url(proxy.port, "hub.git"))
        self.trees = {f"droid-{number}": clones[number % 3] for number in range(6)}
        for clone in clones:
            self.must(clone, "sync")

    def disturb(self) -> None:
        if self.chance.random() < 0.1:
            self.chance.choice(self._proxies).part(self.chance.uniform(0.3, 2.0))
        else:
            super().disturb()

    def calm(self) -> None:
        for proxy in self._proxies:
            proxy.cuts = 0.0
        self._exchange()

    def settled(self) -> End:
        self._exchange()
        clones = sorted({*self.trees.values()})
        end = self.listed(self.main)
        for clone in clones:
            lists = self.listed(clone).lists
            # Each machine says for itself what has been read, and what it sees of worktrees.
            end.elsewhere[clone] = {
                kind: json.dumps(lists[kind], sort_keys=True)
                for kind in ("assignments", "issues", "messages")
            }
        return end

    def _exchange(self) -> None:
        clones = sorted({*self.trees.values()})
        for clone in [*clones, *clones]:  # What the last one sends reaches the first one, too.
            self.must(clone, "sync")

    def figures(self) -> dict[str, int]:
        cut = sum(each.cut for each in self._proxies)
        return {**super().figures(), "connections cut": cut}


class Database(World):
    """Machines, each with a clock of its own, that keep their hive in one PostgreSQL: its server is
    killed, and connections are cut.
    """

    kind = "database"
    prepared_issues = tuple(_IDS)

    def make(self) -> None:
        import postgres_server

        self._server = self._stack.enter_context(postgres_server.running())
        os.makedirs(self.main)
        self.must_git(self.main, "init", "-q", "-b", "main")
        self.must(self.main, "init")
        for issue in _IDS:
            self.must(self.main, "issue", "new", issue, "--id", issue)
        self.must(self.main, "hive", "engine", "use", "postgres")
        self.must_git(self.main, "add", "-A")
        self.must_git(self.main, "commit", "-qm", "the beginning")
        machines = [self.main]
        for number in range(2):
            machines.append(os.path.join(self.folder, f"machine-{number}"))
            self.must_git(self.folder, "clone", "-q", self.main, machines[-1])
        self.set_clocks(machines)
        self.trees = {f"droid-{number}": machines[number % 3] for number in range(8)}

    def environment(self, tree: str) -> dict[str, str]:
        # What the server has not synced is lost with it.
        durable = {"QUEEN_DATABASE_URL": self._server.url, "QUEEN_DURABILITY": "synced"}
        return {**super().environment(tree), **durable}

    def disturb(self) -> None:
        dice = self.chance.random()
        if dice < 0.05:
            self._server.stop("immediate")
            time.sleep(self.chance.uniform(0, 0.5))
            self._server.start()
            self.counts["server killed"] += 1
        elif dice < 0.3:
            self.counts["connections cut"] += self._server.cut(0.5)
        else:
            super().disturb()


WORLDS = {each.kind: each for each in (Files, Remote, Database)}
