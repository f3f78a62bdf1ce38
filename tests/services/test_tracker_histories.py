"""Random histories of a tracker, held against a model of a few lines: nothing acknowledged is lost.

Two clones change issues, other programs edit the file that is there, git takes versions away and
brings them back, branches merge, commands are killed, and the rows are exported at any time.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hives import COMMAND, Clock, git, records
from stamps import parse_ms
from trackers import NewIssue, Tracker, export_issues

from queenbee import Hive

FIELDS = ("title", "description", "acceptance_criteria", "status")
STATUSES = ("open", "in_progress", "blocked", "deferred")
FILE = ".beads/issues.jsonl"
Row = dict[str, Any]


class Line:
    """A change that was acknowledged: what the ledger has a line for."""

    def __init__(self, rev: int, at: int, fields: Row) -> None:
        self.fields = fields
        self.order = (rev, 2 if "status" in fields else 0, at)


class Clone:
    """A clone and the model of it: the lines that it has, and what only its file says."""

    def __init__(self, tree: Path, clock: Clock) -> None:
        self.tree, self.clock = tree, clock
        self.lines: dict[str, list[Line]] = {}
        self.news: dict[str, dict[str, tuple[int, object]]] = {}
        self.open()

    def open(self) -> None:
        env = {"QUEEN_DURABILITY": "buffered"}
        self.hive = Hive.open(self.tree, droid="a", env=env, clock=self.clock)

    @property
    def file(self) -> Path:
        return self.tree / FILE

    # The model.

    def line(self, issue_id: str, fields: Row) -> None:
        """Adds a line: with it, what the file has of that issue goes to the ledger."""
        had = self.lines.setdefault(issue_id, [])
        news = {name: value for name, (_, value) in self.seen_news(issue_id).items()}
        rev = max((each.order[0] for each in had), default=0) + 1
        times = [at for at, _ in self.seen_news(issue_id).values()]
        at = max(times) if times and not fields else self.clock.now_ms
        had.append(Line(rev, at, {**news, **fields}))
        self.news.pop(issue_id, None)

    def kept(self, issue_id: str) -> dict[str, tuple[int, object]]:
        found: dict[str, tuple[int, object]] = {}
        for each in sorted(self.lines.get(issue_id, ()), key=lambda line: line.order):
            found.update({name: (each.order[2], value) for name, value in each.fields.items()})
        return found

    def seen_news(self, issue_id: str) -> dict[str, tuple[int, object]]:
        kept = self.kept(issue_id)
        news = self.news.get(issue_id, {})
        return {key: each for key, each in news.items() if each[0] > kept.get(key, (0, 0))[0]}

    def expected(self) -> dict[str, Row]:
        return {
            key: {name: one[1] for name, one in {**self.kept(key), **self.seen_news(key)}.items()}
            for key in self.lines
        }

    def found(self) -> dict[str, Row]:
        issues = self.hive.issues.all()
        return {
            key: {name: each.fields[name] for name in FIELDS if name in each.fields}
            for key, each in issues.items()
        }

    def check(self, what: str) -> None:
        assert self.found() == self.expected(), what
        if self.file.exists():
            counts = Counter(row["id"] for row in records(self.file))
            assert not counts or max(counts.values()) == 1, what


class World:
    """Two clones, and one order of time for all."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        first, second = folder / "first", folder / "second"
        git(folder, "init", "-q", str(first))
        (first / ".beads").mkdir()
        (first / ".beads" / ".gitattributes").write_text("queen_*.jsonl text eol=lf merge=union\n")
        git(first, "add", "-A")
        git(first, "commit", "-qm", "a hive")
        git(folder, "clone", "-q", str(first), str(second))
        self.clones = [Clone(first, self.clock), Clone(second, self.clock)]
        self.counter = 0
        self.stashed: dict[int, Any] = {}
        self.committed: list[Any] = [{}, {}]

    def value(self, name: str) -> object:
        self.counter += 1
        return self.chance.choice(STATUSES) if name == "status" else f"text {self.counter}"

    def step(self) -> str:
        self.clock.advance(1)
        clone = self.chance.choice(self.clones)
        name = self.chance.choice(
            ["new", "edit", "edit", "edit", "theirs", "theirs", "export", "commit", "take", "stash",
             "pop", "merge", "killed", "again", "message"]
        )  # fmt: skip
        done = getattr(self, name)(clone)
        what = f"{name} in {clone.tree.name}: {done}"
        for each in self.clones:
            each.check(what)
        return what

    def new(self, clone: Clone) -> str:
        self.counter += 1
        issue_id = f"qb-{self.counter}"
        Tracker(clone.hive).new(NewIssue(f"text {self.counter}", issue_id=issue_id))
        made = {"title": f"text {self.counter}", "description": "", "status": "open"}
        clone.line(issue_id, made)
        return issue_id

    def edit(self, clone: Clone) -> str:
        if not clone.lines:
            return "none"
        issue_id, name = self.chance.choice([*clone.lines]), self.chance.choice(FIELDS)
        value = self.value(name)
        before = clone.expected()[issue_id].get(name)
        Tracker(clone.hive).edit(issue_id, **{name: value})
        if value != before:
            clone.line(issue_id, {name: value})
        return f"{issue_id} {name} = {value}"

    def theirs(self, clone: Clone) -> str:
        """Another program edits a row as the file has it, which may be an old one."""
        rows = records(clone.file) if clone.file.exists() else []
        if not rows:
            return "none"
        row, name = self.chance.choice(rows), self.chance.choice(FIELDS)
        value = self.value(name)
        if row.get(name) == value:
            return "the same"
        clone.found()  # A command has looked at the file since it was last written.
        row[name] = value
        row["updated_at"] = _time(self.clock.now_ms)
        text = "".join(f"{json.dumps(each)}\n" for each in rows)
        clone.file.with_suffix(".new").write_text(text)
        clone.file.with_suffix(".new").rename(clone.file)
        clone.news.setdefault(row["id"], {})[name] = self.clock.now_ms, value
        return f"{row['id']} {name} = {value}"

    def export(self, clone: Clone) -> str:
        before = clone.expected()
        for issue_id in [*clone.news]:
            if clone.seen_news(issue_id):
                clone.line(issue_id, {})
        clone.news.clear()
        export_issues(clone.hive)
        rows = {row["id"]: row for row in records(clone.file)} if clone.file.exists() else {}
        kept = {k: {n: row[n] for n in FIELDS if n in row} for k, row in rows.items()}
        assert kept == before
        assert all({"created_at", "updated_at", "priority"} <= {*row} for row in rows.values())
        return f"{len(rows)} rows"

    def commit(self, clone: Clone) -> str:
        git(clone.tree, "add", "-A")
        git(clone.tree, "commit", "-q", "--allow-empty", "-m", "all")
        self.committed[self.clones.index(clone)] = _copy(clone.news)
        return ""

    def take(self, clone: Clone) -> str:
        """Git brings back the file that was committed."""
        clone.found()
        number = self.clones.index(clone)
        if git(clone.tree, "ls-tree", "HEAD", FILE):
            git(clone.tree, "checkout", "-q", "HEAD", "--", FILE)
        elif clone.file.exists():
            clone.file.unlink()
        clone.news = _copy(self.committed[number])
        return ""

    def stash(self, clone: Clone) -> str:
        number = self.clones.index(clone)
        if number in self.stashed:
            return "one is there"
        clone.found()
        before = git(clone.tree, "stash", "list")
        git(clone.tree, "stash", "-q", "-u")
        if git(clone.tree, "stash", "list") == before:
            return "nothing to stash"
        self.stashed[number] = clone.news
        clone.news = _copy(self.committed[number])
        return ""

    def pop(self, clone: Clone) -> str:
        number = self.clones.index(clone)
        if number not in self.stashed:
            return "none"
        clone.found()
        # What is in its way goes first, as git says.
        git(clone.tree, "checkout", "-q", "HEAD", "--", ".")
        git(clone.tree, "clean", "-fdq")
        news = self.stashed.pop(number)
        try:
            git(clone.tree, "stash", "pop", "-q")
            clone.news = news
        except AssertionError:  # A conflict: the stash stays, and the commit counts.
            git(clone.tree, "reset", "-q", "--hard")
            git(clone.tree, "stash", "drop", "-q")
            clone.news = _copy(self.committed[number])
        return ""

    def merge(self, clone: Clone) -> str:
        """Both commit all that they have, and one merges the other's branch."""
        for each in self.clones:
            self.export(each)
            self.commit(each)
        other = self.clones[1 - self.clones.index(clone)]
        side = self.chance.choice(["ours", "theirs"])
        git(clone.tree, "fetch", "-q", str(other.tree), "HEAD")
        git(clone.tree, "merge", "-q", "--no-edit", "-X", side, "FETCH_HEAD")
        for issue_id, lines in other.lines.items():
            had = clone.lines.setdefault(issue_id, [])
            had += [each for each in lines if each not in had]
        return side

    def killed(self, clone: Clone) -> str:
        """A command is killed at any moment: it counts as a whole, or not at all."""
        if not clone.lines:
            return "none"
        issue_id, value = self.chance.choice([*clone.lines]), self.value("acceptance_criteria")
        what = ["issue", "edit", issue_id, f"--title={value}"]
        if self.chance.random() < 0.5:
            what = ["issue", "export"]
        process = subprocess.Popen(
            [*COMMAND, *what], cwd=clone.tree, env={**os.environ, "QUEEN_DROID": "a"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(self.chance.uniform(0.03, 0.12))
        process.send_signal(signal.SIGKILL)
        acknowledged = process.wait() == 0
        title = clone.found()[issue_id]["title"]
        if what[1] == "export":
            self.export(clone)
        elif title == value or acknowledged:
            row = clone.hive.issues.all()[issue_id]
            self.clock.now_ms = max(self.clock.now_ms, _ms(str(row.updated_at)))
            clone.line(issue_id, {"title": value})
        return " ".join(what)

    def again(self, clone: Clone) -> str:
        clone.hive.close()
        clone.open()
        return ""

    def message(self, clone: Clone) -> str:
        before = clone.file.read_bytes() if clone.file.exists() else b""
        clone.hive.messages.send("human", "Hello")
        assert (clone.file.read_bytes() if clone.file.exists() else b"") == before
        return ""


def _copy(news: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {**fields} for key, fields in news.items()}


def _time(now_ms: int) -> str:
    from stamps import format_ms

    return format_ms(now_ms)


def _ms(text: str) -> int:
    return parse_ms(text)


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(12))
def test_a_history_loses_nothing(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, seed)
    steps = []
    for _ in range(40):
        try:
            steps.append(world.step())
        except AssertionError as error:
            raise AssertionError("\n".join([*steps, str(error)])) from error
