"""The tracker is the same wherever the lines are: in files, on a branch, in a database."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hives import QuickQueen, exported, git
from sync_worlds import World

PLACES = ["files", "branch", "postgres"]


class Machines:
    """Two of them, and what makes the one know what the other has done."""

    def __init__(self, first: Path, second: Path, meet: Callable[[], None]) -> None:
        self.trees = (first, second)
        self.meet = meet
        self._queen = QuickQueen(first)

    def __call__(self, number: int, *arguments: str, stdin: str = "") -> Any:
        """Returns what a command prints on one of them, as JSON, and lets them meet."""
        droid = f"droid-{number}"
        tree = self.trees[number]
        done = self._queen(*arguments, "--json", as_=droid, cwd=tree, stdin=stdin)
        assert done.code in (0, 1), done
        self.meet()
        return done.json

    def both(self, *arguments: str) -> Any:
        """Returns what a command that reads prints on both."""
        first, second = (self(number, *arguments) for number in (0, 1))
        assert first == second
        return first


@pytest.fixture(params=PLACES)
def machines(request: pytest.FixtureRequest, tmp_path: Path, repo: Path) -> Machines:
    if request.param == "files":
        second = tmp_path / "second"
        git(repo, "worktree", "add", "-q", str(second))
        return Machines(repo, second, lambda: None)
    world = World(tmp_path)
    trees = world.clone("ada"), world.clone("bob")
    if request.param == "postgres":
        server = request.getfixturevalue("server")
        postgres_server.use(trees[0] / ".beads", server)
        shutil.copy(trees[0] / ".beads" / "queen.toml", trees[1] / ".beads")
        return Machines(*trees, lambda: None)
    queen = QuickQueen(trees[0])

    def meet() -> None:
        for tree in (*trees, trees[0]):
            assert queen("sync", as_="droid-0", cwd=tree).code == 0

    return Machines(*trees, meet)


class TestTwoMachines:
    @pytest.mark.some(1)
    def test_show_the_same_issues(self, machines: Machines) -> None:
        machines(0, "issue", "new", "One", "--id", "qb-1", "--priority", "1")
        machines(1, "issue", "new", "Two", "--id", "qb-2", "--depends-on", "qb-1")
        machines(0, "issue", "new", "Three", "--id", "qb-3", "--parent", "qb-2")
        machines(1, "issue", "edit", "qb-3", "--title", "3")
        assert [each["id"] for each in machines.both("issues")] == ["qb-1", "qb-2", "qb-3"]
        assert [each["id"] for each in machines.both("issue", "ready")] == ["qb-1"]
        shown = machines.both("show", "qb-3")
        assert shown["issue"]["title"] == "3"
        assert [each["title"] for each in machines.both("issue", "list")] == ["One", "Two", "3"]

    @pytest.mark.some(1)
    def test_take_turns_by_the_same_order(self, machines: Machines) -> None:
        for number, priority in (("1", "3"), ("2", "0"), ("3", "1")):
            machines(0, "issue", "new", "x", "--id", f"qb-{number}", "--priority", priority)
        assert machines(1, "next")["assignment"]["issue_id"] == "qb-2"
        assert machines(0, "next")["assignment"]["issue_id"] == "qb-3"
        machines(1, "complete", "qb-2")
        machines(0, "issue", "delete", "qb-1")
        assert machines(1, "issue", "ready") == []
        states = {each["id"]: each["status"] for each in machines.both("issue", "list")}
        assert states == {"qb-2": "closed", "qb-3": "open"}

    @pytest.mark.some(1)
    def test_import_a_list_once(self, machines: Machines) -> None:
        listed = '[{"number": 9, "title": "Nine"}, {"number": 10, "title": "Ten"}]'
        first = machines(0, "issue", "import", "-", stdin=listed)
        assert [each["action"] for each in first["changes"]] == ["add", "add"]
        again = machines(1, "issue", "import", "-", stdin=listed)
        assert [each["action"] for each in again["changes"]] == ["keep", "keep"]
        assert len(machines.both("issue", "list")) == 2

    @pytest.mark.some(1)
    def test_have_files_with_one_row_for_each_once_they_are_exported(
        self, machines: Machines
    ) -> None:
        machines(0, "issue", "new", "One", "--id", "qb-1")
        machines(1, "issue", "new", "Two", "--id", "qb-2")
        machines(0, "issue", "close", "qb-2")
        machines(1, "issue", "edit", "qb-1", "--priority", "0")
        machines(0, "msg", "send", "droid-1", "hello", "--new")
        found = []
        for tree in machines.trees:
            path = tree / ".beads" / "issues.jsonl"
            found.append(sorted(exported(path), key=str))
        assert [row["id"] for row in found[0] or ()] == ["qb-1", "qb-2"]
        assert found[1] in ([], found[0])  # A linked worktree has no file of its own.
